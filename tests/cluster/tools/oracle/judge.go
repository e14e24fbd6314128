package main

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/dynamic-resource-allocation/resourceclaim"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/apis/config/latest"
	internalcache "k8s.io/kubernetes/pkg/scheduler/backend/cache"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins"
	frameworkruntime "k8s.io/kubernetes/pkg/scheduler/framework/runtime"
	"k8s.io/kubernetes/pkg/scheduler/metrics"
)

const allNodes = "*"

// profile is the default profile of the kube-scheduler, with the plugins and the arguments that the release gives it.
type profile struct {
	config   *config.KubeSchedulerProfile
	registry frameworkruntime.Registry
}

func newProfile() (*profile, error) {
	metrics.Register()
	defaults, err := latest.Default()
	if err != nil {
		return nil, err
	}
	return &profile{config: &defaults.Profiles[0], registry: plugins.NewInTreeRegistry()}, nil
}

// judge holds a world and the framework that runs the plugins on it.
type judge struct {
	ctx       context.Context
	framework framework.Framework
	cache     internalcache.Cache
	snapshot  *internalcache.Snapshot
	devices   *devices
	informers *kinds
	nominated *nominator
	nodes     []string
	pending   map[string]*corev1.Pod
}

func newJudge(ctx context.Context, plugins *profile, w *world) (*judge, error) {
	if err := w.complete(); err != nil {
		return nil, err
	}
	factory, informers, err := filled(w)
	if err != nil {
		return nil, err
	}
	j := &judge{
		ctx: ctx, cache: newCache(ctx), snapshot: internalcache.NewEmptySnapshot(), informers: informers,
		nominated: &nominator{}, pending: map[string]*corev1.Pod{},
	}
	if err := j.load(w); err != nil {
		return nil, err
	}
	manager, err := newDeviceManager(ctx, factory)
	if err != nil {
		return nil, err
	}
	j.devices = newDevices(manager)
	options := []frameworkruntime.Option{
		frameworkruntime.WithClientSet(apiServer),
		frameworkruntime.WithInformerFactory(factory),
		frameworkruntime.WithSharedDRAManager(j.devices),
		frameworkruntime.WithSnapshotSharedLister(j.snapshot),
		frameworkruntime.WithWaitingPods(frameworkruntime.NewWaitingPodsMap()),
		frameworkruntime.WithParallelism(1),
	}
	options = append(options, releaseOptions(factory, j.cache)...)
	j.framework, err = frameworkruntime.NewFramework(ctx, plugins.registry, plugins.config, options...)
	if err != nil {
		return nil, err
	}
	j.framework.SetPodNominator(j.nominated)
	return j, nil
}

func (j *judge) close() { _ = j.framework.Close() }

// refusing lists the plugins of the profile that can refuse a pod or a node, by name.
func (j *judge) refusing() []string {
	listed, names := j.framework.ListPlugins(), sets.New[string]()
	for _, set := range []config.PluginSet{listed.PreEnqueue, listed.PreFilter, listed.Filter, listed.Reserve} {
		for _, plugin := range set.Enabled {
			names.Insert(plugin.Name)
		}
	}
	return sets.List(names)
}

func (j *judge) load(w *world) error {
	for _, node := range w.Nodes {
		if slices.Contains(j.nodes, node.Name) {
			return fmt.Errorf("node %s is in the world twice", node.Name)
		}
		j.cache.AddNode(klog.FromContext(j.ctx), node)
		j.nodes = append(j.nodes, node.Name)
	}
	slices.Sort(j.nodes)
	seen := sets.New[string]()
	for _, pod := range w.Pods {
		name := pod.Namespace + "/" + pod.Name
		if seen.Has(name) {
			return fmt.Errorf("pod %s is in the world twice", name)
		}
		seen.Insert(name)
		if pod.Spec.NodeName == "" {
			j.pending[name] = pod
			if err := j.nominated.add(pod); err != nil {
				return err
			}
			continue
		}
		if err := j.cache.AddPod(klog.FromContext(j.ctx), pod); err != nil {
			return err
		}
	}
	return j.cache.UpdateSnapshot(klog.FromContext(j.ctx), j.snapshot)
}

// verdicts judges each pod alone, on the world as it is given.
func (j *judge) verdicts(asked [][2]string) ([]verdict, error) {
	found, tried := []verdict{}, map[string]*attempt{}
	for _, one := range asked {
		name, node := one[0], one[1]
		if tried[name] == nil {
			pod, err := j.unbound(name)
			if err != nil {
				return nil, err
			}
			tried[name] = j.try(pod)
		}
		nodes := []string{node}
		if node == allNodes {
			nodes = j.nodes
		} else if !slices.Contains(j.nodes, node) {
			return nil, fmt.Errorf("no node %s in the world", node)
		}
		for _, node := range nodes {
			refused, err := tried[name].on(node)
			if err != nil {
				return nil, err
			}
			made := verdict{Pod: name, Node: node, Fits: refused == nil}
			if refused != nil {
				made.refusal = *refused
			}
			found = append(found, made)
		}
	}
	return found, nil
}

// queue binds the pods in turn: to the node that bind names, or to the first by name of those that no plugin refuses.
func (j *judge) queue(asked []string, bind map[string]string) ([]binding, error) {
	found := []binding{}
	for _, name := range asked {
		pod, err := j.unbound(name)
		if err != nil {
			return nil, err
		}
		nodes := j.nodes
		if node, named := bind[name]; named {
			if !slices.Contains(j.nodes, node) {
				return nil, fmt.Errorf("no node %s in the world", node)
			}
			nodes = []string{node}
		}
		made, err := j.bind(name, pod, nodes)
		if err != nil {
			return nil, err
		}
		found = append(found, made)
	}
	return found, nil
}

func (j *judge) bind(name string, pod *corev1.Pod, nodes []string) (binding, error) {
	made := binding{Pod: name, Refusals: map[string]refusal{}}
	tried := j.try(pod)
	for _, node := range nodes {
		refused, err := tried.on(node)
		if err == nil && refused == nil {
			refused, err = tried.assume(node)
		}
		if err != nil {
			return made, err
		}
		if refused == nil {
			delete(j.pending, name)
			return binding{Pod: name, Node: node}, nil
		}
		made.Refusals[node] = *refused
	}
	return made, nil
}

func (j *judge) unbound(name string) (*corev1.Pod, error) {
	if pod := j.pending[name]; pod != nil {
		return pod, nil
	}
	return nil, fmt.Errorf("no pod %s without a node in the world", name)
}

// attempt is a pod that is being scheduled. `refused` is set when a plugin refuses it before it looks at nodes.
type attempt struct {
	judge   *judge
	pod     *corev1.Pod
	state   fwk.CycleState
	refused *refusal
	left    sets.Set[string]
	limits  []string
}

func (j *judge) try(pod *corev1.Pod) *attempt {
	made := &attempt{judge: j, pod: pod, state: framework.NewCycleState()}
	for _, plugin := range j.framework.PreEnqueuePlugins() {
		if status := plugin.PreEnqueue(j.ctx, pod); !status.IsSuccess() {
			made.refused = &refusal{Plugin: plugin.Name(), Message: status.Message()}
			return made
		}
	}
	result, status, limits := j.framework.RunPreFilterPlugins(j.ctx, made.state, pod)
	made.limits = sets.List(limits)
	if !status.IsSuccess() {
		made.refused = made.from(status)
	} else if !result.AllNodes() {
		made.left = result.NodeNames
	}
	return made
}

// on is the refusal of a node, nil if the pod fits there.
func (a *attempt) on(node string) (*refusal, error) {
	if a.refused != nil {
		return a.refused, nil
	}
	if a.left != nil && !a.left.Has(node) {
		message := fmt.Sprintf("node(s) didn't satisfy plugin(s) %v", a.limits)
		return &refusal{Plugin: strings.Join(a.limits, ","), Message: message}, nil
	}
	info, err := a.judge.snapshot.Get(node)
	if err != nil {
		return nil, err
	}
	status := a.judge.framework.RunFilterPluginsWithNominatedPods(a.judge.ctx, a.state, a.pod, info)
	if status.IsSuccess() {
		return nil, nil
	}
	return a.from(status), nil
}

func (a *attempt) from(status *fwk.Status) *refusal {
	plugin := status.Plugin()
	if plugin == "" {
		plugin = strings.Join(a.limits, ",")
	}
	return &refusal{Plugin: plugin, Message: status.Message()}
}

// assume counts the pod on a node, with its volumes and devices, as the kube-scheduler does before it binds a pod.
func (a *attempt) assume(node string) (*refusal, error) {
	j, logger := a.judge, klog.FromContext(a.judge.ctx)
	pod := a.pod.DeepCopy()
	pod.Spec.NodeName = node
	if err := j.cache.AssumePod(logger, pod); err != nil {
		return nil, err
	}
	if status := j.framework.RunReservePluginsReserve(j.ctx, a.state, pod, node); !status.IsSuccess() {
		j.framework.RunReservePluginsUnreserve(j.ctx, a.state, pod, node)
		return a.from(status), j.cache.ForgetPod(logger, pod)
	}
	j.nominated.remove(pod)
	if err := j.allocate(pod); err != nil {
		return nil, err
	}
	if err := j.provision(pod, node); err != nil {
		return nil, err
	}
	return nil, j.cache.UpdateSnapshot(logger, j.snapshot)
}

// allocate writes the devices that a pod was given into its claims, as the kube-scheduler does when it binds the pod, so
// that the next pod finds them there.
func (j *judge) allocate(pod *corev1.Pod) error {
	for position := range pod.Spec.ResourceClaims {
		name, _, err := resourceclaim.Name(pod, &pod.Spec.ResourceClaims[position])
		if err != nil || name == nil {
			continue
		}
		claim, err := j.devices.claims.Get(pod.Namespace, *name)
		if err != nil {
			return err
		}
		written := claim.DeepCopy()
		if written.Status.Allocation == nil {
			written.Status.Allocation = j.devices.claims.pending[claim.UID]
		}
		consumer := resourcev1.ResourceClaimConsumerReference{Resource: "pods", Name: pod.Name, UID: pod.UID}
		written.Status.ReservedFor = append(written.Status.ReservedFor, consumer)
		written.ResourceVersion = newer(written.ResourceVersion)
		if err := j.informers.devices.put(written); err != nil {
			return err
		}
		endPendingAllocation(j.devices.claims, claim.UID)
	}
	return nil
}

func newer(version string) string {
	number, _ := strconv.ParseUint(version, 10, 64)
	return strconv.FormatUint(number+1, 10)
}

// nominator knows the pods that wait for a node which preemption, or another controller, chose for them.
type nominator struct {
	podNominator
	pods map[string][]fwk.PodInfo
}

func (n *nominator) add(pod *corev1.Pod) error {
	node := pod.Status.NominatedNodeName
	if node == "" {
		return nil
	}
	info, err := framework.NewPodInfo(pod)
	if err != nil {
		return err
	}
	if n.pods == nil {
		n.pods = map[string][]fwk.PodInfo{}
	}
	n.pods[node] = append(n.pods[node], info)
	return nil
}

func (n *nominator) remove(pod *corev1.Pod) {
	for node, pods := range n.pods {
		n.pods[node] = slices.DeleteFunc(pods, func(info fwk.PodInfo) bool { return info.GetPod().UID == pod.UID })
	}
}

func (n *nominator) NominatedPodsForNode(node string) []fwk.PodInfo { return n.pods[node] }
