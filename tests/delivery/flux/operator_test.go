package flux

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"clustermesh.test/cluster"
)

// Flux cannot apply a mesh with fields that the operator's CRD lacks, and applies nothing else beside it. With the
// annotation, it leaves the mesh out, and deletes it if it applied it before.
func TestOperatorMesh(t *testing.T) {
	server := cluster.StartOthers(t, 1)[0]
	server.Install(t, cluster.OperatorDefinition(true))
	server.Namespace(t, "kilo-clustermesh")
	repository := cluster.OperatorMesh(t)
	beside := "apiVersion: v1\nkind: ConfigMap\nmetadata: { name: beside, namespace: default }\n"
	cluster.Write(t, beside, repository, "mesh", "beside.yaml")
	flux := shipped(t, "west")
	flux.source.Spec.Ignore = nil
	flux.kustomization.Spec.Path = "./mesh"
	flux.kustomization.Spec.ServiceAccountName = ""
	done, err := flux.reconcile(t, server, repository)
	if err == nil || !strings.Contains(err.Error(), "field not declared in schema") || len(done.applied) != 0 {
		t.Errorf("%+v %v", done, err)
	}
	file := filepath.Join(repository, "mesh", "mesh.yaml")
	const topology, state = "  topology: { mode: Hub, hubs: [east] }\n", ", state: Joining"
	cluster.Replace(t, topology, "", file)
	cluster.Replace(t, state, "", file)
	done, err = flux.reconcile(t, server, repository)
	if err != nil || len(done.applied) != 2 {
		t.Errorf("%+v %v", done, err)
	}
	cluster.Replace(t, "spec:\n", "spec:\n"+topology, file)
	cluster.FollowAdvice(t, repository)
	done, err = flux.reconcile(t, server, repository)
	if err != nil || len(done.applied) != 0 || !slices.Equal(done.deleted, []string{"prod"}) {
		t.Errorf("%+v %v", done, err)
	}
}
