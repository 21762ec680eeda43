package argocd

import (
	"testing"

	"clustermesh.test/cluster"
)

// Argo CD delivers through the guard of a cluster. It asks the API server about no Peer before it applies them, so
// only the refused one stays as it was: the others are applied, and Peers that are gone are deleted.
func TestGuarded(t *testing.T) {
	server := cluster.StartOthers(t, 1)[0]
	// The account that `argocd cluster add` creates.
	const account = "system:serviceaccount:kube-system:argocd-manager"
	deliver := func(repository string) error {
		app := shipped(t, repository, target)
		app.account = account
		_, err := app.sync(t, server)
		return err
	}
	cluster.DeliverGuarded(t, cluster.Delivery{Cluster: target, Server: server, Deliver: deliver}, account, true)
}
