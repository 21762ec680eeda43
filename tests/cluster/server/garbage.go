package main

import (
	"context"
	"time"

	"k8s.io/client-go/discovery"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/metadata/metadatainformer"
	"k8s.io/client-go/restmapper"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/controller-manager/pkg/informerfactory"
	"k8s.io/kubernetes/pkg/controller/garbagecollector"
)

// The defaults of kube-controller-manager: requests a second, and objects that are handled in parallel.
const collectorRate, collectorBurst, collectorWorkers = 20, 30, 20

// How often the collector looks for new kinds. In kube-controller-manager that is half a minute.
const collectorPeriod = time.Second

// collectGarbage runs the garbage collector of kube-controller-manager, and nothing else of it.
func collectGarbage(ctx context.Context, kubeconfig string) error {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return err
	}
	config.QPS, config.Burst = collectorRate, collectorBurst
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	kinds, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return err
	}
	// As there, because each deletion takes two requests.
	config.QPS *= 2
	objects, err := metadata.NewForConfig(config)
	if err != nil {
		return err
	}
	typed := informers.NewSharedInformerFactory(client, 0)
	all := informerfactory.NewInformerFactory(typed, metadatainformer.NewSharedInformerFactory(objects, 0))
	mapper := restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(client.Discovery()))
	started := make(chan struct{})
	collector, err := garbagecollector.NewGarbageCollector(
		ctx, client, objects, mapper, garbagecollector.DefaultIgnoredResources(), all, started)
	if err != nil {
		return err
	}
	all.Start(ctx.Done())
	close(started)
	go runCollector(ctx, collector)
	go collector.Sync(ctx, kinds, collectorPeriod)
	return nil
}
