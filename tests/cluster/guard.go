package cluster

import (
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// The beginning of a refusal, up to the sentence.
const refused = "denied request: "

// guardOf prints the guard of a cluster.
func guardOf(t *testing.T, repository, cluster string, arguments ...string) string {
	t.Helper()
	run := Clustermesh(t, repository, append([]string{"guard", cluster}, arguments...)...)
	if run.Code != 0 {
		t.Fatal(cluster, run)
	}
	return run.Stdout
}

// DeliverGuarded installs the guard of the cluster `management`, in which only the account of an engine may write Peers,
// and delivers through it. A commit with a stolen range, another change and a lost cluster follows: the API server
// refuses the range, and the Peer stays as it was. `partly` is whether the engine applies the rest of such a commit.
func DeliverGuarded(t *testing.T, to Delivery, account string, partly bool) {
	repository := Example(t, "hub-and-spokes")
	for _, document := range separator.Split(guardOf(t, repository, to.Cluster, "--writers", account), -1) {
		if err := to.Server.Apply([]byte(document)); err != nil {
			t.Fatal(err, document)
		}
	}
	to.Server.awaitGuard(t)
	deliver := func() {
		t.Helper()
		if err := to.Deliver(repository); err != nil {
			t.Fatal(err)
		}
		Same(t, to.Server.Peers(t), Rendered(t, repository, to.Cluster))
	}
	deliver()
	before := to.Server.Peers(t)

	const own, stolen, gone = `"10.102.0.0/24"`, `"10.103.0.0/24"`, "platform--tenant-ada.yaml"
	folder := filepath.Join(repository, "rendered", to.Cluster)
	Replace(t, own, stolen, folder, "platform--tenant-bell.yaml")
	Replace(t, "port: 51820", "port: 51821", folder, "platform--tenant-curie.yaml")
	Remove(t, folder, gone)
	Replace(t, "- "+gone+"\n", "", folder, "kustomization.yaml")
	const sentence = refused + "an allowed IP is outside of the ranges that this cluster accepts of this source"
	if err := to.Deliver(repository); err == nil || !strings.Contains(err.Error(), sentence) {
		t.Errorf("a stolen range: %v", err)
	}
	Replace(t, stolen, own, folder, "platform--tenant-bell.yaml")
	if partly {
		before = Rendered(t, repository, to.Cluster)
	}
	Same(t, to.Server.Peers(t), before)
	deliver()
}

// awaitGuard waits until a guard that denies has an effect.
func (s *Server) awaitGuard(t *testing.T) {
	t.Helper()
	nobodys := []byte("{apiVersion: kilo.squat.ai/v1alpha1, kind: Peer, metadata: {name: nobody}, " +
		"spec: {allowedIPs: [], publicKey: ''}}")
	for range 200 {
		if err := s.DryRun(nobodys); err != nil && strings.Contains(err.Error(), refused) {
			return
		}
		time.Sleep(100 * time.Millisecond)
	}
	t.Fatal("the guard has no effect")
}
