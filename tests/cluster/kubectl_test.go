package cluster

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// kubectl runs kubectl as the administrator.
func (s *Server) kubectl(t *testing.T, arguments ...string) Run {
	t.Helper()
	program := os.Getenv("KUBECTL")
	if program == "" {
		t.Fatal("KUBECTL is not set: run .ci/cluster")
	}
	command := exec.Command(program, arguments...)
	// `kubectl diff` runs diff.
	command.Env = []string{
		"KUBECONFIG=" + s.Kubeconfig, "HOME=" + s.dir, "TMPDIR=" + s.dir, "PATH=" + os.Getenv("PATH"),
		"KUBECTL_APPLYSET=true",
	}
	var stdout, stderr bytes.Buffer
	command.Stdout, command.Stderr = &stdout, &stderr
	err := command.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return Run{command.ProcessState.ExitCode(), stdout.String(), stderr.String()}
}

// applied runs `kubectl apply` and fails unless it does this, and nothing else, to these Peers.
func (s *Server) applied(t *testing.T, what string, peers []string, arguments ...string) {
	t.Helper()
	run := s.kubectl(t, append([]string{"apply", "--validate=strict"}, arguments...)...)
	var want strings.Builder
	for _, name := range peers {
		fmt.Fprintf(&want, "peer.kilo.squat.ai/%s %s\n", name, what)
	}
	if run.Code != 0 || sorted(run.Stdout) != want.String() {
		t.Fatalf("kubectl apply %v: %v instead of\n%s", arguments, run, want.String())
	}
}

func sorted(text string) string {
	return strings.Join(slices.Sorted(strings.Lines(text)), "")
}

// A Peer that no mesh contains.
const laptop = `{"apiVersion": "kilo.squat.ai/v1alpha1", "kind": "Peer", "metadata": {"name": "laptop"},
	"spec": {"allowedIPs": ["172.31.99.1/32"], "publicKey": "vblMc9U8RAI6cVopcKEMTVT6lVC3D9nTTMSwot5d3L4="}}`

// kubectl creates the Peers of every example as they are rendered. Applied again, nothing changes.
func TestKubectlApplies(t *testing.T) {
	server := Start(t)
	for _, tree := range Trees(t) {
		t.Run(tree.Name(), func(t *testing.T) {
			server.DeletePeers(t)
			rendered := Rendered(t, tree.Repository, tree.Target)
			names := Names(rendered)
			server.applied(t, "created", names, "-k", tree.Folder())
			Same(t, server.Peers(t), rendered)
			server.applied(t, "unchanged", names, "-k", tree.Folder())
			if run := server.kubectl(t, "diff", "-k", tree.Folder()); run != (Run{}) {
				t.Error("kubectl diff:", run)
			}
			server.applied(t, "serverside-applied", names, "--server-side", "-k", tree.Folder())
			Same(t, server.Peers(t), rendered)
		})
	}
}

// kubectl deletes exactly the Peers that are no longer rendered, by label and with an ApplySet.
func TestKubectlPrunes(t *testing.T) {
	server := Start(t)
	set := []string{"--prune", "--namespace", "default", "--applyset"}
	for _, tree := range Trees(t) {
		t.Run(tree.Name(), func(t *testing.T) {
			server.DeletePeers(t)
			for _, way := range [][]string{
				{"--prune", "--prune-allowlist", "kilo.squat.ai/v1alpha1/Peer", "-l", "app.kubernetes.io/managed-by=clustermesh"},
				append(set, "configmaps/"+strings.ToLower(strings.ReplaceAll(tree.Name(), "/", "-"))),
			} {
				it := Tree{Copy(t, tree.Repository), tree.Target}
				server.DeletePeers(t)
				rendered := Rendered(t, it.Repository, it.Target)
				arguments := append(way, "-k", it.Folder())
				server.applied(t, "created", Names(rendered), arguments...)
				if err := server.Apply([]byte(laptop)); err != nil {
					t.Fatal(err)
				}
				gone := dropPeer(t, it)
				run := server.kubectl(t, append([]string{"apply"}, arguments...)...)
				if run.Code != 0 || strings.Count(run.Stdout, "pruned\n") != 1 ||
					!strings.Contains(run.Stdout, "peer.kilo.squat.ai/"+gone+" pruned\n") {
					t.Error(arguments, run)
				}
				want := append(Rendered(t, it.Repository, it.Target), decode(t, laptop))
				Same(t, server.Peers(t), Bare(want))
			}
		})
	}
}

// dropPeer removes the first Peer from a tree, and returns its name.
func dropPeer(t *testing.T, tree Tree) string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(tree.Folder(), "*--*.yaml"))
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	documents := Documents(t, files[0])
	head, err := parseHead(documents[0])
	if err != nil {
		t.Fatal(err)
	}
	Write(t, string(bytes.Join(documents[1:], []byte("\n---\n"))), files[0])
	return head.Metadata.Name
}

// A folder for a cluster without Peers fails, and deletes nothing.
func TestKubectlKeepsPeersOfAnEmptyFolder(t *testing.T) {
	server := Start(t)
	server.DeletePeers(t)
	repository := Example(t, "quickstart")
	folder := filepath.Join(repository, "rendered", "west")
	rendered := Rendered(t, repository, "west")
	server.applied(t, "created", Names(rendered), "-k", folder)
	Write(t, "apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\nresources: []\n", folder, "kustomization.yaml")
	for _, more := range [][]string{
		nil,
		{"--prune", "--prune-allowlist", "kilo.squat.ai/v1alpha1/Peer", "-l", "app.kubernetes.io/managed-by=clustermesh"},
		{"--prune", "--namespace", "default", "--applyset", "configmaps/empty"},
	} {
		run := server.kubectl(t, append([]string{"apply", "-k", folder}, more...)...)
		if run.Code == 0 || !strings.Contains(run.Stderr, "no objects passed to apply") {
			t.Error(more, run)
		}
	}
	Same(t, server.Peers(t), rendered)
}

// Peers with the longest names, and with endpoints of both families, are stored as they are rendered.
func TestKubectlAppliesExtremes(t *testing.T) {
	server := Start(t)
	server.DeletePeers(t)
	repository := t.TempDir()
	long := func(letter string, length int) string { return strings.Repeat(letter, length) }
	names := []string{long("a", 63), long("b", 63)}
	Write(t, Mesh(long("m", 63), names...), repository, "mesh.yaml")
	for place, cluster := range names {
		nodes := []Object{}
		for number, endpoint := range []string{"198.18.1.1:65535", "[2001:db8::1]:1"} {
			node := Node{Cluster: place, Number: number + 1, Key: NewKey(rand.New(rand.NewPCG(uint64(place), uint64(number))))}
			annotations := node.Annotations()
			annotations["kilo.squat.ai/force-endpoint"] = endpoint
			nodes = append(nodes, Object{
				// The longest name of a node that is a name in the DNS.
				"metadata": Object{"name": fmt.Sprintf("%s.%s.%s.%s", node.Name(), long("x", 63), long("y", 63), long("z", 63)), "annotations": annotations},
				"spec":     Object{"podCIDRs": []string{fmt.Sprintf("10.%d.%d.0/24", podRange+place, number)}},
			})
		}
		Write(t, string(encode(t, Object{"kind": "NodeList", "items": nodes})), repository, "nodes.json")
		if run := Clustermesh(t, repository, "snapshot", cluster, "--from", "nodes.json"); run.Code != 0 {
			t.Fatal(run)
		}
	}
	if run := Clustermesh(t, repository, "render"); run.Code != 0 {
		t.Fatal(run)
	}
	rendered := Rendered(t, repository, names[0])
	if len(rendered) != 2 || len(name(rendered[0])) != 253 {
		t.Fatal(rendered)
	}
	folder := filepath.Join(repository, "rendered", names[0])
	server.applied(t, "created", Names(rendered), "-k", folder)
	server.applied(t, "unchanged", Names(rendered), "-k", folder)
	Same(t, server.Peers(t), rendered)
}

// The largest Peers that `large-peer` does not report as a warning and as an error are about the largest that
// kubectl and the API server can store.
func TestLargestPeers(t *testing.T) {
	server := Start(t)
	for _, row := range []struct {
		ranges     int
		serverSide bool
		refusal    string
	}{
		{15_955, false, ""},
		{15_956, false, "metadata.annotations: Too long"},
		{92_588, true, ""},
		{92_900, true, "request is too large"},
	} {
		server.DeletePeers(t)
		list := make([]string, 0, row.ranges)
		for number := range row.ranges {
			list = append(list, fmt.Sprintf("10.%d.%d.%d/32", number>>16, number>>8&255, number&255))
		}
		peer := Object{
			"apiVersion": "kilo.squat.ai/v1alpha1", "kind": "Peer",
			"metadata": Object{"name": "m--north--n1", "labels": Object{
				"app.kubernetes.io/managed-by": "clustermesh", "kilo-clustermesh.io/mesh": "m",
				"kilo-clustermesh.io/source-cluster": "north",
			}},
			"spec": Object{"allowedIPs": list, "publicKey": "vblMc9U8RAI6cVopcKEMTVT6lVC3D9nTTMSwot5d3L4="},
		}
		file := filepath.Join(t.TempDir(), "peer.json")
		Write(t, string(encode(t, peer)), file)
		run := server.kubectl(t, "apply", "-f", file, fmt.Sprintf("--server-side=%v", row.serverSide))
		if row.refusal == "" && run.Code != 0 || !strings.Contains(run.Stderr, row.refusal) {
			t.Errorf("%+v: %d %.300s", row, run.Code, run.Stderr)
		}
	}
	server.DeletePeers(t)
}
