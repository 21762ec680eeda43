package flux

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"testing"

	"clustermesh.test/cluster"
)

// Flux delivers to one cluster and Argo CD to another, while the nodes of a third one change and our
// processes are killed.
func TestFollowNodes(t *testing.T) {
	servers := cluster.StartOthers(t, 2)
	flux := shipped(t, "west")
	argocd := startArgoCD(t, servers[1])
	cluster.Loop(t, cluster.Start(t),
		cluster.Delivery{Cluster: "west", Server: servers[0], Deliver: func(repository string) error {
			_, err := flux.reconcile(t, servers[0], repository)
			return err
		}},
		cluster.Delivery{Cluster: "south", Server: servers[1], Deliver: argocd.deliver})
}

// argoCD is the test program of ../argocd, which syncs as often as it reads the path of a repository. It needs other
// versions of Kubernetes than Flux, so it is another program.
type argoCD struct {
	input  io.Writer
	output *bufio.Scanner
}

func startArgoCD(t *testing.T, server *cluster.Server) argoCD {
	t.Helper()
	program := os.Getenv("ARGOCD")
	if program == "" {
		t.Fatal("ARGOCD is not set: run .ci/delivery")
	}
	command := exec.Command(program, "-test.run", "^TestDelivers$", "-test.v")
	command.Env = append(os.Environ(), "LOOP_KUBECONFIG="+server.Kubeconfig, "LOOP_CLUSTER=south")
	command.Stderr = os.Stderr
	input, err := command.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	output, err := command.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = input.Close()
		if err := command.Wait(); err != nil {
			t.Error("the program of Argo CD:", err)
		}
	})
	return argoCD{input, bufio.NewScanner(output)}
}

// deliver waits until a sync has ended.
func (a argoCD) deliver(repository string) error {
	if _, err := fmt.Fprintln(a.input, repository); err != nil {
		return err
	}
	var lines []string
	for a.output.Scan() {
		if a.output.Text() == "synced" {
			return nil
		}
		lines = append(lines, a.output.Text())
	}
	return fmt.Errorf("Argo CD did not sync: %s", strings.Join(lines, "\n"))
}
