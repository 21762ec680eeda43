package flux

import (
	"testing"

	"clustermesh.test/cluster"
)

// Flux delivers through the guard of a cluster. It asks the API server about all Peers before it applies one, so a
// refused Peer stops the whole commit, and nothing is deleted.
func TestGuarded(t *testing.T) {
	server := cluster.StartOthers(t, 1)[0]
	flux := shipped(t, target)
	deliver := func(repository string) error {
		_, err := flux.reconcile(t, server, repository)
		return err
	}
	cluster.DeliverGuarded(t, cluster.Delivery{Cluster: target, Server: server, Deliver: deliver},
		"system:serviceaccount:flux-system:clustermesh", false)
}
