package flux

import (
	"slices"
	"strings"
	"testing"
	"time"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	"sigs.k8s.io/yaml"

	"clustermesh.test/cluster"
)

// services is a Flux with the files for Services, and with its rights in a server.
func services(t *testing.T, server *cluster.Server) *controllers {
	t.Helper()
	flux := shipped(t, cluster.ServiceTarget)
	flux.kustomization = cluster.Read[kustomizev1.Kustomization](t, cluster.Project(t, "flux", "services-west.yaml"))
	spec := flux.kustomization.Spec
	if spec.DeletionPolicy != kustomizev1.DeletionPolicyOrphan || !spec.Prune || !spec.Wait || spec.Force {
		t.Errorf("%+v", spec)
	}
	server.Namespace(t, cluster.ServiceNamespace)
	server.Namespace(t, "flux-system")
	for _, document := range cluster.Documents(t, cluster.Project(t, "flux", "services-west-rbac.yaml")) {
		if err := server.Apply(document); err != nil {
			t.Fatal(err)
		}
	}
	server.DeleteServices(t)
	return flux
}

// deliver reconciles. The server knows new rights after a moment.
func (c *controllers) deliver(t *testing.T, server *cluster.Server, repository string) outcome {
	t.Helper()
	var failure error
	for range 50 {
		done, err := c.reconcile(t, server, repository)
		if err == nil {
			return done
		}
		failure = err
		if !strings.Contains(err.Error(), "forbidden") {
			break
		}
		time.Sleep(100 * time.Millisecond)
	}
	t.Fatal(failure)
	return outcome{}
}

// Flux stores the Services as they are rendered. A second reconcile writes nothing. Services that are no longer rendered
// are deleted, also the last one.
func TestServices(t *testing.T) {
	server := cluster.Start(t)
	flux := services(t, server)
	repository := cluster.WithServices(t, "api", "web")
	flux.deliver(t, server, repository)
	cluster.Same(t, server.Services(t), cluster.RenderedServices(t, repository, cluster.ServiceTarget))
	if found := len(server.Services(t)); found != 4 {
		t.Errorf("%d objects", found)
	}
	versions := server.ServiceVersions(t)
	if done := flux.deliver(t, server, repository); len(done.applied)+len(done.deleted) != 0 {
		t.Errorf("%+v", done)
	}
	if now := server.ServiceVersions(t); !slices.Equal(now, versions) {
		t.Errorf("%v instead of %v", now, versions)
	}
	for _, names := range [][]string{{"api"}, nil} {
		cluster.SetServices(t, repository, names...)
		if done := flux.deliver(t, server, repository); len(done.applied) != 0 || len(done.deleted) != 2 {
			t.Errorf("%+v", done)
		}
		if found := len(server.Services(t)); found != 2*len(names) {
			t.Errorf("%d objects", found)
		}
	}
}

// The page shows the `ignore` of the source. Without its line for Services, Flux reports that the folder is missing, and
// deletes nothing.
func TestServicesNeedTheSource(t *testing.T) {
	server := cluster.Start(t)
	flux := services(t, server)
	repository := cluster.WithServices(t, "api")
	flux.deliver(t, server, repository)
	shown := cluster.Blocks(t, "With Flux", "docs", "how-to", "services.md")["flux/gitrepository.yaml"]
	var spec struct{ Ignore string }
	if err := yaml.Unmarshal([]byte(shown), &spec); err != nil || spec.Ignore != *flux.source.Spec.Ignore {
		t.Error(shown, err)
	}
	ignore := strings.Replace(*flux.source.Spec.Ignore, "!/rendered-services\n", "", 1)
	flux.source.Spec.Ignore = &ignore
	if _, err := flux.reconcile(t, server, repository); err == nil || !strings.Contains(err.Error(), "path not found") {
		t.Error(err)
	}
	if found := len(server.Services(t)); found != 2 {
		t.Errorf("%d objects", found)
	}
}

// A namespace that is missing holds back the other Services of the cluster, and no Peer.
func TestServicesWithoutNamespace(t *testing.T) {
	server := cluster.StartOthers(t, 1)[0]
	flux := services(t, server)
	repository := cluster.WithServices(t, "api", "web")
	cluster.LateNamespace(t, repository)
	for account, refusal := range map[string]string{flux.kustomization.Spec.ServiceAccountName: "forbidden", "": "not found"} {
		flux.kustomization.Spec.ServiceAccountName = account
		done, err := flux.reconcile(t, server, repository)
		if err == nil || !strings.Contains(err.Error(), refusal) || len(done.applied) != 0 {
			t.Errorf("%+v %v", done, err)
		}
	}
	if found := len(server.Services(t)); found != 0 {
		t.Errorf("%d objects", found)
	}
	peers := shipped(t, cluster.ServiceTarget)
	if _, err := peers.reconcile(t, server, repository); err != nil {
		t.Error(err)
	}
	cluster.Same(t, server.Peers(t), cluster.Rendered(t, repository, cluster.ServiceTarget))
}

// Flux takes over a Service of the same name, which then has both endpoints and is deleted with the item. With the guard
// or with its rights, it applies nothing.
func TestForeignService(t *testing.T) {
	server := cluster.StartOthers(t, 1)[0]
	flux := services(t, server)
	repository := cluster.WithServices(t, "api", "web")
	deliver := func() error {
		flux.deliver(t, server, repository)
		return nil
	}
	refused := func(before []string) {
		t.Helper()
		done, err := flux.reconcile(t, server, repository)
		if err == nil || !strings.Contains(err.Error(), "not created by clustermesh") || len(done.applied) != 0 {
			t.Errorf("%+v %v", done, err)
		}
		if now := server.ServiceVersions(t); !slices.Equal(now, before) {
			t.Errorf("%v instead of %v", now, before)
		}
	}
	account := flux.kustomization.Spec.ServiceAccountName
	flux.kustomization.Spec.ServiceAccountName = ""
	cluster.TakeOverService(t, server, repository, 80, deliver)
	refused(cluster.StartGuardedService(t, server, repository))
	cluster.ChangeGuardedServices(t, server, repository, deliver)

	cluster.RemoveServiceGuard(t, server)
	flux.kustomization.Spec.ServiceAccountName = account
	refused(cluster.ForeignService(t, server))
	cluster.ChangeGuardedServices(t, server, repository, deliver)
}

// The rights end at Services of the namespace.
func TestServiceRights(t *testing.T) {
	server := cluster.Start(t)
	for name, planted := range cluster.BesideServices {
		t.Run(name, func(t *testing.T) {
			flux := services(t, server)
			repository := cluster.WithServices(t, "api")
			flux.deliver(t, server, repository)
			cluster.Write(t, planted, repository, "rendered-services/west/planted.yaml")
			cluster.Replace(t, "resources:\n", "resources:\n- planted.yaml\n", repository, "rendered-services/west/kustomization.yaml")
			done, err := flux.reconcile(t, server, repository)
			if err == nil || !strings.Contains(err.Error(), "forbidden") || len(done.applied)+len(done.deleted) != 0 {
				t.Errorf("%+v %v", done, err)
			}
		})
	}
}

// Of the Services of the namespace, the account may only write such as clustermesh renders.
func TestServiceShape(t *testing.T) {
	server := cluster.Start(t)
	flux := services(t, server)
	const head = "{apiVersion: v1, kind: Service, metadata: {name: planted, namespace: shop"
	const label = ", labels: {kilo-clustermesh.io/source-cluster: east}"
	for name, row := range map[string]struct{ planted, refusal string }{
		"without the label": {head + "}, spec: {ports: [{port: 80}]}}", "of clustermesh"},
		"a slice without it": {
			"{apiVersion: discovery.k8s.io/v1, kind: EndpointSlice, addressType: IPv4, endpoints: [], metadata: {name: planted, namespace: shop}}",
			"of clustermesh",
		},
		"a load balancer": {head + label + "}, spec: {type: LoadBalancer, ports: [{port: 80}]}}", "of type ClusterIP"},
		"other addresses": {head + label + "}, spec: {externalIPs: [192.0.2.1], ports: [{port: 80}]}}", "of type ClusterIP"},
		"pods":            {head + label + "}, spec: {selector: {app: dns}, ports: [{port: 80}]}}", "of type ClusterIP"},
	} {
		t.Run(name, func(t *testing.T) {
			repository := cluster.WithServices(t, "api")
			cluster.Write(t, row.planted, repository, "rendered-services/west/planted.yaml")
			cluster.Replace(t, "resources:\n", "resources:\n- planted.yaml\n", repository, "rendered-services/west/kustomization.yaml")
			var err error
			// The policy has an effect after a moment.
			for range 50 {
				if _, err = flux.reconcile(t, server, repository); err != nil && strings.Contains(err.Error(), row.refusal) {
					return
				}
				server.DeleteServices(t)
				time.Sleep(100 * time.Millisecond)
			}
			t.Error(err)
		})
	}
}
