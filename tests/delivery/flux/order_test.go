package flux

import (
	"testing"

	"clustermesh.test/cluster"
)

// A mesh gets another name. Flux creates all Peers before it deletes the old ones, so an agent forgets every key, as
// `diff` says.
func TestRenamedMesh(t *testing.T) {
	server := cluster.Start(t)
	server.DeletePeers(t)
	flux := shipped(t, "west")
	deliver := func(repository string) error {
		_, err := flux.reconcile(t, server, repository)
		return err
	}
	seen := cluster.RenameMesh(t, "flux", cluster.Delivery{Cluster: "west", Server: server, Deliver: deliver}, nil)
	if seen.Grade != "disruptive" || len(seen.Forgotten) != seen.Peers {
		t.Errorf("%s: %d of %d keys forgotten: %v", seen.Grade, len(seen.Forgotten), seen.Peers, seen.Types())
	}
}
