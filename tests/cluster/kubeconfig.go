package cluster

import (
	"encoding/json"
	"os"
	"testing"
)

// Login is how a kubeconfig reaches a server.
type Login struct {
	Server *Server
	// A context of server/identities.go.
	Context string
	// Takes the place of the credentials of the context.
	Token string
}

// Kubeconfig returns a kubeconfig with a context, a cluster and a user for each name. One of the contexts is
// the current one.
func Kubeconfig(t testing.TB, logins map[string]Login) string {
	t.Helper()
	joined := struct {
		APIVersion string  `json:"apiVersion"`
		Kind       string  `json:"kind"`
		Clusters   []entry `json:"clusters"`
		Users      []entry `json:"users"`
		Contexts   []entry `json:"contexts"`
		Current    string  `json:"current-context"`
	}{APIVersion: "v1", Kind: "Config"}
	for name, login := range logins {
		joined.Current = name
		text, err := os.ReadFile(login.Server.Kubeconfig)
		if err != nil {
			t.Fatal(err)
		}
		var own struct{ Clusters, Users, Contexts []entry }
		if err := json.Unmarshal(text, &own); err != nil {
			t.Fatal(err)
		}
		context := find(t, own.Contexts, login.Context).Context
		cluster := find(t, own.Clusters, context["cluster"].(string)).Cluster
		user := find(t, own.Users, context["user"].(string)).User
		if login.Token != "" {
			user = Object{"token": login.Token}
		}
		joined.Clusters = append(joined.Clusters, entry{Name: name, Cluster: cluster})
		joined.Users = append(joined.Users, entry{Name: name, User: user})
		joined.Contexts = append(joined.Contexts, entry{Name: name, Context: Object{"cluster": name, "user": name}})
	}
	text, err := json.Marshal(joined)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// entry is an entry of a list in a kubeconfig.
type entry struct {
	Name    string `json:"name"`
	Cluster Object `json:"cluster,omitempty"`
	User    Object `json:"user,omitempty"`
	Context Object `json:"context,omitempty"`
}

func find(t testing.TB, entries []entry, name string) entry {
	t.Helper()
	for _, it := range entries {
		if it.Name == name {
			return it
		}
	}
	t.Fatal("the kubeconfig does not contain", name)
	return entry{}
}
