// Package cluster gives tests a real Kubernetes API server, the clustermesh program and its examples.
// `.ci/cluster` builds the server and runs the tests of this folder; tests/delivery uses the package
// too. It depends on no Kubernetes module, so tests can use it beside any version of those.
package cluster

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// How long the server may take to start on a busy machine.
const startLimit = 3 * time.Minute

// Object is an object of the API.
type Object = map[string]any

// Server is a running API server with the Peer CRD in it.
type Server struct {
	// Kubeconfig has a context for each identity of server/identities.go.
	Kubeconfig string
	address    string
	client     *http.Client
	paths      map[string]string
	// What was started, and where its files are.
	program, dir string
	// The standard input of the server, which ends when it is closed: here with this process.
	alive   io.Closer
	process *os.Process
}

// Start returns the server that all tests of a process share. It runs until the process ends.
func Start(t testing.TB) *Server {
	t.Helper()
	server, err := shared()
	if err != nil {
		t.Fatal(err)
	}
	return server
}

var shared = sync.OnceValues(func() (*Server, error) { return start() })

// StartCollecting starts a server with a garbage collector, which ends with the test. Deletions in the foreground end
// there.
func StartCollecting(t testing.TB) *Server {
	t.Helper()
	server, err := start("-collect-garbage")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.stop)
	return server
}

// StartDualStack starts a server whose Services have addresses of both families. It ends with the test.
func StartDualStack(t testing.TB) *Server {
	t.Helper()
	server, err := start("--", "--service-cluster-ip-range=10.43.0.0/16,fd43::/108")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.stop)
	return server
}

// StartOthers starts more servers, which end with the test. Each takes 3 seconds of CPU and 300 MB.
func StartOthers(t testing.TB, count int) []*Server {
	t.Helper()
	servers, failures := make([]*Server, count), make([]error, count)
	var group sync.WaitGroup
	for number := range count {
		group.Go(func() { servers[number], failures[number] = start() })
	}
	group.Wait()
	for _, server := range servers {
		if server != nil {
			t.Cleanup(server.stop)
		}
	}
	if err := errors.Join(failures...); err != nil {
		t.Fatal(err)
	}
	return servers
}

func start(flags ...string) (*Server, error) {
	program := os.Getenv("CLUSTER_SERVER")
	if program == "" {
		return nil, errors.New("CLUSTER_SERVER is not set: run .ci/cluster or .ci/delivery")
	}
	dir, err := os.MkdirTemp("", "cluster-")
	if err != nil {
		return nil, err
	}
	kubeconfig, alive, process, err := launch(program, dir, flags...)
	if err != nil {
		return nil, err
	}
	server, err := connect(kubeconfig)
	if err != nil {
		return nil, err
	}
	server.program, server.dir = program, dir
	server.alive, server.process = alive, process
	return server, server.install(PeerDefinition())
}

// launch starts the program and waits until it is ready. Its lists expire soon. Flags after `--` are for the API server.
func launch(program, dir string, flags ...string) (string, io.Closer, *os.Process, error) {
	arguments := append([]string{"-dir", dir}, flags...)
	if !slices.Contains(flags, "--") {
		arguments = append(arguments, "--")
	}
	command := exec.Command(program, append(arguments, "--etcd-compaction-interval=3s")...)
	alive, err := command.StdinPipe()
	if err != nil {
		return "", nil, nil, err
	}
	output, err := command.StdoutPipe()
	if err != nil {
		return "", nil, nil, err
	}
	log, err := os.Create(filepath.Join(dir, "log"))
	if err != nil {
		return "", nil, nil, err
	}
	defer log.Close()
	command.Stderr = log
	if err := command.Start(); err != nil {
		return "", nil, nil, err
	}
	tooLate := time.AfterFunc(startLimit, func() { _ = command.Process.Kill() })
	line, err := bufio.NewReader(output).ReadString('\n')
	tooLate.Stop()
	kubeconfig, ready := strings.CutPrefix(strings.TrimSpace(line), "ready ")
	if !ready {
		said, _ := os.ReadFile(log.Name())
		return "", nil, nil, fmt.Errorf("the API server did not start: %w\n%s", err, tail(said, 4000))
	}
	return kubeconfig, alive, command.Process, nil
}

// Restart kills the server, calls a function while nothing answers, and starts the server again.
func (s *Server) Restart(t testing.TB, during func()) {
	t.Helper()
	s.kill()
	during()
	_, alive, process, err := launch(s.program, s.dir)
	if err != nil {
		t.Fatal(err)
	}
	s.alive, s.process = alive, process
	s.client.CloseIdleConnections()
}

// Freeze calls a function while the server answers nothing, although it accepts connections.
func (s *Server) Freeze(t testing.TB, during func()) {
	t.Helper()
	if err := s.process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	defer s.Thaw()
	during()
}

// Thaw ends Freeze earlier.
func (s *Server) Thaw() {
	_ = s.process.Signal(syscall.SIGCONT)
}

func (s *Server) kill() {
	_ = s.process.Kill()
	_, _ = s.process.Wait()
}

// stop ends the server and removes its files.
func (s *Server) stop() {
	s.kill()
	_ = s.alive.Close()
	_ = os.RemoveAll(s.dir)
}

func tail(text []byte, size int) []byte {
	return text[max(0, len(text)-size):]
}
