package cluster

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// Project returns a path in the project.
func Project(t testing.TB, path ...string) string {
	t.Helper()
	root, err := root()
	if err != nil {
		t.Fatal(err)
	}
	return filepath.Join(append([]string{root}, path...)...)
}

// root is the nearest folder above with a Cargo.toml; tests run in the folder of their package.
func root() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "Cargo.toml")); err == nil {
			return dir, nil
		}
		if dir == filepath.Dir(dir) {
			return "", errors.New("the tests do not run in the project")
		}
		dir = filepath.Dir(dir)
	}
}

// Files returns the files that match a pattern in the project; none is a failure.
func Files(t testing.TB, pattern ...string) []string {
	t.Helper()
	files, err := filepath.Glob(Project(t, pattern...))
	if err != nil || len(files) == 0 {
		t.Fatal("no file matches", filepath.Join(pattern...), err)
	}
	return files
}

// Example returns a copy of an example, in a folder that the test may change.
func Example(t testing.TB, name string) string {
	t.Helper()
	return Copy(t, Project(t, "examples", name))
}

// Started returns a repository as a newcomer gets it: `init`, two clusters, `render`.
func Started(t testing.TB, gitops string) string {
	t.Helper()
	folder := t.TempDir()
	for _, name := range []string{"mesh.yaml", "snapshots"} {
		if err := exec.Command("cp", "-R", Project(t, "examples", "quickstart", name), folder).Run(); err != nil {
			t.Fatal(err)
		}
	}
	for _, arguments := range [][]string{{"init", "--gitops", gitops}, {"render"}, {"render", "--check"}} {
		if run := Clustermesh(t, folder, arguments...); run.Code != 0 {
			t.Fatal(arguments, run)
		}
	}
	return folder
}

// Copy returns a copy of a folder, in a folder that the test may change.
func Copy(t testing.TB, from string) string {
	t.Helper()
	folder := filepath.Join(t.TempDir(), "repository")
	if err := os.CopyFS(folder, os.DirFS(from)); err != nil {
		t.Fatal(err)
	}
	return folder
}

// Write writes a file and the folders above it.
func Write(t testing.TB, content string, path ...string) {
	t.Helper()
	file := filepath.Join(path...)
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
}

// Replace replaces text in a file, which must hold it.
func Replace(t testing.TB, old, new string, path ...string) {
	t.Helper()
	file := filepath.Join(path...)
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(text), old) {
		t.Fatalf("%s does not contain %q", file, old)
	}
	Write(t, strings.ReplaceAll(string(text), old, new), file)
}

// Remove removes a file or a folder, which must exist.
func Remove(t testing.TB, path ...string) {
	t.Helper()
	file := filepath.Join(path...)
	if _, err := os.Lstat(file); err != nil {
		t.Fatal(err)
	}
	if err := os.RemoveAll(file); err != nil {
		t.Fatal(err)
	}
}

// LoseNodes removes all nodes from the snapshot of a cluster.
func LoseNodes(t testing.TB, repository, cluster string) {
	t.Helper()
	file := filepath.Join(repository, "snapshots", cluster+".json")
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var snapshot Object
	if err := json.Unmarshal(text, &snapshot); err != nil {
		t.Fatal(err)
	}
	snapshot["nodes"] = []any{}
	text, err = json.Marshal(snapshot)
	if err != nil {
		t.Fatal(err)
	}
	Write(t, string(text), file)
}

// Program is the path of clustermesh: $CLUSTERMESH, or the debug build of the project.
func Program(t testing.TB) string {
	t.Helper()
	if program := os.Getenv("CLUSTERMESH"); program != "" {
		return program
	}
	return Project(t, "target", "debug", "clustermesh")
}

// Run is the result of a run of clustermesh.
type Run struct {
	Code           int
	Stdout, Stderr string
}

// Clustermesh runs the program in a folder, with an empty environment.
func Clustermesh(t testing.TB, folder string, arguments ...string) Run {
	t.Helper()
	command := exec.Command(Program(t), arguments...)
	command.Dir = folder
	command.Env = []string{}
	var stdout, stderr bytes.Buffer
	command.Stdout, command.Stderr = &stdout, &stderr
	err := command.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return Run{command.ProcessState.ExitCode(), stdout.String(), stderr.String()}
}
