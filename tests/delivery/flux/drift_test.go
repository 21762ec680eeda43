package flux

import (
	"strings"
	"testing"

	"clustermesh.test/cluster"
)

// Flux restores every rendered field. Of fields that others add, it removes those of kubectl.
func TestDrift(t *testing.T) {
	server := cluster.Start(t)
	flux := shipped(t, "west")
	deliver := func(repository string) error {
		_, err := flux.reconcile(t, server, repository)
		return err
	}
	cluster.Drift(t, cluster.Delivery{Cluster: "west", Server: server, Deliver: deliver}, cluster.Example(t, "quickstart"),
		func(manager string) bool { return strings.HasPrefix(manager, "kubectl") })
}
