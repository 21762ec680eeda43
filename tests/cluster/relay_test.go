package cluster

import (
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
)

// relay passes the bytes of connections to a server, which it does not decrypt, and can hold answers back.
type relay struct {
	listener net.Listener
	server   string
	// The bytes of all answers up to now.
	passed atomic.Int64
	hold   atomic.Pointer[hold]
}

// hold is a point at which answers stop.
type hold struct {
	// The number of bytes that pass before it.
	after   int64
	reached chan struct{}
	passing chan struct{}
	once    sync.Once
}

// relay lets the kubeconfig of the repository lead through a relay, which ends with the test.
func (it site) relay(t *testing.T) *relay {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	server := strings.TrimPrefix(it.server.address, "https://")
	path := filepath.Join(it.repository, "kubeconfig")
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	led := strings.ReplaceAll(string(text), server, listener.Addr().String())
	if led == string(text) {
		t.Fatal("the kubeconfig does not contain", server)
	}
	Write(t, led, it.repository, "kubeconfig")
	passing := &relay{listener: listener, server: server}
	go passing.run()
	return passing
}

func (r *relay) run() {
	for {
		client, err := r.listener.Accept()
		if err != nil {
			return
		}
		go r.connect(client)
	}
}

// connect joins a connection with one to the server, and closes both as soon as one of them ends.
func (r *relay) connect(client net.Conn) {
	defer client.Close()
	server, err := net.Dial("tcp", r.server)
	if err != nil {
		return
	}
	defer server.Close()
	go func() {
		_, _ = io.Copy(server, client)
		_ = server.Close()
	}()
	buffer := make([]byte, 4096)
	for {
		count, failure := server.Read(buffer)
		r.wait(int64(count))
		if _, err := client.Write(buffer[:count]); err != nil || failure != nil {
			return
		}
	}
}

// wait counts bytes of an answer. It returns when they may pass.
func (r *relay) wait(count int64) {
	passed := r.passed.Add(count)
	if hold := r.hold.Load(); hold != nil && passed >= hold.after {
		hold.once.Do(func() { close(hold.reached) })
		<-hold.passing
	}
}

// holdAfter holds back all answers once so many more bytes have passed.
func (r *relay) holdAfter(count int64) *hold {
	point := &hold{after: r.passed.Load() + count, reached: make(chan struct{}), passing: make(chan struct{})}
	r.hold.Store(point)
	return point
}
