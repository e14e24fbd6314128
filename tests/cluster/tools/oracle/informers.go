package main

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/informers"
	clientset "k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/tools/cache"
)

// apiServer is where nothing is: the plugins that this program runs read from informers alone.
var apiServer clientset.Interface = fake.NewClientset()

// fed is an informer that is filled by hand: it lists and watches nothing and starts no goroutine. The methods of the
// interface that it does not have are those of a running informer.
type fed struct {
	cache.SharedIndexInformer
	indexer  cache.Indexer
	handlers []cache.ResourceEventHandler
}

func newFed() *fed {
	indexers := cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc}
	return &fed{indexer: cache.NewIndexer(cache.DeletionHandlingMetaNamespaceKeyFunc, indexers)}
}

func (f *fed) put(one any) error {
	before, present, err := f.indexer.Get(one)
	if err != nil {
		return err
	}
	if err := f.indexer.Update(one); err != nil {
		return err
	}
	for _, handler := range f.handlers {
		if present {
			handler.OnUpdate(before, one)
		} else {
			handler.OnAdd(one, false)
		}
	}
	return nil
}

func (f *fed) AddEventHandler(handler cache.ResourceEventHandler) (cache.ResourceEventHandlerRegistration, error) {
	f.handlers = append(f.handlers, handler)
	for _, one := range f.indexer.List() {
		handler.OnAdd(one, true)
	}
	return registered{}, nil
}

func (f *fed) AddEventHandlerWithResyncPeriod(
	handler cache.ResourceEventHandler, _ time.Duration,
) (cache.ResourceEventHandlerRegistration, error) {
	return f.AddEventHandler(handler)
}

func (f *fed) AddEventHandlerWithOptions(
	handler cache.ResourceEventHandler, _ cache.HandlerOptions,
) (cache.ResourceEventHandlerRegistration, error) {
	return f.AddEventHandler(handler)
}

func (f *fed) RemoveEventHandler(cache.ResourceEventHandlerRegistration) error { return nil }
func (f *fed) SetTransform(cache.TransformFunc) error                          { return nil }

func (f *fed) GetStore() cache.Store                     { return f.indexer }
func (f *fed) GetIndexer() cache.Indexer                 { return f.indexer }
func (f *fed) AddIndexers(indexers cache.Indexers) error { return f.indexer.AddIndexers(indexers) }
func (f *fed) HasSynced() bool                           { return true }
func (f *fed) IsStopped() bool                           { return false }
func (f *fed) LastSyncResourceVersion() string           { return "" }

// kinds are the informers whose objects change while a queue of pods is bound, or say how they do.
type kinds struct {
	devices, claims, volumes, classes, csiNodes *fed
}

// filled makes an informer factory whose informers hold the world. An informer of another kind is empty.
func filled(w *world) (informers.SharedInformerFactory, *kinds, error) {
	factory := informers.NewSharedInformerFactory(apiServer, 0)
	k := &kinds{devices: newFed(), claims: newFed(), volumes: newFed(), classes: newFed(), csiNodes: newFed()}
	for _, err := range []error{
		fill(factory, w.Nodes), fill(factory, w.Pods), fill(factory, w.Namespaces),
		fillInto(factory, k.volumes, w.PersistentVolumes), fillInto(factory, k.claims, w.PersistentVolumeClaims),
		fillInto(factory, k.classes, w.StorageClasses), fillInto(factory, k.csiNodes, w.CSINodes),
		fill(factory, w.CSIDrivers), fill(factory, w.CSIStorageCapacities), fill(factory, w.VolumeAttachments),
		fillInto(factory, k.devices, w.ResourceClaims), fill(factory, w.ResourceSlices),
		fill(factory, w.DeviceClasses), fill(factory, w.PodDisruptionBudgets), fill(factory, w.Services),
		fill(factory, w.ReplicaSets), fill(factory, w.StatefulSets),
		fill(factory, []*corev1.ReplicationController{}),
	} {
		if err != nil {
			return nil, nil, err
		}
	}
	return factory, k, nil
}

func get[T any](from *fed, key string) (*T, bool, error) {
	found, present, err := from.indexer.GetByKey(key)
	if err != nil || !present {
		return nil, false, err
	}
	return found.(*T), true, nil
}

func fill[T object](factory informers.SharedInformerFactory, objects []T) error {
	return fillInto(factory, newFed(), objects)
}

func fillInto[T object](factory informers.SharedInformerFactory, informer *fed, objects []T) error {
	factory.InformerFor(
		*new(T), func(clientset.Interface, time.Duration) cache.SharedIndexInformer { return informer },
	)
	for _, one := range objects {
		if err := informer.put(one); err != nil {
			return err
		}
	}
	return nil
}
