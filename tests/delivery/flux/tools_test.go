package flux

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"clustermesh.test/cluster"
)

// tool runs a program whose path is in the environment.
func tool(t *testing.T, variable string, arguments ...string) (string, error) {
	t.Helper()
	program := os.Getenv(variable)
	if program == "" {
		t.Fatalf("%s is not set: run .ci/delivery", variable)
	}
	command := exec.Command(program, arguments...)
	var output bytes.Buffer
	command.Stdout, command.Stderr = &output, &output
	err := command.Run()
	return output.String(), err
}

// kustomize builds the Peers that are rendered.
func TestKustomizeBuildsAsRendered(t *testing.T) {
	for _, tree := range cluster.Trees(t) {
		t.Run(tree.Name(), func(t *testing.T) {
			output, err := tool(t, "KUSTOMIZE", "build", tree.Folder())
			if err != nil {
				t.Fatal(err, output)
			}
			file := filepath.Join(t.TempDir(), "built.yaml")
			cluster.Write(t, output, file)
			cluster.Same(t, cluster.Bare(cluster.Objects(t, file)), cluster.Rendered(t, tree.Repository, tree.Target))
		})
	}
}

// kubeconform accepts every rendered tree with the project's schemas, and refuses a broken Peer.
func TestKubeconform(t *testing.T) {
	schemas := cluster.Project(t, "schemas", "{{.Group}}", "{{.ResourceKind}}_{{.ResourceAPIVersion}}.json")
	check := func(path string) (string, error) {
		return tool(t, "KUBECONFORM", "-strict", "-summary", "-skip", "Kustomization", "-schema-location", schemas, path)
	}
	for _, tree := range cluster.Trees(t) {
		if output, err := check(tree.Folder()); err != nil {
			t.Error(tree.Name(), output)
		}
	}
	repository := cluster.Example(t, "quickstart")
	file := filepath.Join(repository, "rendered", "west", "quickstart--east.yaml")
	cluster.Replace(t, "port: 51820", "port: high", file)
	if output, err := check(file); err == nil {
		t.Error("a broken Peer passes", output)
	}
}
