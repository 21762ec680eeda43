package cluster

import (
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// site is a repository with the mesh of the quickstart, whose `east` is the real server.
type site struct {
	server     *Server
	repository string
}

// newSite stores the nodes and rendered Peers of `east` and returns the repository. The context `east` of
// its kubeconfig is one of the server's users, or a token.
func newSite(t *testing.T, context, token string) site {
	t.Helper()
	server := Start(t)
	server.DeletePeers(t)
	server.DeleteNodes(t)
	seed(t, server, Project(t, "examples", "quickstart", "nodes", "east.json"))
	it := site{server, Example(t, "quickstart")}
	it.as(t, "admin", "")
	// The objects of the server have identities of their own.
	if run := it.run(t, "snapshot", "east"); run.Code != 0 {
		t.Fatal(run)
	}
	it.as(t, context, token)
	for _, peer := range Rendered(t, it.repository, "east") {
		if err := server.Apply(encode(t, peer)); err != nil {
			t.Fatal(err)
		}
	}
	return it
}

// as makes the context `east` one of the server's users, or a token.
func (it site) as(t *testing.T, context, token string) {
	t.Helper()
	logins := map[string]Login{"east": {Server: it.server, Context: context, Token: token}}
	Write(t, Kubeconfig(t, logins), it.repository, "kubeconfig")
}

func (it site) run(t *testing.T, arguments ...string) Run {
	t.Helper()
	return Clustermesh(t, it.repository, append(arguments, "--kubeconfig", "kubeconfig")...)
}

// token returns a token of the service account of `clustermesh rbac`.
func token(t *testing.T, server *Server) string {
	t.Helper()
	answer, err := server.Request("POST", "/api/v1/namespaces/clustermesh/serviceaccounts/snapshot/token",
		"application/json", []byte(`{"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}}`))
	if err != nil {
		t.Fatal(err)
	}
	return answer["status"].(Object)["token"].(string)
}

// The rights of `clustermesh rbac --peers` suffice for `status` and `--live`, and those of `rbac` do not.
func TestStatus(t *testing.T) {
	it := newSite(t, "admin", "")
	Grant(t, it.server)
	it.as(t, "admin", token(t, it.server))
	run := it.run(t, "status", "east")
	if run.Code != 2 || !strings.Contains(run.Stdout, "clustermesh rbac --peers") {
		t.Fatal("without the right to list Peers:", run)
	}
	Grant(t, it.server, "--peers")
	for range 100 {
		if run = it.run(t, "status", "east"); run.Code == 0 {
			break
		}
		time.Sleep(100 * time.Millisecond)
	}
	if run.Code != 0 || !strings.Contains(run.Stdout, "v1alpha1") || strings.Contains(run.Stdout, "unknown") {
		t.Fatal("in sync:", run)
	}
	if err := it.server.Apply([]byte(laptop)); err != nil {
		t.Fatal(err)
	}
	if run := it.run(t, "status", "east"); run.Code != 0 || !strings.Contains(run.Stdout, "laptop") {
		t.Fatal("with a laptop:", run)
	}
	name := Names(Rendered(t, it.repository, "east"))[0]
	if _, err := it.server.Request("DELETE", peers+"/"+name, "", nil); err != nil {
		t.Fatal(err)
	}
	run = it.run(t, "status", "east", "--wait", "1s", "--output", "json")
	if run.Code != 1 || !strings.Contains(run.Stdout, `"`+name+`"`) {
		t.Fatal("without a Peer:", run)
	}
}

// `--live` is `--peers` with what kubectl prints, and refuses nothing that it takes.
func TestLiveIsADumpOfPeers(t *testing.T) {
	it := newSite(t, "admin", "")
	answer, err := it.server.Request("GET", peers, "", nil)
	if err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(answer)
	if err != nil {
		t.Fatal(err)
	}
	Write(t, string(text), it.repository, "east.json")
	// The other clusters are not there.
	others := []string{}
	folders, err := filepath.Glob(filepath.Join(it.repository, "rendered", "*"))
	if err != nil {
		t.Fatal(err)
	}
	for _, folder := range folders {
		cluster := filepath.Base(folder)
		if cluster == "east" {
			continue
		}
		text, err := json.Marshal(Object{"apiVersion": "v1", "kind": "List", "items": Rendered(t, it.repository, cluster)})
		if err != nil {
			t.Fatal(err)
		}
		Write(t, string(text), it.repository, cluster+".json")
		others = append(others, "--peers", cluster+"="+cluster+".json")
	}
	dump := Clustermesh(t, it.repository, append([]string{"verify", "--peers", "east=east.json"}, others...)...)
	live := it.run(t, append([]string{"verify", "--live"}, others...)...)
	// The first line names where the Peers come from.
	_, fromDump, _ := strings.Cut(dump.Stdout, "\n")
	_, fromLive, _ := strings.Cut(live.Stdout, "\n")
	if dump.Code != 0 || fromDump != fromLive || dump.Code != live.Code {
		t.Errorf("%v\nlive\n%v", dump, live)
	}
	// A page of the list is not the list.
	page, err := it.server.Request("GET", peers+"?limit=1", "", nil)
	if err != nil {
		t.Fatal(err)
	}
	Write(t, string(encode(t, page)), it.repository, "east.json")
	if run := Clustermesh(t, it.repository, "verify", "--peers", "east=east.json"); run.Code != 2 ||
		!strings.Contains(run.Stderr, "metadata.continue") {
		t.Error("a page:", run)
	}
}

// Priority and fairness answers 429 as plain text while all seats are taken. It gets the request again until --timeout
// has passed.
func TestTooManyRequests(t *testing.T) {
	it := newSite(t, "reader", "")
	// A webhook that never answers keeps a request, and its seat, for half a minute.
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	objects := map[string]string{
		"/apis/rbac.authorization.k8s.io/v1/clusterrolebindings/reader": `{
			"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding", "metadata": {"name": "reader"},
			"roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"},
			"subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "reader"}]}`,
		"/apis/flowcontrol.apiserver.k8s.io/v1/prioritylevelconfigurations/narrow": `{
			"apiVersion": "flowcontrol.apiserver.k8s.io/v1", "kind": "PriorityLevelConfiguration", "metadata": {"name": "narrow"},
			"spec": {"type": "Limited", "limited": {
				"nominalConcurrencyShares": 0, "borrowingLimitPercent": 0, "limitResponse": {"type": "Reject"}}}}`,
		"/apis/flowcontrol.apiserver.k8s.io/v1/flowschemas/narrow": `{
			"apiVersion": "flowcontrol.apiserver.k8s.io/v1", "kind": "FlowSchema", "metadata": {"name": "narrow"},
			"spec": {"matchingPrecedence": 2, "priorityLevelConfiguration": {"name": "narrow"}, "rules": [{
				"subjects": [{"kind": "User", "user": {"name": "reader"}}],
				"resourceRules": [{"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"], "clusterScope": true, "namespaces": ["*"]}]}]}}`,
		"/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations/silent": `{
			"apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingWebhookConfiguration", "metadata": {"name": "silent"},
			"webhooks": [{"name": "silent.example.com", "sideEffects": "None", "admissionReviewVersions": ["v1"], "timeoutSeconds": 30,
				"clientConfig": {"url": "https://` + listener.Addr().String() + `/"},
				"rules": [{"apiGroups": [""], "apiVersions": ["v1"], "resources": ["configmaps"], "operations": ["CREATE"]}]}]}`,
	}
	for path, document := range objects {
		if err := it.server.Apply([]byte(document)); err != nil {
			t.Fatal(err)
		}
		defer func() {
			if _, err := it.server.Request("DELETE", path, "", nil); err != nil {
				t.Error(err)
			}
		}()
	}
	transport := it.server.client.Transport.(*http.Transport).Clone()
	transport.TLSClientConfig.Certificates = nil
	client := &http.Client{Transport: transport}
	ask := func(method, path, body string) (*http.Response, error) {
		request, err := http.NewRequest(method, it.server.address+path, strings.NewReader(body))
		if err != nil {
			return nil, err
		}
		request.Header.Set("Authorization", "Bearer reader-token")
		request.Header.Set("Content-Type", "application/json")
		return client.Do(request)
	}
	// The server takes a moment to apply all of them: until then, what is created fails or succeeds at once.
	full := false
	for try := 0; try < 60 && !full; try++ {
		document := fmt.Sprintf(`{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "held-%d"}}`, try)
		go func() { _, _ = ask("POST", "/api/v1/namespaces/default/configmaps", document) }()
		time.Sleep(time.Second)
		response, err := ask("GET", "/api/v1/nodes?limit=1", "")
		if err != nil {
			t.Fatal(err)
		}
		_ = response.Body.Close()
		full = response.StatusCode == http.StatusTooManyRequests
	}
	if !full {
		t.Fatal("the server accepts more requests than one")
	}
	started := time.Now()
	run := it.run(t, "snapshot", "east", "--timeout", "6")
	took := time.Since(started)
	if run.Code != 2 || !strings.Contains(run.Stderr, "429") {
		t.Fatal(run)
	}
	if took < 4*time.Second || took > time.Minute {
		t.Errorf("given up after %s: %v", took, run)
	}
}
