package argocd

import (
	"slices"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"clustermesh.test/cluster"
)

// A mesh gets another name, so that every Peer is deleted and comes again under another name, with its key. With the
// Applications that we ship, all are deleted before the first one comes, and an agent forgets no key. With the default
// of Argo CD they are only marked first, and the garbage collector deletes them in the middle of the new ones. `diff`
// reads the option in the repository and knows what will happen.
func TestRenamedMesh(t *testing.T) {
	server := cluster.StartCollecting(t)
	for _, row := range []struct {
		name, grade string
		policy      metav1.DeletionPropagation
		change      func(*application)
	}{
		{"shipped", "brief", metav1.DeletePropagationBackground, func(*application) {}},
		{"default", "disruptive", metav1.DeletePropagationForeground, func(app *application) {
			options := app.Spec.SyncPolicy.SyncOptions
			app.Spec.SyncPolicy.SyncOptions = options.RemoveOption("PrunePropagationPolicy=background")
		}},
	} {
		t.Run(row.name, func(t *testing.T) {
			server.DeletePeers(t)
			server.AwaitCollector(t)
			var app *application
			files := map[string]string{}
			for _, target := range []string{"east", "north", "west"} {
				app = shipped(t, "", target)
				row.change(app)
				text, err := yaml.Marshal(app.Application)
				if err != nil {
					t.Fatal(err)
				}
				files["argocd/"+target+".yaml"] = string(text)
			}
			if policy := app.prunePropagation(); policy != row.policy {
				t.Fatal(policy)
			}
			deliver := func(repository string) error {
				app.repository = repository
				_, err := app.sync(t, server)
				return err
			}
			seen := cluster.RenameMesh(t, "argocd", cluster.Delivery{Cluster: "west", Server: server, Deliver: deliver}, files)
			if seen.Grade != row.grade {
				t.Errorf("`diff` says %s", seen.Grade)
			}
			types := seen.Types()
			t.Logf("%d of %d keys forgotten: %v", len(seen.Forgotten), seen.Peers, types)
			// Those that are marked come first, each before its own deletion.
			types = slices.DeleteFunc(types, func(it string) bool { return it == "MODIFIED" })
			expected := slices.Concat(slices.Repeat([]string{"DELETED"}, seen.Peers), slices.Repeat([]string{"ADDED"}, seen.Peers))
			isOrdered := slices.Equal(types, expected)
			isMarked := len(types) != len(seen.Events)
			if row.policy == metav1.DeletePropagationBackground && (!isOrdered || isMarked || len(seen.Forgotten) != 0) {
				t.Errorf("forgotten: %v", seen.Forgotten)
			}
			if row.policy == metav1.DeletePropagationForeground && (isOrdered || !isMarked) {
				t.Errorf("the default of Argo CD deletes first")
			}
		})
	}
}
