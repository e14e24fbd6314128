package main

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const (
	bindCompleted = "pv.kubernetes.io/bind-completed"
	noProvisioner = "kubernetes.io/no-provisioner"
)

// provision makes the volumes that a pod's claims wait for, as a CSI provisioner does once the kube-scheduler has chosen
// a node: within the driver's topology of that node, or within its zone if the driver says nothing of the node. A class
// with a volume that is free is left alone: the kube-scheduler may have chosen that volume.
func (j *judge) provision(pod *corev1.Pod, node string) error {
	for _, volume := range pod.Spec.Volumes {
		name := claimName(pod, volume)
		claim, present, err := get[corev1.PersistentVolumeClaim](j.informers.claims, pod.Namespace+"/"+name)
		if err != nil {
			return err
		}
		if name == "" || !present || claim.Spec.VolumeName != "" || claim.Spec.StorageClassName == nil {
			continue
		}
		class, present, err := get[storagev1.StorageClass](j.informers.classes, *claim.Spec.StorageClassName)
		if err != nil {
			return err
		}
		if !present || class.Provisioner == noProvisioner || j.hasFreeVolume(class.Name) {
			continue
		}
		made, err := j.volumeFor(claim, class, node)
		if err != nil {
			return err
		}
		bound := claim.DeepCopy()
		bound.Spec.VolumeName, bound.Status.Phase = made.Name, corev1.ClaimBound
		metav1.SetMetaDataAnnotation(&bound.ObjectMeta, bindCompleted, "yes")
		bound.ResourceVersion = newer(bound.ResourceVersion)
		if err := j.informers.volumes.put(made); err != nil {
			return err
		}
		if err := j.informers.claims.put(bound); err != nil {
			return err
		}
	}
	return nil
}

func claimName(pod *corev1.Pod, volume corev1.Volume) string {
	switch {
	case volume.PersistentVolumeClaim != nil:
		return volume.PersistentVolumeClaim.ClaimName
	case volume.Ephemeral != nil:
		return ephemeralClaim(pod, volume)
	}
	return ""
}

func (j *judge) hasFreeVolume(class string) bool {
	return slices.ContainsFunc(j.informers.volumes.indexer.List(), func(one any) bool {
		volume := one.(*corev1.PersistentVolume)
		return volume.Spec.ClaimRef == nil && volume.Spec.StorageClassName == class
	})
}

func (j *judge) volumeFor(
	claim *corev1.PersistentVolumeClaim, class *storagev1.StorageClass, node string,
) (*corev1.PersistentVolume, error) {
	name := "provisioned-" + claim.Namespace + "-" + claim.Name
	made := &corev1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: corev1.PersistentVolumeSpec{
			AccessModes:      claim.Spec.AccessModes,
			Capacity:         claim.Spec.Resources.Requests,
			StorageClassName: class.Name,
			VolumeMode:       claim.Spec.VolumeMode,
			ClaimRef:         &corev1.ObjectReference{Namespace: claim.Namespace, Name: claim.Name, UID: claim.UID},
			PersistentVolumeSource: corev1.PersistentVolumeSource{
				CSI: &corev1.CSIPersistentVolumeSource{Driver: class.Provisioner, VolumeHandle: name},
			},
		},
		Status: corev1.PersistentVolumeStatus{Phase: corev1.VolumeBound},
	}
	required, err := j.topology(class.Provisioner, node)
	if err != nil {
		return nil, err
	}
	if len(required) > 0 {
		terms := []corev1.NodeSelectorTerm{{MatchExpressions: required}}
		made.Spec.NodeAffinity = &corev1.VolumeNodeAffinity{Required: &corev1.NodeSelector{NodeSelectorTerms: terms}}
	}
	return made, served([]*corev1.PersistentVolume{made})
}

// topology is where a volume of a driver can be attached that is made for a pod on a node.
func (j *judge) topology(driver, node string) ([]corev1.NodeSelectorRequirement, error) {
	info, err := j.snapshot.Get(node)
	if err != nil {
		return nil, err
	}
	keys := []string{corev1.LabelTopologyZone}
	known, present, err := get[storagev1.CSINode](j.informers.csiNodes, node)
	if err != nil {
		return nil, err
	}
	if present {
		for _, one := range known.Spec.Drivers {
			if one.Name == driver {
				keys = one.TopologyKeys
			}
		}
	}
	var found []corev1.NodeSelectorRequirement
	for _, key := range keys {
		if value, labelled := info.Node().Labels[key]; labelled {
			in := corev1.NodeSelectorRequirement{Key: key, Operator: corev1.NodeSelectorOpIn, Values: []string{value}}
			found = append(found, in)
		}
	}
	return found, nil
}
