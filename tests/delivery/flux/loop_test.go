package flux

import (
	"testing"

	"clustermesh.test/cluster"
)

// Flux follows the nodes of a cluster, whatever becomes of them and of our processes.
func TestFollowsNodes(t *testing.T) {
	server := cluster.Start(t)
	flux := shipped(t, "west")
	cluster.Loop(t, server, func(repository string) {
		if _, err := flux.reconcile(t, server, repository); err != nil {
			t.Fatal(err)
		}
	})
}
