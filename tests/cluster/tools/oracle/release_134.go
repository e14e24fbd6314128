//go:build v134

package main

import (
	"context"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apiserver/pkg/util/feature"
	"k8s.io/client-go/informers"
	resourceslicetracker "k8s.io/dynamic-resource-allocation/resourceslice/tracker"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/pkg/features"
	internalcache "k8s.io/kubernetes/pkg/scheduler/backend/cache"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/dynamicresources"
	frameworkruntime "k8s.io/kubernetes/pkg/scheduler/framework/runtime"
	"k8s.io/kubernetes/pkg/scheduler/util/assumecache"
)

type (
	claimTracker  = framework.ResourceClaimTracker
	deviceManager = framework.SharedDRAManager
	podNominator  = framework.PodNominator
)

// forever is the kube-scheduler's time until an assumed pod expires.
const forever = 0

func newCache(ctx context.Context) internalcache.Cache { return internalcache.New(ctx, forever, nil) }

func releaseOptions(informers.SharedInformerFactory, internalcache.Cache) []frameworkruntime.Option {
	return nil
}

// newDeviceManager makes the manager of device claims as the kube-scheduler does.
func newDeviceManager(ctx context.Context, factory informers.SharedInformerFactory) (deviceManager, error) {
	resources := factory.Resource().V1()
	claims := assumecache.NewAssumeCache(klog.FromContext(ctx), resources.ResourceClaims().Informer(), "ResourceClaim", "", nil)
	options := resourceslicetracker.Options{
		EnableDeviceTaints:       feature.DefaultFeatureGate.Enabled(features.DRADeviceTaints),
		EnableConsumableCapacity: feature.DefaultFeatureGate.Enabled(features.DRAConsumableCapacity),
		SliceInformer:            resources.ResourceSlices(),
	}
	if options.EnableDeviceTaints {
		options.TaintInformer = factory.Resource().V1alpha3().DeviceTaintRules()
		options.ClassInformer = resources.DeviceClasses()
	}
	slices, err := resourceslicetracker.StartTracker(ctx, options)
	if err != nil {
		return nil, err
	}
	return dynamicresources.NewDRAManager(ctx, claims, slices, factory), nil
}

func endPendingAllocation(tracker claimTracker, claim types.UID) {
	tracker.RemoveClaimPendingAllocation(claim)
}

// registered is returned for a handler by an informer that is always up to date.
type registered struct{}

func (registered) HasSynced() bool { return true }
