package cluster

import (
	"encoding/json"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"
)

// drift is a change that somebody makes to a Peer in a cluster.
type drift struct {
	name string
	// A merge patch; none deletes the Peer.
	patch string
	// Whether it adds something that is not rendered, so that the engine does not own it.
	isAddition bool
	// Whether Kilo ignores it, and `status` too.
	isHarmless bool
}

const secret = "vblMc9U8RAI6cVopcKEMTVT6lVC3D9nTTMSwot5d3L4="

var drifts = []drift{
	{name: "range changed", patch: `{"spec": {"allowedIPs": ["10.9.0.0/16"]}}`},
	{name: "port changed", patch: `{"spec": {"endpoint": {"port": 7}}}`},
	{name: "endpoint removed", patch: `{"spec": {"endpoint": null}}`},
	{name: "label changed", patch: `{"metadata": {"labels": {"kilo-clustermesh.io/mesh": "other"}}}`},
	{name: "deleted"},
	{name: "presharedKey added", patch: `{"spec": {"presharedKey": "` + secret + `"}}`, isAddition: true},
	{name: "persistentKeepalive added", patch: `{"spec": {"persistentKeepalive": 7}}`, isAddition: true},
	{name: "dns added", patch: `{"spec": {"endpoint": {"dnsOrIP": {"dns": "wg.example"}}}}`, isAddition: true},
	{name: "annotation added", patch: `{"metadata": {"annotations": {"a": "b"}}}`, isAddition: true, isHarmless: true},
}

// Drift changes a Peer of a cluster in nine ways, as two managers, and fails unless `deliver` restores exactly what the
// docs say: all changes of rendered fields, and of added fields those of the managers that the engine removes. The command
// that `status` prints must remove the others.
func Drift(t *testing.T, delivery Delivery, repository string, removes func(manager string) bool) {
	server := delivery.Server
	server.DeletePeers(t)
	if err := delivery.Deliver(repository); err != nil {
		t.Fatal(err)
	}
	rendered := Rendered(t, repository, delivery.Cluster)
	path := "/apis/kilo.squat.ai/v1alpha1/peers/" + name(rendered[0])
	for _, manager := range []string{"kubectl-edit", "operator"} {
		for _, it := range drifts {
			t.Run(it.name+" by "+manager, func(t *testing.T) {
				method, body := http.MethodPatch, []byte(it.patch)
				if it.patch == "" {
					method, body = http.MethodDelete, nil
				}
				if _, err := server.Request(method, path+"?fieldManager="+manager, "application/merge-patch+json", body); err != nil {
					t.Fatal(err)
				}
				if err := delivery.Deliver(repository); err != nil {
					t.Fatal(err)
				}
				isRestored := reflect.DeepEqual(jsonOf(t, server.Peers(t)), jsonOf(t, rendered))
				if want := !it.isAddition || removes(manager); isRestored != want {
					t.Fatalf("restored: %v", isRestored)
				}
				if isRestored {
					return
				}
				command := removal(t, delivery, repository)
				if (command == "") != it.isHarmless {
					t.Fatalf("status prints %q", command)
				}
				// Flux and Argo CD leave it, and nothing depends on it.
				if it.isHarmless {
					command = "kubectl annotate peers " + name(rendered[0]) + " a-"
				}
				shell(t, repository, command)
				if err := delivery.Deliver(repository); err != nil {
					t.Fatal(err)
				}
				Same(t, server.Peers(t), rendered)
			})
		}
	}
}

var printed = regexp.MustCompile("help: run `(kubectl [^`]*)`")

// removal returns the command that `status` prints for added fields.
func removal(t *testing.T, delivery Delivery, repository string) string {
	t.Helper()
	logins := map[string]Login{delivery.Cluster: {Server: delivery.Server, Context: "admin"}}
	Write(t, Kubeconfig(t, logins), repository, "kubeconfig")
	run := Clustermesh(t, repository, "status", delivery.Cluster, "--kubeconfig", "kubeconfig")
	if strings.Contains(run.Stdout+run.Stderr, secret) {
		t.Error("status prints a secret")
	}
	if match := printed.FindStringSubmatch(run.Stdout); match != nil {
		return match[1]
	}
	return ""
}

// shell runs a command of kubectl as people do.
func shell(t *testing.T, folder, command string) {
	t.Helper()
	bin := t.TempDir()
	if err := os.Symlink(os.Getenv("KUBECTL"), filepath.Join(bin, "kubectl")); err != nil {
		t.Fatal(err)
	}
	run := exec.Command("sh", "-c", command)
	run.Dir = folder
	run.Env = []string{"KUBECONFIG=kubeconfig", "HOME=" + bin, "PATH=" + bin + ":" + os.Getenv("PATH")}
	if output, err := run.CombinedOutput(); err != nil {
		t.Fatal(command, err, string(output))
	}
}

func jsonOf(t *testing.T, objects []Object) string {
	t.Helper()
	text, err := json.Marshal(objects)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
