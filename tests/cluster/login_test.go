package cluster

import (
	"encoding/base64"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// The script of `clustermesh rbac --kubeconfig` creates a login with which `snapshot` works, and nothing more.
func TestLoginScript(t *testing.T) {
	it := newSite(t, "admin", "")
	run := Clustermesh(t, it.repository, "rbac", "--kubeconfig")
	if run.Code != 0 {
		t.Fatal(run)
	}
	Write(t, run.Stdout, it.repository, "login.sh")
	bin := t.TempDir()
	if err := os.Symlink(os.Getenv("KUBECTL"), filepath.Join(bin, "kubectl")); err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	defer func() { <-done }()
	go func() {
		defer close(done)
		it.fillToken(t)
	}()
	command := exec.Command("sh", "login.sh", "jobs", "east=admin")
	command.Dir = it.repository
	command.Env = []string{"KUBECONFIG=" + it.server.Kubeconfig, "HOME=" + bin, "PATH=" + bin + ":" + os.Getenv("PATH")}
	output, err := command.CombinedOutput()
	if err != nil {
		t.Fatal(err, string(output))
	}
	if run := Clustermesh(t, it.repository, "snapshot", "east", "--check", "--kubeconfig", "jobs"); run.Code != 0 {
		t.Error(run)
	}
	if run := Clustermesh(t, it.repository, "status", "east", "--kubeconfig", "jobs"); !strings.Contains(run.Stdout, "forbidden") {
		t.Error(run)
	}
}

// fillToken does what the token controller of Kubernetes does, which does not run here.
func (it site) fillToken(t *testing.T) {
	const secret = "/api/v1/namespaces/clustermesh/secrets/snapshot-login"
	for range 100 {
		time.Sleep(100 * time.Millisecond)
		if _, err := it.server.Request("GET", secret, "", nil); err != nil {
			continue
		}
		text := base64.StdEncoding.EncodeToString([]byte(token(t, it.server)))
		if _, err := it.server.Request("PATCH", secret, "application/merge-patch+json",
			[]byte(`{"data": {"token": "`+text+`"}}`)); err != nil {
			t.Error(err)
		}
		return
	}
	t.Error("the script did not create the Secret")
}
