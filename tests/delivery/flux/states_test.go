package flux

import (
	"testing"

	"clustermesh.test/cluster"
)

// A cluster joins and leaves with Flux in both clusters: no Peer of the pair is left on either side, and none
// of other pairs is touched.
func TestJoinAndLeave(t *testing.T) {
	stays, parts := shipped(t, "west"), shipped(t, "north")
	others := cluster.StartOthers(t, 1)
	deliver := func(flux *controllers, server *cluster.Server) func(string) error {
		return func(repository string) error {
			_, err := flux.reconcile(t, server, repository)
			return err
		}
	}
	cluster.JoinAndLeave(t,
		cluster.Delivery{Cluster: "west", Server: cluster.Start(t), Deliver: deliver(stays, cluster.Start(t))},
		cluster.Delivery{Cluster: "north", Server: others[0], Deliver: deliver(parts, others[0])},
		false)
}
