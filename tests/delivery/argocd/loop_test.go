package argocd

import (
	"testing"

	"clustermesh.test/cluster"
)

// Argo CD follows the nodes of a cluster, whatever becomes of them and of our processes.
func TestFollowsNodes(t *testing.T) {
	server := cluster.Start(t)
	cluster.Loop(t, server, func(repository string) {
		if _, err := shipped(t, repository, "west").sync(t, server); err != nil {
			t.Fatal(err)
		}
	})
}
