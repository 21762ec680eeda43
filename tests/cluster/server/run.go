//go:build !oldest

package main

import (
	"context"

	"k8s.io/kubernetes/cmd/kube-apiserver/app/options"
	"k8s.io/kubernetes/pkg/controller/garbagecollector"
)

// complete and runCollector are what differs in the oldest version.
func complete(ctx context.Context, settings *options.ServerRunOptions) (options.CompletedOptions, error) {
	return settings.Complete(ctx)
}

func runCollector(ctx context.Context, collector *garbagecollector.GarbageCollector) {
	collector.Run(ctx, collectorWorkers, collectorPeriod)
}
