package cluster

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// How many steps the loop has. LOOP_STEPS changes it.
const loopSteps = 50

// Clusters of the loop: the nodes of `east` change, and `west` gets their Peers.
const loopMesh = `apiVersion: kilo.squat.ai/v1alpha1
kind: ClusterMesh
metadata:
  name: loop
spec:
  clusters:
    - name: east
      podCIDRs: [10.42.0.0/16]
      wireguardCIDR: 10.4.0.0/16
    - name: west
      podCIDRs: [10.244.0.0/16]
      wireguardCIDR: 10.5.0.0/16
`

// loop is a repository that follows the nodes of a cluster.
type loop struct {
	server     *Server
	repository string
	kubeconfig string
	random     *rand.Rand
	// The nodes that have a key, or had one when their agent was last there, with the key.
	nodes map[string]string
	next  int
	kills int
	// How long the last run of a command took.
	takes map[string]time.Duration
}

// Loop changes nodes at random, and after each change runs `snapshot`, `render`, `status` and the
// delivery of the Peers of `west`. In half of the steps `snapshot` and `render` are killed at a random
// moment, before they run again. No step may lose a Peer whose node is still there.
func Loop(t *testing.T, server *Server, deliver func(repository string)) {
	seed := uint64(time.Now().UnixNano())
	if text := os.Getenv("LOOP_SEED"); text != "" {
		parsed, err := strconv.ParseUint(text, 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		seed = parsed
	}
	steps := loopSteps
	if text := os.Getenv("LOOP_STEPS"); text != "" {
		parsed, err := strconv.Atoi(text)
		if err != nil {
			t.Fatal(err)
		}
		steps = parsed
	}
	t.Logf("LOOP_SEED=%d", seed)
	l := &loop{
		server:     server,
		repository: t.TempDir(),
		random:     rand.New(rand.NewPCG(seed, 0)),
		nodes:      map[string]string{},
		takes:      map[string]time.Duration{},
	}
	l.prepare(t)
	started := time.Now()
	for step := range steps {
		change := l.change(t)
		l.follow(t)
		deliver(l.repository)
		if got, want := Names(server.Peers(t)), l.peers(); !slices.Equal(got, want) {
			t.Fatalf("LOOP_SEED=%d, step %d, %s: the cluster has %v instead of %v", seed, step, change, got, want)
		}
		Same(t, server.Peers(t), Rendered(t, l.repository, "west"))
		// Its nodes are those of `east`, so its snapshot is never true.
		run := l.run(t, "status", "west", "--output", "json")
		var status struct {
			Clusters []struct {
				Peers struct {
					InSync                              int
					Missing, Changed, LeftOver, SameKey []any
				}
			}
		}
		if err := json.Unmarshal([]byte(run.Stdout), &status); err != nil || len(status.Clusters) != 1 {
			t.Fatal(run)
		}
		peers := status.Clusters[0].Peers
		if others := len(peers.Missing) + len(peers.Changed) + len(peers.LeftOver) + len(peers.SameKey); peers.InSync != len(l.nodes) || others != 0 {
			t.Fatalf("LOOP_SEED=%d, step %d, %s: %v", seed, step, change, run)
		}
	}
	t.Logf("%d steps with %d killed runs in %s", steps, l.kills, time.Since(started).Round(time.Second))
}

// prepare starts with eight nodes of `east`, and the snapshot of a node of `west`.
func (l *loop) prepare(t *testing.T) {
	l.server.DeletePeers(t)
	l.clear(t)
	t.Cleanup(func() { l.clear(t) })
	Write(t, loopMesh, l.repository, "mesh.yaml")
	config := "apiVersion: kilo-clustermesh.io/v1\nkind: Config\nclusters:\n" +
		"  east: { kubeconfig: kubeconfig, context: admin }\n" +
		"  west: { kubeconfig: kubeconfig, context: admin }\n"
	Write(t, config, l.repository, "clustermesh.yaml")
	text, err := os.ReadFile(l.server.Kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	Write(t, string(text), l.repository, "kubeconfig")
	for range 8 {
		l.add(t)
	}
	// `west` is the same server here, and has the same nodes; its snapshot is of another one.
	west, err := json.Marshal(Object{"kind": "Node", "metadata": Object{
		"name": "w1",
		"annotations": Object{
			"kilo.squat.ai/key": l.key(), "kilo.squat.ai/location": "west",
			"kilo.squat.ai/force-endpoint": "198.18.9.1:51820",
			"kilo.squat.ai/wireguard-ip":   "10.5.0.1/16", "kilo.squat.ai/internal-ip": "192.168.9.1/24",
			"kilo.squat.ai/granularity": "location",
		},
	}, "spec": Object{"podCIDRs": []string{"10.244.0.0/24"}}})
	if err != nil {
		t.Fatal(err)
	}
	Write(t, string(west), l.repository, "west.json")
	if run := l.run(t, "snapshot", "west", "--from", "west.json"); run.Code != 0 {
		t.Fatal(run)
	}
	// An agent that stops leaves only what an earlier snapshot has of its node.
	l.follow(t)
}

// clear deletes all nodes.
func (l *loop) clear(t *testing.T) {
	if _, err := l.server.Request(http.MethodDelete, "/api/v1/nodes", "", nil); err != nil {
		t.Error(err)
	}
}

func (l *loop) key() string {
	key := make([]byte, 32)
	for i := range key {
		key[i] = byte(l.random.Uint32())
	}
	return base64.StdEncoding.EncodeToString(key)
}

// change does one thing to the nodes and says what.
func (l *loop) change(t *testing.T) string {
	names := make([]string, 0, len(l.nodes))
	for name := range l.nodes {
		names = append(names, name)
	}
	slices.Sort(names)
	name := names[l.random.IntN(len(names))]
	switch what := l.random.IntN(5); {
	case what == 0 && len(names) < 14:
		return "add " + l.add(t)
	case what == 1:
		l.nodes[name] = l.key()
		l.annotate(t, name, l.annotations(name))
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
	name := fmt.Sprintf("n%02d", l.next)
	l.nodes[name] = l.key()
	node, err := json.Marshal(Object{
		"apiVersion": "v1", "kind": "Node",
		"metadata": Object{"name": name, "annotations": l.annotations(name)},
		"spec":     Object{"podCIDRs": []string{fmt.Sprintf("10.42.%d.0/24", l.next)}},
	})
	if err == nil {
		_, err = l.server.Request(http.MethodPost, "/api/v1/nodes", "application/json", node)
	}
	if err != nil {
		t.Fatal(err)
	}
	return name
}

// annotations returns everything that Kilo writes.
func (l *loop) annotations(name string) Object {
	number := strings.TrimLeft(name, "n0")
	return Object{
		"kilo.squat.ai/key":            l.nodes[name],
		"kilo.squat.ai/location":       name,
		"kilo.squat.ai/force-endpoint": fmt.Sprintf("198.18.1.%s:51820", number),
		"kilo.squat.ai/wireguard-ip":   fmt.Sprintf("10.4.0.%s/16", number),
		"kilo.squat.ai/internal-ip":    fmt.Sprintf("192.168.1.%s/24", number),
		"kilo.squat.ai/granularity":    "full",
	}
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

// follow runs what a job runs, after runs that are killed in half of the steps.
func (l *loop) follow(t *testing.T) {
	if l.random.IntN(2) == 0 {
		arguments := [][]string{{"snapshot", "east"}, {"render"}}[l.random.IntN(2)]
		if l.killed(t, time.Duration(l.random.Int64N(int64(l.takes[arguments[0]]+1))), arguments...) {
			l.kills++
		}
	}
	for _, arguments := range [][]string{{"snapshot", "east"}, {"render"}, {"render", "--check"}} {
		started := time.Now()
		if run := l.run(t, arguments...); run.Code != 0 {
			t.Fatal(arguments, run)
		}
		l.takes[arguments[0]] = time.Since(started)
	}
}

// killed runs the program for some time at most and returns whether it was killed.
func (l *loop) killed(t *testing.T, after time.Duration, arguments ...string) bool {
	command := exec.Command(Program(t), arguments...)
	command.Dir, command.Env = l.repository, []string{}
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	timer := time.AfterFunc(after, func() { _ = command.Process.Kill() })
	defer timer.Stop()
	var exit *exec.ExitError
	return errors.As(command.Wait(), &exit) && exit.ExitCode() == -1
}

func (l *loop) run(t *testing.T, arguments ...string) Run {
	return Clustermesh(t, l.repository, arguments...)
}

// peers returns the names of the Peers that `west` shall have.
func (l *loop) peers() []string {
	names := make([]string, 0, len(l.nodes))
	for name := range l.nodes {
		names = append(names, "loop--east--"+strings.ToLower(name))
	}
	slices.Sort(names)
	return names
}
