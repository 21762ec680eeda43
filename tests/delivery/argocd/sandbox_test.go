package argocd

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/argoproj/argo-cd/v3/common"

	"clustermesh.test/cluster"
)

const pluginServer = "argocd-cmp-server"

// sandbox is the sidecar of argocd/plugin: Argo CD's plugin server beside our program, as user 999, on
// a read-only tree without a shell, a home or a network. Only /tmp and the socket's folder can be
// written.
type sandbox struct {
	process *exec.Cmd
	// The socket's folder.
	plugins string
	// Its namespace of processes.
	namespace string
}

var running *sandbox

// startPlugin starts the plugin server that all tests share, and points repo-server's code to it.
func startPlugin(t *testing.T) {
	t.Helper()
	if _, err := exec.LookPath("bwrap"); err != nil && os.Getenv("CI") != "true" {
		t.Skip("bwrap (Debian: bubblewrap) is missing")
	}
	if err := startOnce(cluster.Program(t), cluster.Project(t, "argocd", "plugin")); err != nil {
		t.Fatal(err)
	}
	t.Setenv(common.EnvPluginSockFilePath, running.plugins)
}

var once sync.Once

func startOnce(program, config string) (err error) {
	once.Do(func() { running, err = newSandbox(program, config) })
	if err == nil && running == nil {
		err = errors.New("the plugin server did not start")
	}
	return err
}

func newSandbox(program, config string) (*sandbox, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	plugins, err := os.MkdirTemp("", "plugins-")
	if err != nil {
		return nil, err
	}
	if err := os.Chmod(plugins, 0o777); err != nil {
		return nil, err
	}
	arguments := []string{
		"--unshare-all", "--unshare-user", "--uid", "999", "--gid", "999", "--die-with-parent", "--info-fd", "3",
		"--clearenv", "--setenv", "PATH", "/", "--setenv", common.EnvPluginSockFilePath, "/plugins",
		"--proc", "/proc", "--dev", "/dev", "--tmpfs", "/tmp", "--bind", plugins, "/plugins",
		"--ro-bind", self, "/var/run/argocd/" + pluginServer,
		"--ro-bind", filepath.Join(config, common.PluginConfigFileName), filepath.Join(common.DefaultPluginConfigFilePath, common.PluginConfigFileName),
		"--ro-bind", program, "/clustermesh",
	}
	// A debug build is not static.
	for _, libraries := range []string{"/lib", "/lib64", "/usr/lib"} {
		arguments = append(arguments, "--ro-bind-try", libraries, libraries)
	}
	arguments = append(arguments, "--remount-ro", "/", "/var/run/argocd/"+pluginServer)
	log, err := os.Create(filepath.Join(plugins, "log"))
	if err != nil {
		return nil, err
	}
	defer log.Close()
	information, writer, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer information.Close()
	process := exec.Command("bwrap", arguments...)
	process.Stdout, process.Stderr, process.ExtraFiles = log, log, []*os.File{writer}
	if err := process.Start(); err != nil {
		return nil, err
	}
	_ = writer.Close()
	var told struct {
		Child int `json:"child-pid"`
	}
	if err := json.NewDecoder(information).Decode(&told); err != nil {
		return nil, err
	}
	it := &sandbox{process: process, plugins: plugins}
	for range 300 {
		if _, err := os.Stat(filepath.Join(plugins, "clustermesh.sock")); err == nil {
			it.namespace, err = os.Readlink(fmt.Sprintf("/proc/%d/ns/pid", told.Child))
			return it, err
		}
		time.Sleep(100 * time.Millisecond)
	}
	it.stop()
	text, _ := os.ReadFile(log.Name())
	return nil, fmt.Errorf("the plugin server did not start: %s", text)
}

// stop kills the sandbox: the plugin server does not end on SIGTERM.
func (s *sandbox) stop() {
	if s != nil {
		_ = s.process.Process.Kill()
		_ = s.process.Wait()
	}
}

// programs returns the names of the processes in the sandbox, less those that are always there.
func (s *sandbox) programs(t *testing.T) []string {
	t.Helper()
	entries, err := os.ReadDir("/proc")
	if err != nil {
		t.Fatal(err)
	}
	var found []string
	for _, it := range entries {
		namespace, err := os.Readlink(filepath.Join("/proc", it.Name(), "ns", "pid"))
		if err != nil || namespace != s.namespace {
			continue
		}
		name, err := os.ReadFile(filepath.Join("/proc", it.Name(), "comm"))
		// A process's name has 15 characters at most.
		if err == nil && !strings.HasPrefix(string(name), "bwrap") && !strings.HasPrefix(string(name), pluginServer[:15]) {
			found = append(found, strings.TrimSpace(string(name)))
		}
	}
	return found
}
