package cluster

import (
	"encoding/json"
	"errors"
	"maps"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// How many steps the loop has. LOOP_STEPS changes it.
const loopSteps = 50

// Before the name of a node of `east`, the name of its Peer.
const eastPeer = "loop--east--"

// Delivery brings the Peers that a repository holds for a cluster to its server.
type Delivery struct {
	Cluster string
	Server  *Server
	Deliver func(repository string) error
}

// loop is a repository that follows the nodes of a cluster.
type loop struct {
	// The server of `east`, whose nodes change, and where its Peers go.
	server     *Server
	deliveries []Delivery
	repository string
	random     *rand.Rand
	seed       uint64
	// The nodes of `east` that have a key, or had one when their agent was last there.
	nodes map[string]Node
	// The Peers of the nodes of the other clusters.
	others map[string][]string
	next   int
	// How many killed runs had changed the repository.
	partial int
	// How long the last run of a command took.
	takes map[string]time.Duration
}

// Loop changes nodes of `east` at random, and after each change runs `snapshot`, `render` and the deliveries to
// the other clusters. In every second step `snapshot` or `render` is killed at a random moment, what it
// left is delivered, and it runs again. No step may lose a Peer whose node is still there.
func Loop(t *testing.T, east *Server, deliveries ...Delivery) {
	seed, steps := uint64(time.Now().UnixNano()), loopSteps
	for variable, read := range map[string]func(string) error{
		"LOOP_SEED":  func(text string) (err error) { seed, err = strconv.ParseUint(text, 10, 64); return },
		"LOOP_STEPS": func(text string) (err error) { steps, err = strconv.Atoi(text); return },
	} {
		if text := os.Getenv(variable); text != "" {
			if err := read(text); err != nil {
				t.Fatal(variable, err)
			}
		}
	}
	t.Logf("LOOP_SEED=%d", seed)
	l := &loop{
		server:     east,
		deliveries: deliveries,
		repository: t.TempDir(),
		random:     rand.New(rand.NewPCG(seed, 0)),
		seed:       seed,
		nodes:      map[string]Node{},
		others:     map[string][]string{},
		takes:      map[string]time.Duration{},
	}
	l.prepare(t)
	started := time.Now()
	for step := range steps {
		before := maps.Clone(l.nodes)
		held := l.held(t)
		change := l.change(t)
		t.Logf("step %d: %s", step, change)
		if step%2 == 0 {
			l.kill(t)
			l.deliver(t)
			l.check(t, before, held)
		}
		l.follow(t)
		l.deliver(t)
		l.check(t, before, held)
		l.compare(t)
		if t.Failed() {
			t.Fatalf("LOOP_SEED=%d, step %d, %s", seed, step, change)
		}
	}
	t.Logf("%d steps in %s; of %d killed runs, %d had written something",
		steps, time.Since(started).Round(time.Second), (steps+1)/2, l.partial)
}

// prepare starts with eight nodes of `east`, and one of each other cluster.
func (l *loop) prepare(t *testing.T) {
	names := []string{"east"}
	logins := map[string]Login{"east": {Server: l.server, Context: "admin"}}
	for _, it := range l.deliveries {
		names = append(names, it.Cluster)
		logins[it.Cluster] = Login{Server: it.Server, Context: "admin"}
	}
	for _, login := range logins {
		login.Server.DeletePeers(t)
		login.Server.DeleteNodes(t)
	}
	t.Cleanup(func() { l.server.DeleteNodes(t) })
	Write(t, Mesh("loop", names...), l.repository, "mesh.yaml")
	Write(t, Kubeconfig(t, logins), l.repository, "kubeconfig")
	config := "apiVersion: kilo-clustermesh.io/v1\nkind: Config\nclusters:\n"
	for _, name := range names {
		config += "  " + name + ": {kubeconfig: kubeconfig}\n"
	}
	Write(t, config, l.repository, "clustermesh.yaml")
	for range 8 {
		l.add(t)
	}
	for number, it := range l.deliveries {
		node := Node{Cluster: number + 1, Number: 1, Key: NewKey(l.random)}
		node.Create(t, it.Server)
		for _, other := range l.deliveries {
			if other.Cluster != it.Cluster {
				l.others[other.Cluster] = append(l.others[other.Cluster], "loop--"+it.Cluster+"--"+node.Name())
			}
		}
	}
	// An agent that stops leaves only what an earlier snapshot has of its node.
	l.follow(t)
	l.deliver(t)
	l.compare(t)
}

// change does one thing to the nodes and says what.
func (l *loop) change(t *testing.T) string {
	names := slices.Sorted(maps.Keys(l.nodes))
	name := names[l.random.IntN(len(names))]
	switch what := l.random.IntN(5); {
	case what == 0 && len(names) < 14:
		return "add " + l.add(t)
	case what == 1:
		node := l.nodes[name]
		node.Key = NewKey(l.random)
		l.nodes[name] = node
		l.annotate(t, name, node.Annotations())
		return "rotate the key of " + name
	case what == 2:
		l.patch(t, name, Object{"spec": Object{"unschedulable": true}})
		return "drain " + name
	case what == 3:
		// As an agent does when it stops.
		l.annotate(t, name, Object{
			"kilo.squat.ai/key": nil, "kilo.squat.ai/wireguard-ip": nil,
			"kilo.squat.ai/internal-ip": nil,
		})
		return "stop the agent of " + name
	case len(names) > 5:
		if _, err := l.server.Request(http.MethodDelete, "/api/v1/nodes/"+name, "", nil); err != nil {
			t.Fatal(err)
		}
		delete(l.nodes, name)
		return "delete " + name
	default:
		return "nothing"
	}
}

// add creates a node.
func (l *loop) add(t *testing.T) string {
	l.next++
	node := Node{Number: l.next, Key: NewKey(l.random)}
	node.Create(t, l.server)
	l.nodes[node.Name()] = node
	return node.Name()
}

func (l *loop) annotate(t *testing.T, name string, annotations Object) {
	l.patch(t, name, Object{"metadata": Object{"annotations": annotations}})
}

func (l *loop) patch(t *testing.T, name string, patch Object) {
	text, err := json.Marshal(patch)
	if err == nil {
		_, err = l.server.Request(http.MethodPatch, "/api/v1/nodes/"+name, "application/merge-patch+json", text)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// follow runs what a job runs.
func (l *loop) follow(t *testing.T) {
	for _, arguments := range [][]string{{"snapshot"}, {"render"}, {"render", "--check"}} {
		started := time.Now()
		if run := Clustermesh(t, l.repository, arguments...); run.Code != 0 {
			t.Fatal(arguments, run)
		}
		l.takes[arguments[0]] = time.Since(started)
	}
}

// kill runs `snapshot` or `render` and kills it at a random moment: of the whole run, or soon after it has begun
// to write. A run that ends before is undone, and another one is killed earlier.
func (l *loop) kill(t *testing.T) {
	run := []string{"snapshot", "render"}[l.random.IntN(2)]
	if run == "render" {
		if run := Clustermesh(t, l.repository, "snapshot"); run.Code != 0 {
			t.Fatal(run)
		}
	}
	before := Copy(t, l.repository)
	whileWriting := l.random.IntN(2) == 0
	most := l.takes[run]
	if whileWriting {
		most /= 20
	}
	after := time.Duration(l.random.Int64N(int64(most + 1)))
	for try := 0; !l.killed(t, run, after, whileWriting && try < 10); try++ {
		Remove(t, l.repository)
		if err := os.CopyFS(l.repository, os.DirFS(before)); err != nil {
			t.Fatal(err)
		}
		after /= 2
	}
	if exec.Command("diff", "-rq", before, l.repository).Run() != nil {
		l.partial++
	}
}

// killed runs a command for some time, from its first write on if wanted, and returns whether it was killed.
func (l *loop) killed(t *testing.T, run string, after time.Duration, fromWrite bool) bool {
	unwritten := l.written(t)
	command := exec.Command(Program(t), run)
	command.Dir, command.Env = l.repository, []string{}
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- command.Wait() }()
	for fromWrite && len(ended) == 0 && l.written(t) == unwritten {
		time.Sleep(50 * time.Microsecond)
	}
	timer := time.AfterFunc(after, func() { _ = command.Process.Kill() })
	defer timer.Stop()
	var exit *exec.ExitError
	return errors.As(<-ended, &exit) && exit.ExitCode() == -1
}

// written returns when the folders of the outputs last changed.
func (l *loop) written(t *testing.T) [2]time.Time {
	var changed [2]time.Time
	for place, folder := range []string{"snapshots", "rendered"} {
		status, err := os.Stat(filepath.Join(l.repository, folder))
		if errors.Is(err, os.ErrNotExist) {
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		changed[place] = status.ModTime()
	}
	return changed
}

// deliver delivers whatever the repository holds.
func (l *loop) deliver(t *testing.T) {
	for _, it := range l.deliveries {
		if err := it.Deliver(l.repository); err != nil {
			t.Fatalf("LOOP_SEED=%d, to %s: %v", l.seed, it.Cluster, err)
		}
	}
}

// held returns the identities of the Peers of each cluster, by name.
func (l *loop) held(t *testing.T) map[string]map[string]string {
	held := map[string]map[string]string{}
	for _, it := range l.deliveries {
		held[it.Cluster] = it.Server.identities(t)
	}
	return held
}

// check fails if a Peer has gone, for however short a time, although its node was there before and is there
// now.
func (l *loop) check(t *testing.T, before map[string]Node, held map[string]map[string]string) {
	for cluster, now := range l.held(t) {
		for name, identity := range held[cluster] {
			node := strings.TrimPrefix(name, eastPeer)
			_, was := before[node]
			_, is := l.nodes[node]
			stays := was && is || slices.Contains(l.others[cluster], name)
			if stays && now[name] != identity {
				t.Errorf("%s lost %s", cluster, name)
			}
		}
	}
}

// compare fails unless each cluster has the Peers that are rendered, and `status` agrees.
func (l *loop) compare(t *testing.T) {
	arguments := []string{"status"}
	for _, it := range l.deliveries {
		want := slices.Clone(l.others[it.Cluster])
		for node := range l.nodes {
			want = append(want, eastPeer+node)
		}
		slices.Sort(want)
		peers := it.Server.Peers(t)
		if got := Names(peers); !slices.Equal(got, want) {
			t.Errorf("%s has %v instead of %v", it.Cluster, got, want)
		}
		Same(t, peers, Rendered(t, l.repository, it.Cluster))
		arguments = append(arguments, it.Cluster)
	}
	if run := Clustermesh(t, l.repository, arguments...); run.Code != 0 {
		t.Error(run)
	}
}
