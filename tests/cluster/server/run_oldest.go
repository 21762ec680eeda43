//go:build oldest

package main

import (
	"context"

	"k8s.io/kubernetes/cmd/kube-apiserver/app/options"
	"k8s.io/kubernetes/pkg/controller/garbagecollector"
)

func complete(_ context.Context, settings *options.ServerRunOptions) (options.CompletedOptions, error) {
	return settings.Complete()
}

func runCollector(ctx context.Context, collector *garbagecollector.GarbageCollector) {
	collector.Run(ctx, collectorWorkers)
}
