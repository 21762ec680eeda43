package argocd

import (
	"bufio"
	"fmt"
	"os"
	"testing"

	"clustermesh.test/cluster"
)

// Syncs as often as it reads the path of a repository. The loop of ../flux starts it.
func TestDelivers(t *testing.T) {
	server := &cluster.Server{Kubeconfig: os.Getenv("LOOP_KUBECONFIG")}
	if server.Kubeconfig == "" {
		t.Skip("a part of TestFollowNodes in ../flux")
	}
	input := bufio.NewScanner(os.Stdin)
	for input.Scan() {
		if _, err := shipped(t, input.Text(), os.Getenv("LOOP_CLUSTER")).sync(t, server); err != nil {
			t.Fatal(err)
		}
		fmt.Println("synced")
	}
}
