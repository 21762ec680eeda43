package cluster

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"sort"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

// head is the part of an object that says where it is stored.
type head struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Metadata   struct {
		Name      string `json:"name"`
		Namespace string `json:"namespace"`
	} `json:"metadata"`
}

func parseHead(document []byte) (head, error) {
	var it head
	err := yaml.Unmarshal(document, &it)
	if err == nil && (it.APIVersion == "" || it.Kind == "" || it.Metadata.Name == "") {
		err = fmt.Errorf("not an object of Kubernetes: %.80s", document)
	}
	return it, err
}

var separator = regexp.MustCompile(`(?m)^---\s*$`)

// Documents reads the YAML documents of a file.
func Documents(t testing.TB, file string) [][]byte {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var found [][]byte
	for _, it := range separator.Split(string(text), -1) {
		if strings.TrimSpace(it) != "" {
			found = append(found, []byte(it))
		}
	}
	return found
}

// Read decodes a file with one object and refuses unknown fields.
func Read[T any](t testing.TB, file string) *T {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	into := new(T)
	if err := yaml.UnmarshalStrict(text, into); err != nil {
		t.Fatal(file, err)
	}
	return into
}

// Objects reads the objects of a file.
func Objects(t testing.TB, file string) []Object {
	t.Helper()
	var found []Object
	for _, document := range Documents(t, file) {
		var it Object
		if err := yaml.Unmarshal(document, &it); err != nil {
			t.Fatal(file, err)
		}
		if it != nil {
			found = append(found, it)
		}
	}
	return found
}

// Rendered reads the Peers that a repository holds for a target, sorted by name.
func Rendered(t testing.TB, repository, target string) []Object {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(repository, "rendered", target, "*--*.yaml"))
	if err != nil || len(files) == 0 {
		t.Fatal("nothing is rendered for", target, err)
	}
	var found []Object
	for _, file := range files {
		found = append(found, Objects(t, file)...)
	}
	return Bare(found)
}

// Tree is the folder with the rendered Peers of a cluster.
type Tree struct {
	Repository, Target string
}

// Name is the name of a tree in test reports.
func (it Tree) Name() string {
	return filepath.Base(it.Repository) + "/" + it.Target
}

// Folder is its path.
func (it Tree) Folder() string {
	return filepath.Join(it.Repository, "rendered", it.Target)
}

// Trees returns the rendered trees of all examples but thirty-mistakes, where they are mistakes too. Targets
// without Peers, as those of clusters that join, have tests of their own.
func Trees(t testing.TB) []Tree {
	t.Helper()
	var found []Tree
	for _, file := range Files(t, "examples", "*", "rendered", "*", "kustomization.yaml") {
		folder := filepath.Dir(file)
		it := Tree{filepath.Dir(filepath.Dir(folder)), filepath.Base(folder)}
		peers, err := filepath.Glob(filepath.Join(folder, "*--*.yaml"))
		if err != nil {
			t.Fatal(err)
		}
		if filepath.Base(it.Repository) != "thirty-mistakes" && len(peers) != 0 {
			found = append(found, it)
		}
	}
	return found
}

// Labels and annotations that kubectl, Flux and Argo CD add.
var added = []string{
	"kubectl.kubernetes.io/last-applied-configuration",
	"applyset.kubernetes.io/part-of",
	"kustomize.toolkit.fluxcd.io/name",
	"kustomize.toolkit.fluxcd.io/namespace",
	"argocd.argoproj.io/tracking-id",
}

// Bare sorts objects by name and takes away everything that the API server, kubectl, Flux and Argo CD add. The
// objects that are given are not changed.
func Bare(objects []Object) []Object {
	bare := make([]Object, 0, len(objects))
	for _, it := range objects {
		metadata, _ := it["metadata"].(Object)
		kept := Object{"name": metadata["name"]}
		for _, field := range []string{"labels", "annotations"} {
			values, _ := metadata[field].(Object)
			left := Object{}
			for name, value := range values {
				left[name] = value
			}
			for _, name := range added {
				delete(left, name)
			}
			if len(left) > 0 {
				kept[field] = left
			}
		}
		copied := Object{"metadata": kept}
		for field, value := range it {
			if field != "metadata" {
				copied[field] = value
			}
		}
		bare = append(bare, copied)
	}
	sort.Slice(bare, func(i, j int) bool { return name(bare[i]) < name(bare[j]) })
	return bare
}

func name(it Object) string {
	metadata, _ := it["metadata"].(Object)
	name, _ := metadata["name"].(string)
	return name
}

// Names returns the names of objects.
func Names(objects []Object) []string {
	names := make([]string, 0, len(objects))
	for _, it := range objects {
		names = append(names, name(it))
	}
	return names
}

// Same fails the test if two lists of objects differ.
func Same(t testing.TB, got, want []Object) {
	t.Helper()
	left, err := json.MarshalIndent(got, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	right, err := json.MarshalIndent(want, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(left, right) {
		t.Errorf("%d objects differ from the %d expected\n%s\nexpected\n%s", len(got), len(want), left, right)
	}
}
