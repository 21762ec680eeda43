package flux

import (
	"slices"
	"strings"
	"testing"

	"clustermesh.test/cluster"
)

// Whoever can write to the repository can make Flux deliver Peers, and nothing else.
func TestRights(t *testing.T) {
	server := cluster.Start(t)
	server.DeletePeers(t)
	repository := cluster.Example(t, "quickstart")
	flux := shipped(t, "west")
	if _, err := flux.reconcile(t, server, repository); err != nil {
		t.Fatal(err)
	}
	if got, want := cluster.Names(server.Peers(t)), cluster.Names(cluster.Rendered(t, repository, "west")); !slices.Equal(got, want) {
		t.Errorf("%v, not %v", got, want)
	}
	planted := "apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRoleBinding\nmetadata: {name: planted}\n" +
		"roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: cluster-admin}\n" +
		"subjects: [{kind: User, name: stranger, apiGroup: rbac.authorization.k8s.io}]\n"
	cluster.Write(t, planted, repository, "rendered/west/planted.yaml")
	cluster.Replace(t, "resources:\n", "resources:\n- planted.yaml\n", repository, "rendered/west/kustomization.yaml")
	_, err := flux.reconcile(t, server, repository)
	if err == nil || !strings.Contains(err.Error(), "forbidden") {
		t.Error("Flux applied a right of a stranger:", err)
	}
}
