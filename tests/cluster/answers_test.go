package cluster

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"regexp"
	"testing"
	"time"
)

// answer is an answer of an API server. tests/integration/api_server gives the same ones.
type answer struct {
	Name string `json:"name"`
	Path string `json:"path"`
	// A context of server/identities.go.
	User        string `json:"user"`
	Status      int    `json:"status"`
	ContentType string `json:"contentType"`
	// Without what differs between two servers.
	Body string `json:"body"`
}

// The objects of a list, and what each server chooses.
var (
	items  = regexp.MustCompile(`"items":\[.+\]`)
	chosen = regexp.MustCompile(`"(continue|resourceVersion)":"[^"]+"`)
)

// The answers that the tests of `snapshot` and `status` rely on are those of a real server.
// UPDATE_VECTORS=1 writes the file.
func TestAnswers(t *testing.T) {
	server := Start(t)
	server.DeletePeers(t)
	server.DeleteNodes(t)
	random := rand.New(rand.NewPCG(3, 4))
	for number := range 2 {
		Node{Number: number + 1, Key: NewKey(random)}.Create(t, server)
	}
	defer server.DeleteNodes(t)
	if err := server.Apply([]byte(laptop)); err != nil {
		t.Fatal(err)
	}
	// Tokens for the resource version 1, and of another version of the format.
	const expired = "eyJ2IjoibWV0YS5rOHMuaW8vdjEiLCJydiI6MSwic3RhcnQiOiJ4MVx1MDAwMCJ9"
	const unknown = "eyJ2IjoibWV0YS5rOHMuaW8vdjIiLCJydiI6MSwic3RhcnQiOiJ4MVx1MDAwMCJ9"
	answers := []answer{
		{Name: "nodes", Path: "/api/v1/nodes", User: "admin"},
		{Name: "a page of nodes", Path: "/api/v1/nodes?limit=1", User: "admin"},
		{Name: "an expired page", Path: "/api/v1/nodes?limit=1&continue=" + expired, User: "admin"},
		{Name: "a token of another format", Path: "/api/v1/nodes?limit=1&continue=" + unknown, User: "admin"},
		{Name: "a limit that is not a number", Path: "/api/v1/nodes?limit=x", User: "admin"},
		{Name: "Peers", Path: peers + "?limit=250", User: "admin"},
		{Name: "a group", Path: "/apis/kilo.squat.ai", User: "admin"},
		{Name: "no such group", Path: "/apis/none.example.com", User: "admin"},
		{Name: "no such version", Path: "/apis/kilo.squat.ai/v1alpha2/peers", User: "admin"},
		{Name: "no such resource", Path: "/api/v1/nothings", User: "admin"},
		{Name: "no such Secret", Path: "/api/v1/namespaces/kilo/secrets/none", User: "admin"},
		{Name: "a wrong token", Path: "/api/v1/nodes", User: "unknown"},
		{Name: "no rights", Path: "/api/v1/nodes", User: "stranger"},
	}
	for place := range answers {
		it := &answers[place]
		server.ask(t, it)
		// The server forgets it soon after its start.
		for try := 0; it.Name == "an expired page" && it.Status != http.StatusGone && try < 60; try++ {
			time.Sleep(time.Second)
			server.Namespace(t, fmt.Sprintf("answers-%d", try))
			server.ask(t, it)
		}
	}
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	if err := encoder.Encode(answers); err != nil {
		t.Fatal(err)
	}
	file := Project(t, "tests", "vectors", "api-server.json")
	if os.Getenv("UPDATE_VECTORS") != "" {
		Write(t, text.String(), file)
	}
	recorded, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(recorded, text.Bytes()) {
		t.Errorf("not as in %s: run with UPDATE_VECTORS=1, and compare\n%s", file, text.String())
	}
}

// ask fills in what comes back.
func (s *Server) ask(t *testing.T, it *answer) {
	t.Helper()
	transport := s.client.Transport.(*http.Transport).Clone()
	request, err := http.NewRequest(http.MethodGet, s.address+it.Path, nil)
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Accept", "application/json")
	if it.User != "admin" {
		transport.TLSClientConfig.Certificates = nil
		request.Header.Set("Authorization", "Bearer "+it.User+"-token")
	}
	response, err := (&http.Client{Transport: transport}).Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	text = items.ReplaceAll(text, []byte(`"items":[]`))
	it.Body = string(chosen.ReplaceAll(text, []byte(`"$1":"…"`)))
	it.Status, it.ContentType = response.StatusCode, response.Header.Get("Content-Type")
}
