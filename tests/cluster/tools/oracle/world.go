package main

import (
	"fmt"
	"strconv"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	resourcev1 "k8s.io/api/resource/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/kubernetes/pkg/api/legacyscheme"

	// These register the defaults that the API server sets.
	_ "k8s.io/kubernetes/pkg/apis/core/install"
	_ "k8s.io/kubernetes/pkg/apis/resource/install"
	_ "k8s.io/kubernetes/pkg/apis/storage/install"
)

// world is all objects that a plugin may look at.
type world struct {
	Nodes                  []*corev1.Node                      `json:"nodes"`
	Pods                   []*corev1.Pod                       `json:"pods"`
	Namespaces             []*corev1.Namespace                 `json:"namespaces"`
	PersistentVolumes      []*corev1.PersistentVolume          `json:"persistentVolumes"`
	PersistentVolumeClaims []*corev1.PersistentVolumeClaim     `json:"persistentVolumeClaims"`
	StorageClasses         []*storagev1.StorageClass           `json:"storageClasses"`
	CSINodes               []*storagev1.CSINode                `json:"csiNodes"`
	CSIDrivers             []*storagev1.CSIDriver              `json:"csiDrivers"`
	CSIStorageCapacities   []*storagev1.CSIStorageCapacity     `json:"csiStorageCapacities"`
	VolumeAttachments      []*storagev1.VolumeAttachment       `json:"volumeAttachments"`
	ResourceClaims         []*resourcev1.ResourceClaim         `json:"resourceClaims"`
	ResourceClaimTemplates []*resourcev1.ResourceClaimTemplate `json:"resourceClaimTemplates"`
	ResourceSlices         []*resourcev1.ResourceSlice         `json:"resourceSlices"`
	DeviceClasses          []*resourcev1.DeviceClass           `json:"deviceClasses"`
	PodDisruptionBudgets   []*policyv1.PodDisruptionBudget     `json:"podDisruptionBudgets"`
	Services               []*corev1.Service                   `json:"services"`
	ReplicaSets            []*appsv1.ReplicaSet                `json:"replicaSets"`
	StatefulSets           []*appsv1.StatefulSet               `json:"statefulSets"`
}

type object interface {
	metav1.Object
	runtime.Object
}

// complete makes the world as the API server and its controllers would: defaults, UIDs, versions, the labels of
// namespaces, the claims of templates. Objects that have these already stay as they are.
func (w *world) complete() error {
	for _, err := range []error{
		served(w.Nodes), served(w.Pods), served(w.Namespaces), served(w.PersistentVolumes),
		served(w.PersistentVolumeClaims), served(w.StorageClasses), served(w.CSINodes), served(w.CSIDrivers),
		served(w.CSIStorageCapacities), served(w.VolumeAttachments), served(w.ResourceClaims),
		served(w.ResourceClaimTemplates), served(w.ResourceSlices), served(w.DeviceClasses),
		served(w.PodDisruptionBudgets), served(w.Services), served(w.ReplicaSets), served(w.StatefulSets),
	} {
		if err != nil {
			return err
		}
	}
	w.Pods = running(w.Pods)
	w.completeNamespaces()
	if err := w.claimVolumes(); err != nil {
		return err
	}
	return w.claimDevices()
}

// served sets the fields of an object that the API server sets.
func served[T object](objects []T) error {
	for position, one := range objects {
		if any(one) == any(*new(T)) {
			return fmt.Errorf("object %d of %T is null", position, objects)
		}
		if one.GetName() == "" {
			return fmt.Errorf("object %d of %T has no name", position, objects)
		}
		if one.GetUID() == "" {
			one.SetUID(types.UID(fmt.Sprintf("%T/%s/%s", one, one.GetNamespace(), one.GetName())))
		}
		if _, err := strconv.ParseUint(one.GetResourceVersion(), 10, 64); err != nil {
			one.SetResourceVersion("1")
		}
		legacyscheme.Scheme.Default(one)
	}
	return nil
}

// running leaves out the pods that have ended: the kube-scheduler does not watch them.
func running(pods []*corev1.Pod) []*corev1.Pod {
	var found []*corev1.Pod
	for _, pod := range pods {
		if pod.Status.Phase != corev1.PodSucceeded && pod.Status.Phase != corev1.PodFailed {
			found = append(found, pod)
		}
	}
	return found
}

func (w *world) completeNamespaces() {
	present := map[string]bool{}
	for _, namespace := range w.Namespaces {
		present[namespace.Name] = true
	}
	for _, pod := range w.Pods {
		if !present[pod.Namespace] {
			present[pod.Namespace] = true
			w.Namespaces = append(w.Namespaces, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: pod.Namespace}})
		}
	}
	for _, namespace := range w.Namespaces {
		if namespace.Labels == nil {
			namespace.Labels = map[string]string{}
		}
		namespace.Labels[corev1.LabelMetadataName] = namespace.Name
	}
}

// claimVolumes makes the claims of the pods' generic ephemeral volumes, as their controller does.
func (w *world) claimVolumes() error {
	present := map[string]bool{}
	for _, claim := range w.PersistentVolumeClaims {
		present[claim.Namespace+"/"+claim.Name] = true
	}
	for _, pod := range w.Pods {
		for _, volume := range pod.Spec.Volumes {
			name := ephemeralClaim(pod, volume)
			if volume.Ephemeral == nil || volume.Ephemeral.VolumeClaimTemplate == nil || present[pod.Namespace+"/"+name] {
				continue
			}
			template := volume.Ephemeral.VolumeClaimTemplate
			made := &corev1.PersistentVolumeClaim{ObjectMeta: owned(pod, name), Spec: *template.Spec.DeepCopy()}
			if err := served([]*corev1.PersistentVolumeClaim{made}); err != nil {
				return err
			}
			w.PersistentVolumeClaims = append(w.PersistentVolumeClaims, made)
		}
	}
	return nil
}

func ephemeralClaim(pod *corev1.Pod, volume corev1.Volume) string {
	return pod.Name + "-" + volume.Name
}

// claimDevices makes the claims of the pods' templates, as their controller does.
func (w *world) claimDevices() error {
	templates := map[string]*resourcev1.ResourceClaimTemplate{}
	for _, template := range w.ResourceClaimTemplates {
		templates[template.Namespace+"/"+template.Name] = template
	}
	for _, pod := range w.Pods {
		stated := map[string]bool{}
		for _, status := range pod.Status.ResourceClaimStatuses {
			stated[status.Name] = true
		}
		for _, reference := range pod.Spec.ResourceClaims {
			if reference.ResourceClaimTemplateName == nil || stated[reference.Name] {
				continue
			}
			template := templates[pod.Namespace+"/"+*reference.ResourceClaimTemplateName]
			if template == nil {
				continue
			}
			name := pod.Name + "-" + reference.Name
			made := &resourcev1.ResourceClaim{ObjectMeta: owned(pod, name), Spec: *template.Spec.Spec.DeepCopy()}
			if err := served([]*resourcev1.ResourceClaim{made}); err != nil {
				return err
			}
			w.ResourceClaims = append(w.ResourceClaims, made)
			pod.Status.ResourceClaimStatuses = append(
				pod.Status.ResourceClaimStatuses,
				corev1.PodResourceClaimStatus{Name: reference.Name, ResourceClaimName: &name},
			)
		}
	}
	return nil
}

func owned(pod *corev1.Pod, name string) metav1.ObjectMeta {
	owner := *metav1.NewControllerRef(pod, corev1.SchemeGroupVersion.WithKind("Pod"))
	return metav1.ObjectMeta{Namespace: pod.Namespace, Name: name, OwnerReferences: []metav1.OwnerReference{owner}}
}
