package argocd

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/argoproj/argo-cd/v3/pkg/apis/application/v1alpha1"
	"github.com/argoproj/argo-cd/v3/reposerver/apiclient"
	"github.com/argoproj/argo-cd/v3/reposerver/repository"
	"github.com/argoproj/argo-cd/v3/util/app/path"
	argodiff "github.com/argoproj/argo-cd/v3/util/argo/diff"
	"github.com/argoproj/argo-cd/v3/util/argo/normalizers"
	"github.com/argoproj/argo-cd/v3/util/git"
	utilio "github.com/argoproj/argo-cd/v3/util/io"
	"github.com/argoproj/argo-cd/v3/util/settings"
	"github.com/argoproj/gitops-engine/pkg/cache"
	"github.com/argoproj/gitops-engine/pkg/engine"
	"github.com/argoproj/gitops-engine/pkg/sync"
	"github.com/argoproj/gitops-engine/pkg/sync/common"
	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/yaml"

	"clustermesh.test/cluster"
)

// application is an Application and the checkout of its repository.
type application struct {
	*v1alpha1.Application
	repository string
	// Patterns of repo-server's --plugin-tar-exclude.
	exclude []string
	// How long the caller of repo-server waits.
	deadline time.Duration
	// The account that applies, with all rights; without it, an administrator.
	account string
	// Its project. Without it, everything is permitted.
	project *v1alpha1.AppProject
	// The kinds that Argo CD leaves out; without it, none.
	filter *settings.ResourcesFilter
}

// shipped is the Application of argocd/application.yaml, for a target.
func shipped(t *testing.T, repository, target string) *application {
	t.Helper()
	app := cluster.Read[v1alpha1.Application](t, cluster.Project(t, "argocd", "application.yaml"))
	app.Name = strings.Replace(app.Name, "west", target, 1)
	app.Spec.Source.Path = strings.Replace(app.Spec.Source.Path, "west", target, 1)
	return &application{Application: app, repository: repository, deadline: time.Minute}
}

// generate asks repo-server's code for the objects of the Application.
func (a *application) generate() ([]*unstructured.Unstructured, error) {
	ctx, cancel := context.WithTimeout(context.Background(), a.deadline)
	defer cancel()
	source := a.Spec.GetSource()
	request := &apiclient.ManifestRequest{
		Repo:              &v1alpha1.Repository{Repo: source.RepoURL},
		Revision:          source.TargetRevision,
		AppName:           a.Name,
		AppLabelKey:       "app.kubernetes.io/instance",
		TrackingMethod:    string(v1alpha1.TrackingMethodAnnotation),
		Namespace:         a.Spec.Destination.Namespace,
		ApplicationSource: &source,
		KubeVersion:       "1.36.3",
		ApiVersions:       []string{"v1", "kilo.squat.ai/v1alpha1", "kilo.squat.ai/v1alpha1/Peer"},
		KustomizeOptions:  &v1alpha1.KustomizeOptions{BinaryPath: os.Getenv("KUSTOMIZE")},
		ProjectName:       a.Spec.Project,
	}
	folder, err := path.Path(a.repository, source.Path)
	if err != nil {
		return nil, err
	}
	response, err := repository.GenerateManifests(ctx, folder, a.repository,
		strings.Repeat("a", 40), request, false, git.NoopCredsStore{}, resource.MustParse("10M"),
		utilio.NewRandomizedTempPaths(os.TempDir()),
		repository.WithCMPTarDoneChannel(make(chan bool, 1)),
		repository.WithCMPTarExcludedGlobs(a.exclude))
	if err != nil {
		return nil, err
	}
	var objects []*unstructured.Unstructured
	for _, it := range response.Manifests {
		object := &unstructured.Unstructured{}
		if err := json.Unmarshal([]byte(it), object); err != nil {
			return nil, err
		}
		objects = append(objects, object)
	}
	return objects, nil
}

const tracking = "argocd.argoproj.io/tracking-id"

// plain returns objects as they are rendered. Argo CD may add its tracking annotation, and must.
func plain(t *testing.T, objects []*unstructured.Unstructured) []cluster.Object {
	t.Helper()
	var found []cluster.Object
	for _, it := range objects {
		if it.GetAnnotations()[tracking] == "" {
			t.Errorf("%s is not tracked", it.GetName())
		}
		found = append(found, it.Object)
	}
	return cluster.Bare(found)
}

// outcome is the result of a sync, by the names of the Peers.
type outcome struct {
	synced, pruned []string
	// Automated syncs do not run if every resource would be pruned.
	refusedIfAutomated bool
}

// connection is a connection to the cluster to which an Application delivers.
type connection struct {
	gitops engine.GitOpsEngine
	live   cache.ClusterCache
	stop   engine.StopFunc
	host   string
}

// connect reads the objects of the cluster.
func (a *application) connect(server *cluster.Server) (*connection, error) {
	config, err := clientcmd.BuildConfigFromFlags("", server.Kubeconfig)
	if err != nil {
		return nil, err
	}
	config.QPS, config.Burst = 50, 300
	if a.account != "" {
		config.Impersonate = rest.ImpersonationConfig{UserName: a.account, Groups: []string{"system:masters"}}
	}
	options := []cache.UpdateSettingsFunc{
		cache.SetLogr(logr.Discard()),
		cache.SetPopulateResourceInfoHandler(func(it *unstructured.Unstructured, _ bool) (any, bool) {
			id := it.GetAnnotations()[tracking]
			return id, id != ""
		}),
	}
	if a.filter != nil {
		options = append(options, cache.SetSettings(cache.Settings{
			ResourcesFilter: a.filter,
		}))
	}
	live := cache.NewClusterCache(config, options...)
	gitops := engine.NewEngine(config, live, engine.WithLogr(logr.Discard()))
	stop, err := gitops.Run()
	return &connection{gitops, live, stop, config.Host}, err
}

// targets generates the objects, without those that the filter leaves out (controller/state.go, CompareAppState).
func (a *application) targets(to *connection) ([]*unstructured.Unstructured, error) {
	objects, err := a.generate()
	return slices.DeleteFunc(objects, func(it *unstructured.Unstructured) bool {
		kind := it.GroupVersionKind()
		return a.filter != nil && a.filter.IsExcludedResource(kind.Group, kind.Kind, to.host)
	}), err
}

// owns is whether an object was delivered by the Application.
func (a *application) owns(it *cache.Resource) bool {
	id, _ := it.Info.(string)
	return strings.HasPrefix(id, a.Name+":")
}

// permit is the check of the project for each object (controller/sync.go, SyncAppState).
func (a *application) permit(it *unstructured.Unstructured, resource *metav1.APIResource) error {
	if a.project == nil {
		return nil
	}
	if kind := it.GroupVersionKind().GroupKind(); !a.project.IsGroupKindPermitted(kind, resource.Namespaced) {
		return fmt.Errorf("resource %v is not permitted in project %s", kind, a.project.Name)
	}
	destination := &v1alpha1.Cluster{Name: a.Spec.Destination.Name, Server: "https://west.example.com"}
	permitted, err := a.project.IsDestinationPermitted(destination, it.GetNamespace(), nil)
	if err == nil && resource.Namespaced && !permitted {
		err = fmt.Errorf("namespace %s is not permitted in project %s", it.GetNamespace(), a.project.Name)
	}
	return err
}

// sync generates and applies with prune, with the options of the Application.
func (a *application) sync(t *testing.T, server *cluster.Server) (outcome, error) {
	t.Helper()
	var done outcome
	to, err := a.connect(server)
	if err != nil {
		return done, err
	}
	defer to.stop()
	objects, err := a.targets(to)
	if err != nil {
		return done, err
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	options := a.Spec.SyncPolicy.SyncOptions
	policy := a.prunePropagation()
	results, err := to.gitops.Sync(ctx, objects, a.owns, "revision", a.Spec.Destination.Namespace,
		sync.WithLogr(logr.Discard()),
		sync.WithPermissionValidator(a.permit),
		sync.WithPrune(a.Spec.SyncPolicy.Automated.Prune),
		sync.WithPruneLast(options.HasOption("PruneLast=true")),
		sync.WithPrunePropagationPolicy(&policy),
		sync.WithManifestValidation(true),
		sync.WithServerSideApply(options.HasOption("ServerSideApply=true")),
		sync.WithServerSideApplyManager("argocd-controller"),
		sync.WithSkipDryRunOnMissingResource(options.HasOption("SkipDryRunOnMissingResource=true")))
	for _, it := range results {
		switch it.Status {
		case common.ResultCodePruned:
			done.pruned = append(done.pruned, it.ResourceKey.Name)
		case common.ResultCodeSynced:
			done.synced = append(done.synced, it.ResourceKey.Name)
		default:
			err = errors.Join(err, fmt.Errorf("%s: %s: %s", it.ResourceKey.Name, it.Status, it.Message))
		}
	}
	slices.Sort(done.synced)
	slices.Sort(done.pruned)
	done.refusedIfAutomated = len(objects) == 0 && !a.Spec.SyncPolicy.Automated.AllowEmpty
	return done, err
}

// outOfSync returns the names of the objects that Argo CD would report as OutOfSync, compared as the Application asks
// for (controller/state.go, CompareAppState).
func (a *application) outOfSync(t *testing.T, server *cluster.Server) []string {
	t.Helper()
	to, err := a.connect(server)
	if err != nil {
		t.Fatal(err)
	}
	defer to.stop()
	objects, err := a.targets(to)
	if err != nil {
		t.Fatal(err)
	}
	live, err := to.live.GetManagedLiveObjs(objects, a.owns)
	if err != nil {
		t.Fatal(err)
	}
	both := sync.Reconcile(objects, live, a.Spec.Destination.Namespace, to.live)
	config, err := argodiff.NewDiffConfigBuilder().
		WithDiffSettings(a.Spec.IgnoreDifferences, nil, true, normalizers.IgnoreNormalizerOpts{}).
		WithTracking("app.kubernetes.io/instance", string(v1alpha1.TrackingMethodAnnotation)).
		WithNoCache().
		WithGVKParser(to.live.GetGVKParser()).
		WithManager("argocd-controller").
		WithStructuredMergeDiff(a.Spec.SyncPolicy.SyncOptions.HasOption("ServerSideApply=true")).
		Build()
	if err != nil {
		t.Fatal(err)
	}
	result, err := argodiff.StateDiffs(both.Live, both.Target, config)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for place, it := range result.Diffs {
		if !it.Modified {
			continue
		}
		object := both.Target[place]
		if object == nil {
			object = both.Live[place]
		}
		names = append(names, object.GetName())
	}
	return names
}

// prunePropagation is how objects are deleted (controller/sync.go). Only what is deleted in the background goes without
// a garbage collector.
func (a *application) prunePropagation() metav1.DeletionPropagation {
	options := a.Spec.SyncPolicy.SyncOptions
	switch {
	case options.HasOption("PrunePropagationPolicy=background"):
		return metav1.DeletePropagationBackground
	case options.HasOption("PrunePropagationPolicy=orphan"):
		return metav1.DeletePropagationOrphan
	default:
		return metav1.DeletePropagationForeground
	}
}

// autoSync syncs as the application controller does on its own: not if this would prune every resource
// (controller/appcontroller.go, autoSync).
func (a *application) autoSync(t *testing.T, server *cluster.Server) (outcome, error) {
	t.Helper()
	objects, err := a.generate()
	if err != nil || len(objects) == 0 && !a.Spec.SyncPolicy.Automated.AllowEmpty {
		return outcome{refusedIfAutomated: err == nil}, err
	}
	return a.sync(t, server)
}

// documents reads all objects of a kind from the files of argocd/.
func documents[T any](t *testing.T, kind string) []*T {
	t.Helper()
	var found []*T
	for _, file := range cluster.Files(t, "argocd", "*.yaml") {
		for _, document := range cluster.Documents(t, file) {
			var meta metav1.TypeMeta
			if err := yaml.Unmarshal(document, &meta); err != nil {
				t.Fatal(file, err)
			}
			if meta.Kind != kind {
				continue
			}
			into := new(T)
			if err := yaml.UnmarshalStrict(document, into); err != nil {
				t.Fatal(file, err)
			}
			found = append(found, into)
		}
	}
	if len(found) == 0 {
		t.Fatal("no", kind)
	}
	return found
}
