package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"

	"github.com/awslabs/operatorpkg/status"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	v1 "sigs.k8s.io/karpenter/pkg/apis/v1"
	"sigs.k8s.io/karpenter/pkg/controllers/provisioning"
	"sigs.k8s.io/karpenter/pkg/controllers/state"
	"sigs.k8s.io/karpenter/pkg/events"
)

// world is a cluster as JSON. Objects are manifests as an API server would store them; what it would fill in and what
// matters here (see complete) may be left out, but for a bound volume claim's annotation
// pv.kubernetes.io/bind-completed. WellKnownLabels are those that the provider adds to Karpenter's own.
type world struct {
	Settings             worldSettings                   `json:"settings"`
	NodePools            []*v1.NodePool                  `json:"nodePools"`
	Pods                 []*corev1.Pod                   `json:"pods"`
	Nodes                []worldNode                     `json:"nodes"`
	DaemonSets           []*appsv1.DaemonSet             `json:"daemonSets"`
	InstanceTypes        []catalogueRow                  `json:"instanceTypes"`
	Storage              worldStorage                    `json:"storage"`
	Namespaces           []*corev1.Namespace             `json:"namespaces"`
	PodDisruptionBudgets []*policyv1.PodDisruptionBudget `json:"podDisruptionBudgets"`
	WellKnownLabels      []string                        `json:"wellKnownLabels"`
}

// worldSettings are those of Karpenter's own that change an answer; what is empty is as Karpenter ships it.
type worldSettings struct {
	PreferencePolicy string `json:"preferencePolicy"`
	MinValuesPolicy  string `json:"minValuesPolicy"`
}

func (s worldSettings) flags() []string {
	var found []string
	if s.PreferencePolicy != "" {
		found = append(found, "--preference-policy="+s.PreferencePolicy)
	}
	if s.MinValuesPolicy != "" {
		found = append(found, "--min-values-policy="+s.MinValuesPolicy)
	}
	return found
}

// worldNode is a node with its claim and pods. A claim without a node is still starting, a node without a claim is not
// Karpenter's, and what is deleting is about to go: its pods are scheduled elsewhere.
type worldNode struct {
	Node      *corev1.Node  `json:"node"`
	NodeClaim *v1.NodeClaim `json:"nodeClaim"`
	Pods      []*corev1.Pod `json:"pods"`
	Deleting  bool          `json:"deleting"`
}

type worldStorage struct {
	PersistentVolumes      []*corev1.PersistentVolume      `json:"persistentVolumes"`
	PersistentVolumeClaims []*corev1.PersistentVolumeClaim `json:"persistentVolumeClaims"`
	StorageClasses         []*storagev1.StorageClass       `json:"storageClasses"`
	CSINodes               []*storagev1.CSINode            `json:"csiNodes"`
}

type loadedWorld struct {
	provisioner *provisioning.Provisioner
}

// --- reading --------------------------------------------------------------------------------------------------------

func parseWorld(content []byte) (*world, error) {
	w := &world{}
	if err := json.Unmarshal(content, w); err != nil {
		return nil, err
	}
	w.complete()
	return w, nil
}

func readJSON(path string, into any) error {
	content, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(content, into); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return nil
}

// --- what others would have filled in -------------------------------------------------------------------------------

func (w *world) complete() {
	for _, pool := range w.NodePools {
		completePool(pool)
	}
	for _, pod := range w.Pods {
		completePod(pod)
	}
	for i := range w.Nodes {
		w.Nodes[i].complete()
	}
	for _, set := range w.DaemonSets {
		identify(set)
	}
	for _, claim := range w.Storage.PersistentVolumeClaims {
		identify(claim)
	}
	for _, budget := range w.PodDisruptionBudgets {
		identify(budget)
	}
	w.addNamespaces()
}

// completePool names the node class and, unless the pool brings conditions, says that it is ready.
func completePool(pool *v1.NodePool) {
	pool.UID = types.UID("uid-" + pool.Name)
	if pool.Spec.Template.Spec.NodeClassRef == nil {
		reference := v1.NodeClassReference{Group: awsGroup, Kind: "EC2NodeClass", Name: "default"}
		pool.Spec.Template.Spec.NodeClassRef = &reference
	}
	if len(pool.Status.Conditions) == 0 {
		for _, kind := range []string{v1.ConditionTypeValidationSucceeded, v1.ConditionTypeNodeClassReady, status.ConditionReady} {
			pool.StatusConditions().SetTrue(kind)
		}
	}
}

// completePod makes a pod without a status one that the Kubernetes scheduler has just refused, or that runs if it has
// a node. The identity matters: Karpenter remembers what it knows of a pod by its UID.
func completePod(pod *corev1.Pod) {
	identify(pod)
	for i := range pod.Spec.Containers {
		for j := range pod.Spec.Containers[i].Ports {
			if port := &pod.Spec.Containers[i].Ports[j]; port.Protocol == "" {
				port.Protocol = corev1.ProtocolTCP
			}
		}
	}
	if pod.Status.Phase != "" {
		return
	}
	if pod.Spec.NodeName != "" {
		pod.Status.Phase = corev1.PodRunning
		return
	}
	pod.Status.Phase = corev1.PodPending
	refused := corev1.PodCondition{
		Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable,
	}
	pod.Status.Conditions = append(pod.Status.Conditions, refused)
}

func (n *worldNode) complete() {
	for _, pod := range n.Pods {
		if n.Node != nil {
			pod.Spec.NodeName = n.Node.Name
		}
		completePod(pod)
	}
	if n.Node != nil && n.NodeClaim != nil && n.Node.Spec.ProviderID == "" {
		n.Node.Spec.ProviderID = n.NodeClaim.Status.ProviderID
	}
}

func identify(object client.Object) {
	if object.GetNamespace() == "" {
		object.SetNamespace(corev1.NamespaceDefault)
	}
	if object.GetUID() == "" {
		object.SetUID(types.UID("uid-" + object.GetNamespace() + "-" + object.GetName()))
	}
}

// addNamespaces adds those that pods live in and nobody listed, since selectors of namespaces look them up.
func (w *world) addNamespaces() {
	known := map[string]bool{}
	for _, space := range w.Namespaces {
		known[space.Name] = true
	}
	for _, pod := range w.allPods() {
		if name := pod.Namespace; !known[name] {
			known[name] = true
			labels := map[string]string{corev1.LabelMetadataName: name}
			w.Namespaces = append(w.Namespaces, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels}})
		}
	}
}

func (w *world) allPods() []*corev1.Pod {
	found := append([]*corev1.Pod{}, w.Pods...)
	for _, node := range w.Nodes {
		found = append(found, node.Pods...)
	}
	return found
}

// pending are the pods that wait for a node.
func (w *world) pending() []*corev1.Pod {
	var found []*corev1.Pod
	for _, pod := range w.Pods {
		if pod.Spec.NodeName == "" {
			found = append(found, pod)
		}
	}
	return found
}

// --- loading --------------------------------------------------------------------------------------------------------

// load puts the objects into an API server in memory and into Karpenter's view of the cluster, in the order in which
// its informers find them: claims, then nodes, then pods.
func (w *world) load(ctx context.Context) (*loadedWorld, error) {
	v1.WellKnownLabels.Insert(w.WellKnownLabels...)
	sells, err := newShop(w.InstanceTypes, w.WellKnownLabels)
	if err != nil {
		return nil, err
	}
	kube := fake.NewClientBuilder().WithScheme(scheme.Scheme).WithObjects(w.objects()...).
		WithIndex(&corev1.Pod{}, "spec.nodeName", func(object client.Object) []string {
			return []string{object.(*corev1.Pod).Spec.NodeName}
		}).WithInterceptorFuncs(interceptor.Funcs{Get: getAsAServerWould}).Build()
	cluster := state.NewCluster(clock.RealClock{}, kube, sells)
	if err := w.observe(ctx, cluster); err != nil {
		return nil, err
	}
	made := provisioning.NewProvisioner(kube, silence{}, sells, cluster, clock.RealClock{}, nil, nil)
	return &loadedWorld{made}, nil
}

// getAsAServerWould asks for a volume without a namespace. Karpenter names that of the pod, which a server overlooks as
// volumes have none; the one in memory would not find the volume, and Karpenter goes on as if the pod had no volume.
func getAsAServerWould(
	ctx context.Context, kube client.WithWatch, key client.ObjectKey, into client.Object, given ...client.GetOption,
) error {
	if _, ok := into.(*corev1.PersistentVolume); ok {
		key.Namespace = ""
	}
	return kube.Get(ctx, key, into, given...)
}

func (w *world) observe(ctx context.Context, cluster *state.Cluster) error {
	for _, one := range w.Nodes {
		if one.NodeClaim != nil {
			cluster.UpdateNodeClaim(one.NodeClaim.DeepCopy())
		}
		if one.Node != nil {
			if err := cluster.UpdateNode(ctx, one.Node.DeepCopy()); err != nil {
				return err
			}
		}
	}
	for _, pod := range w.allPods() {
		if pod.Spec.NodeName != "" {
			if err := cluster.UpdatePod(ctx, pod.DeepCopy()); err != nil {
				return err
			}
		}
	}
	for _, set := range w.DaemonSets {
		if err := cluster.UpdateDaemonSet(ctx, set.DeepCopy()); err != nil {
			return err
		}
	}
	for _, one := range w.Nodes {
		if one.Deleting && one.Node != nil {
			cluster.MarkForDeletion(one.Node.Spec.ProviderID)
		}
	}
	return nil
}

func (w *world) objects() []client.Object {
	found := all(nil, w.NodePools)
	found = all(found, w.allPods())
	found = all(found, w.DaemonSets)
	found = all(found, w.Storage.PersistentVolumes)
	found = all(found, w.Storage.PersistentVolumeClaims)
	found = all(found, w.Storage.StorageClasses)
	found = all(found, w.Storage.CSINodes)
	found = all(found, w.Namespaces)
	found = all(found, w.PodDisruptionBudgets)
	for _, one := range w.Nodes {
		if one.Node != nil {
			found = append(found, one.Node)
		}
		if one.NodeClaim != nil {
			found = append(found, one.NodeClaim)
		}
	}
	return found
}

func all[T client.Object](found []client.Object, more []T) []client.Object {
	for _, one := range more {
		found = append(found, one)
	}
	return found
}

// silence takes Karpenter's events: the answer says the same.
type silence struct{}

func (silence) Publish(...events.Event) {}
