package argocd

import (
	"testing"

	"clustermesh.test/cluster"
)

// A cluster joins and leaves with Argo CD in both clusters: automated sync keeps the Peers of the empty folder, and
// the command that `render` prints deletes them. No Peer of the pair is left on either side, and none of other pairs
// is touched.
func TestJoinAndLeave(t *testing.T) {
	others := cluster.StartOthers(t, 1)
	deliver := func(target string, server *cluster.Server) func(string) error {
		return func(repository string) error {
			_, err := shipped(t, repository, target).autoSync(t, server)
			return err
		}
	}
	cluster.JoinAndLeave(t,
		cluster.Delivery{Cluster: "west", Server: cluster.Start(t), Deliver: deliver("west", cluster.Start(t))},
		cluster.Delivery{Cluster: "north", Server: others[0], Deliver: deliver("north", others[0])},
		true)
}
