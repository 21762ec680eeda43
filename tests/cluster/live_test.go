package cluster

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"
)

// east returns the snapshot of `east`, which no failure may change.
func (it site) east(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile(it.repository + "/snapshots/east.json")
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// A deleted service account, and a server that does not answer, are named and lose nothing.
func TestFailuresLoseNothing(t *testing.T) {
	it := newSite(t, "admin", "")
	before := it.east(t)
	Grant(t, it.server)
	it.as(t, "admin", token(t, it.server))
	if run := it.run(t, "snapshot", "east"); run.Code != 0 {
		t.Fatal(run)
	}
	account := "/api/v1/namespaces/clustermesh/serviceaccounts/snapshot"
	if _, err := it.server.Request("DELETE", account, "", nil); err != nil {
		t.Fatal(err)
	}
	address := strings.TrimPrefix(it.server.address, "https://")
	var run Run
	// The server keeps what it knows of a token for some seconds.
	for range 100 {
		if run = it.run(t, "snapshot", "east"); run.Code != 0 {
			break
		}
		time.Sleep(200 * time.Millisecond)
	}
	for _, part := range []string{"[unauthorized]", address, "user `east` of kubeconfig"} {
		if run.Code != 2 || !strings.Contains(run.Stderr, part) {
			t.Errorf("no %s: %v", part, run)
		}
	}
	it.as(t, "admin", "")
	it.server.Freeze(t, func() { run = it.run(t, "snapshot", "east", "--timeout", "3") })
	if run.Code != 2 || !strings.Contains(run.Stderr, "[slow-cluster]") {
		t.Error("a frozen server:", run)
	}
	if it.east(t) != before {
		t.Error("the snapshot has changed")
	}
}

// A pod reads its own cluster with its service account, also without a file with its namespace.
func TestInCluster(t *testing.T) {
	it := newSite(t, "admin", "")
	Grant(t, it.server)
	Write(t, "apiVersion: kilo-clustermesh.io/v1\nkind: Config\nclusters: { east: { inCluster: true } }\n",
		it.repository, "clustermesh.yaml")
	text, err := os.ReadFile(it.server.Kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	var config struct {
		Clusters []struct {
			Name    string
			Cluster struct {
				Authority []byte `json:"certificate-authority-data"`
			}
		}
	}
	if err := json.Unmarshal(text, &config); err != nil {
		t.Fatal(err)
	}
	account := t.TempDir()
	for _, cluster := range config.Clusters {
		if cluster.Name == "server" {
			Write(t, string(cluster.Cluster.Authority), account, "ca.crt")
		}
	}
	Write(t, token(t, it.server), account, "token")
	address, err := url.Parse(it.server.address)
	if err != nil {
		t.Fatal(err)
	}
	// The folder of the service account is there for this process alone.
	script := `mount -t tmpfs tmpfs /var/run && mkdir -p /var/run/secrets/kubernetes.io &&
		cp -R "$1" /var/run/secrets/kubernetes.io/serviceaccount && shift && exec "$@"`
	command := exec.Command("unshare", "-m", "sh", "-c", script, "-", account, Program(t), "snapshot", "east", "--check")
	command.Dir = it.repository
	command.Env = []string{
		"PATH=" + os.Getenv("PATH"),
		"KUBERNETES_SERVICE_HOST=" + address.Hostname(),
		"KUBERNETES_SERVICE_PORT=" + address.Port(),
	}
	if output, err := command.CombinedOutput(); err != nil {
		t.Errorf("%v: %s", err, output)
	}
}

// The operator's Secrets, and each of them wrong.
func TestOperatorSecrets(t *testing.T) {
	it := newSite(t, "admin", "")
	it.server.Namespace(t, "kilo")
	mesh := strings.Replace(mesh, "metadata:\n", "metadata:\n  namespace: kilo\n", 1)
	mesh = strings.Replace(mesh, "- name: east\n", "- name: east\n      kubeconfigSecretRef: {name: east, key: config}\n", 1)
	Write(t, mesh, it.repository, "mesh.yaml")
	config := []byte(Kubeconfig(t, map[string]Login{"east": {Server: it.server, Context: "admin"}}))
	Grant(t, it.server)
	Grant(t, it.server, "--secret", "kilo/east")
	it.as(t, "admin", token(t, it.server))
	snapshot := func(data Object) Run {
		t.Helper()
		path := "/api/v1/namespaces/kilo/secrets/east"
		_, _ = it.server.Request("DELETE", path, "", nil)
		if data != nil {
			secret := Object{"apiVersion": "v1", "kind": "Secret",
				"metadata": Object{"name": "east", "namespace": "kilo"}, "data": data}
			if err := it.server.Apply(encode(t, secret)); err != nil {
				t.Fatal(err)
			}
		}
		return it.run(t, "snapshot", "east", "--secrets-from", "east")
	}
	encoded := func(text []byte) string { return base64.StdEncoding.EncodeToString(text) }
	before := it.east(t)
	for name, row := range map[string]struct {
		data Object
		rule string
	}{
		"absent":      {nil, "missing-secret"},
		"no such key": {Object{"other": encoded(config)}, "missing-secret"},
		"no text":     {Object{"config": encoded([]byte{0xff, 0xfe, 0xfd})}, "missing-secret"},
		"no config":   {Object{"config": encoded([]byte("nonsense"))}, "invalid-kubeconfig"},
		"a program": {Object{"config": encoded(bytes.Replace(config, []byte(`"users":[`),
			[]byte(`"users":[{"name":"x","user":{"exec":{"apiVersion":"client.authentication.k8s.io/v1","command":"touch"}}},`), 1))}, ""},
	} {
		run := snapshot(row.data)
		if row.rule == "" {
			// Only the user of the context matters.
			if run.Code != 0 {
				t.Error(name, run)
			}
			continue
		}
		if run.Code != 2 || !strings.Contains(run.Stderr, "["+row.rule+"]") {
			t.Error(name, run)
		}
	}
	if run := snapshot(Object{"config": encoded(config)}); run.Code != 0 {
		t.Error(run)
	}
	if it.east(t) != before {
		t.Error("the snapshot has changed")
	}
	// Rights to another Secret are not enough.
	for _, kind := range []string{"rolebindings", "roles"} {
		path := "/apis/rbac.authorization.k8s.io/v1/namespaces/kilo/" + kind + "/clustermesh-snapshot-east"
		if _, err := it.server.Request("DELETE", path, "", nil); err != nil {
			t.Fatal(err)
		}
	}
	Grant(t, it.server, "--secret", "kilo/other")
	run := snapshot(Object{"config": encoded(config)})
	if run.Code != 2 || !strings.Contains(run.Stderr, "clustermesh rbac --secret kilo/east") {
		t.Error(run)
	}
}

// 5,000 nodes are read in pages, in less memory than a list of them has.
func TestManyNodes(t *testing.T) {
	const nodes = 5000
	it := newSite(t, "admin", "")
	create := func(numbers <-chan int, failed chan<- error) {
		for number := range numbers {
			node := fmt.Appendf(nil, `{"apiVersion": "v1", "kind": "Node", "metadata": {"name": "m%d",
				"annotations": {"padding": "%s"}}}`, number, strings.Repeat("x", 3000))
			if _, err := it.server.Request(http.MethodPost, "/api/v1/nodes", "application/json", node); err != nil {
				failed <- err
				return
			}
		}
		failed <- nil
	}
	numbers, failed := make(chan int), make(chan error, 16)
	for range 16 {
		go create(numbers, failed)
	}
	started := time.Now()
	for number := range nodes {
		select {
		case numbers <- number:
		case err := <-failed:
			t.Fatal(err)
		}
	}
	close(numbers)
	for range 16 {
		if err := <-failed; err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("%d nodes created in %s", nodes, time.Since(started).Round(time.Second))
	if run := it.run(t, "snapshot", "east"); run.Code != 1 {
		t.Error("without --accept:", run)
	}
	read := func() (time.Duration, int64) {
		t.Helper()
		command := exec.Command(Program(t), "snapshot", "east", "--accept", "east", "--kubeconfig", "kubeconfig")
		command.Dir, command.Env = it.repository, []string{}
		started := time.Now()
		if output, err := command.CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, output)
		}
		memory := command.ProcessState.SysUsage().(*syscall.Rusage).Maxrss / 1024
		return time.Since(started), memory
	}
	took, memory := read()
	t.Logf("read in %s with %d MiB", took.Round(100*time.Millisecond), memory)
	if memory > 100 {
		t.Errorf("%d MiB", memory)
	}
	if count := strings.Count(it.east(t), `"name":`); count < nodes {
		t.Errorf("%d nodes are kept", count)
	}
	relay := it.relay(t)
	if run := it.run(t, "snapshot", "east", "--check"); run.Code != 0 {
		t.Fatal(run)
	}
	half := relay.passed.Load() / 2
	it.expire(t, relay.holdAfter(half))
	it.cut(t, relay.holdAfter(half))
	it.server.DeleteNodes(t)
}

// interrupt stops a snapshot in the middle of the list, and fails unless it ends as if nothing had happened.
func (it site) interrupt(t *testing.T, hold *hold, during func(goOn func())) {
	t.Helper()
	before := it.east(t)
	command := exec.Command(Program(t), "snapshot", "east", "--check", "--timeout", "600", "--kubeconfig", "kubeconfig")
	command.Dir, command.Env = it.repository, []string{}
	var output bytes.Buffer
	command.Stdout, command.Stderr = &output, &output
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	select {
	case <-hold.reached:
	case <-time.After(startLimit):
		t.Error("the middle of the list is not reached")
	}
	during(func() { close(hold.passing) })
	if err := command.Wait(); err != nil {
		t.Errorf("%v: %s", err, output.String())
	}
	if it.east(t) != before {
		t.Error("the snapshot has changed")
	}
}

// expire lets the server forget a list that is being read; it is read anew.
func (it site) expire(t *testing.T, hold *hold) {
	t.Helper()
	before := 0
	it.interrupt(t, hold, func(goOn func()) {
		it.server.forget(t)
		before = it.answers(t, "410")
		goOn()
	})
	if it.answers(t, "410") == before {
		t.Error("no list has expired")
	}
}

// forget returns when the server has forgotten every list of nodes that was begun before.
func (s *Server) forget(t *testing.T) {
	t.Helper()
	const page = "/api/v1/nodes?limit=1"
	list, err := s.Request(http.MethodGet, page, "", nil)
	if err != nil {
		t.Fatal(err)
	}
	next := page + "&continue=" + url.QueryEscape(list["metadata"].(Object)["continue"].(string))
	for number := 0; ; number++ {
		_, status, err := s.request(http.MethodGet, next, "", nil)
		if status == http.StatusGone {
			return
		}
		if number == 300 {
			t.Errorf("the list does not expire: %v", err)
			return
		}
		// Only what has changed since is compacted.
		patch := fmt.Appendf(nil, `{"metadata": {"annotations": {"changed": "%d"}}}`, number)
		if _, err := s.Request(http.MethodPatch, "/api/v1/nodes/m0", "application/merge-patch+json", patch); err != nil {
			t.Error(err)
		}
		time.Sleep(time.Second)
	}
}

// cut kills the server while a list is being read, and starts it again; the rest is read then.
func (it site) cut(t *testing.T, hold *hold) {
	t.Helper()
	it.interrupt(t, hold, func(goOn func()) {
		it.server.Restart(t, func() {
			goOn()
			time.Sleep(2 * time.Second)
		})
	})
	pages := it.answers(t, "200")
	t.Logf("%d pages after the restart", pages)
	if pages == 0 {
		t.Error("the list was complete before the restart")
	}
}

// answers counts the lists of nodes that the server has answered with a status since it was started.
func (it site) answers(t *testing.T, status string) int {
	t.Helper()
	response, err := it.server.client.Get(it.server.address + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	count := 0
	for line := range strings.Lines(string(text)) {
		labels, number, found := strings.Cut(line, "} ")
		is := func(label, value string) bool { return strings.Contains(labels, label+`="`+value+`"`) }
		var value float64
		if found && strings.HasPrefix(labels, "apiserver_request_total{") && is("code", status) &&
			is("resource", "nodes") && is("verb", "LIST") {
			if _, err := fmt.Sscan(number, &value); err == nil {
				count += int(value)
			}
		}
	}
	return count
}

// A server that is killed and starts again: what was read before stays until it answers, and who is asked
// to read it meanwhile waits for it.
func TestRestart(t *testing.T) {
	it := newSite(t, "admin", "")
	before := it.east(t)
	Grant(t, it.server)
	Grant(t, it.server, "--peers")
	it.as(t, "admin", token(t, it.server))
	waiting := make(chan Run, 1)
	it.server.Restart(t, func() {
		run := it.run(t, "snapshot", "east", "--timeout", "2")
		if run.Code != 2 || !strings.Contains(run.Stderr, "[unreachable-cluster]") {
			t.Error("while it is down:", run)
		}
		go func() { waiting <- it.run(t, "snapshot", "east") }()
		time.Sleep(4 * time.Second)
	})
	if run := <-waiting; run.Code != 0 {
		t.Error("who waits:", run)
	}
	if run := it.run(t, "status", "east"); run.Code != 0 {
		t.Error(run)
	}
	if it.east(t) != before {
		t.Error("the snapshot has changed")
	}
}
