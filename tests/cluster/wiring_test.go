package cluster

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// The modules that hold the CRDs of Flux and Argo CD. Only their files are used.
var definitions = []struct {
	module, version, sum, files string
}{
	{
		"github.com/argoproj/argo-cd/v3", "v3.2.12", "h1:XbOyqcoPIjMhiP+y05Zi2U+HfG3b2TNfGJgVuK5Y8g0=",
		"manifests/crds/*-crd.yaml",
	},
	{
		"github.com/fluxcd/kustomize-controller", "v1.9.6", "h1:XB+G3A0mky0j5uVHZWv4oSlS2RvZBoNIUhstIvY0JKE=",
		"config/crd/bases/*.yaml",
	},
	{
		"github.com/fluxcd/source-controller", "v1.9.6", "h1:nG534/bI6nVpyHra7ONAk6xDB3xPsVT+EOLHZHXPrrc=",
		"config/crd/bases/*.yaml",
	},
}

// download returns the files of the CRDs. `.ci/cluster` runs TestDownload while there is a network;
// afterwards the modules are in Go's cache.
func download(t *testing.T) []string {
	t.Helper()
	var files []string
	for _, it := range definitions {
		command := exec.Command("go", "mod", "download", "-json", it.module+"@"+it.version)
		command.Dir = t.TempDir()
		// The checksum is compared below.
		command.Env = append(os.Environ(), "GOSUMDB=off", "GOFLAGS=-mod=mod", "GOWORK=off")
		text, err := command.Output()
		if err != nil {
			t.Fatalf("%s: %v %s", it.module, err, text)
		}
		var answer struct{ Dir, Sum string }
		if err := json.Unmarshal(text, &answer); err != nil {
			t.Fatal(err)
		}
		if answer.Sum != it.sum {
			t.Fatalf("%s has the checksum %s", it.module, answer.Sum)
		}
		found, err := filepath.Glob(filepath.Join(answer.Dir, it.files))
		if err != nil || len(found) == 0 {
			t.Fatal("no CRD in", it.module, err)
		}
		files = append(files, found...)
	}
	return files
}

func TestDownload(t *testing.T) {
	download(t)
}

// The API server accepts every file that users copy, and every file that `init` and `render` write for
// Flux and Argo CD.
func TestAPIServerAcceptsWiring(t *testing.T) {
	server := Start(t)
	for _, file := range download(t) {
		server.Install(t, Documents(t, file)...)
	}
	server.Namespace(t, "argocd")
	server.Namespace(t, "flux-system")
	server.Namespace(t, ServiceNamespace)
	files := append(Files(t, "argocd", "*.yaml"), Files(t, "flux", "*.yaml")...)
	files = append(files, Project(t, "argocd", "plugin", "application.yaml"), Project(t, "examples", "services-guard.yaml"))
	files = append(files, Files(t, "examples", "*", "flux", "*.yaml")...)
	for _, gitops := range []string{"argocd", "flux"} {
		written, err := filepath.Glob(filepath.Join(Started(t, gitops), gitops, "*.yaml"))
		if err != nil || len(written) != 3 {
			t.Fatal("init and render write", written, err)
		}
		files = append(files, written...)
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			for _, document := range Documents(t, file) {
				if err := server.DryRun(document); err != nil {
					t.Error(err)
				}
			}
		})
	}
}

func TestAPIServerRefusesUnknownFields(t *testing.T) {
	server := Start(t)
	err := server.DryRun([]byte(`{apiVersion: v1, kind: Namespace, metadata: {name: x}, spec: {surplus: 1}}`))
	if err == nil {
		t.Error("a dry run accepts a field that does not exist")
	}
}
