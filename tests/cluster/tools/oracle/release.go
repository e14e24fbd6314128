//go:build !v134

package main

import (
	"context"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apiserver/pkg/util/feature"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/tools/cache"
	"k8s.io/dynamic-resource-allocation/deviceclass/extendedresourcecache"
	resourceslicetracker "k8s.io/dynamic-resource-allocation/resourceslice/tracker"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/features"
	internalcache "k8s.io/kubernetes/pkg/scheduler/backend/cache"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/dynamicresources"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/nodevolumelimits"
	frameworkruntime "k8s.io/kubernetes/pkg/scheduler/framework/runtime"
	"k8s.io/kubernetes/pkg/scheduler/util/assumecache"
)

type (
	claimTracker  = fwk.ResourceClaimTracker
	deviceManager = fwk.SharedDRAManager
	podNominator  = fwk.PodNominator
)

func newCache(ctx context.Context) internalcache.Cache {
	return internalcache.New(ctx, nil, feature.DefaultFeatureGate.Enabled(features.GenericWorkload))
}

func releaseOptions(factory informers.SharedInformerFactory, known internalcache.Cache) []frameworkruntime.Option {
	volumes := nodevolumelimits.NewCSIManager(factory.Storage().V1().CSINodes().Lister())
	return []frameworkruntime.Option{
		frameworkruntime.WithSharedCSIManager(volumes),
		frameworkruntime.WithPodsInPreBind(frameworkruntime.NewPodsInPreBindMap()),
		frameworkruntime.WithPodGroupManager(known),
	}
}

// newDeviceManager makes the manager of device claims as the kube-scheduler does.
func newDeviceManager(ctx context.Context, factory informers.SharedInformerFactory) (deviceManager, error) {
	resources := factory.Resource().V1()
	claims := assumecache.NewAssumeCache(klog.FromContext(ctx), resources.ResourceClaims().Informer(), "ResourceClaim", "", nil)
	options := resourceslicetracker.Options{
		EnableDeviceTaintRules:   feature.DefaultFeatureGate.Enabled(features.DRADeviceTaintRules),
		EnableConsumableCapacity: feature.DefaultFeatureGate.Enabled(features.DRAConsumableCapacity),
		SliceInformer:            resources.ResourceSlices(),
	}
	if options.EnableDeviceTaintRules {
		options.TaintInformer = factory.Resource().V1beta2().DeviceTaintRules()
		options.ClassInformer = resources.DeviceClasses()
	}
	slices, err := resourceslicetracker.StartTracker(ctx, options)
	if err != nil {
		return nil, err
	}
	manager := dynamicresources.NewDRAManager(ctx, claims, slices, factory)
	if classes, ok := manager.DeviceClassResolver().(*extendedresourcecache.ExtendedResourceCache); ok && classes != nil {
		if _, err := resources.DeviceClasses().Informer().AddEventHandler(classes); err != nil {
			return nil, err
		}
	}
	return manager, nil
}

func endPendingAllocation(tracker claimTracker, claim types.UID) {
	tracker.MaybeRemoveClaimPendingAllocation(claim, true)
}

// registered is returned for a handler by an informer that is always up to date.
type registered struct{}

func (registered) HasSynced() bool                     { return true }
func (registered) HasSyncedChecker() cache.DoneChecker { return upToDate }

var upToDate = done{closed: func() chan struct{} { made := make(chan struct{}); close(made); return made }()}

type done struct{ closed chan struct{} }

func (done) Name() string            { return "fed" }
func (d done) Done() <-chan struct{} { return d.closed }
