package argocd

import (
	"testing"

	"clustermesh.test/cluster"
)

// Argo CD restores every rendered field, and removes no field that others add.
func TestDrift(t *testing.T) {
	server := cluster.Start(t)
	deliver := func(repository string) error {
		_, err := shipped(t, repository, "west").sync(t, server)
		return err
	}
	cluster.Drift(t, cluster.Delivery{Cluster: "west", Server: server, Deliver: deliver}, cluster.Example(t, "quickstart"),
		func(string) bool { return false })
}
