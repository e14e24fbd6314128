package main

import (
	"cmp"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	corev1 "k8s.io/api/core/v1"

	v1 "sigs.k8s.io/karpenter/pkg/apis/v1"
	"sigs.k8s.io/karpenter/pkg/cloudprovider"
	"sigs.k8s.io/karpenter/pkg/controllers/provisioning/scheduling"
)

// maxTypes is how many types of a claim are told: as many as a launch passes on to EC2.
const maxTypes = 60

// outcome is what is printed. Existing and Errors name a pod of the namespace default by its name alone, any other
// as namespace/name; so do the claims.
type outcome struct {
	Seconds      float64           `json:"seconds"`
	CPUSeconds   float64           `json:"cpu_seconds"`
	ParseSeconds float64           `json:"parse_seconds"`
	Nodes        int               `json:"nodes"`
	Unplaced     int               `json:"unplaced"`
	Cost         float64           `json:"cost_usd_per_hour"`
	PeakMiB      float64           `json:"peak_mib"`
	TimedOut     bool              `json:"timed_out"`
	Claims       []claim           `json:"claims,omitzero"`
	Existing     map[string]string `json:"existing,omitzero"`
	Errors       map[string]string `json:"errors,omitzero"`
}

type claim struct {
	NodePool     string                                    `json:"nodePool"`
	Types        []string                                  `json:"types"`
	Pods         []string                                  `json:"pods"`
	Zone         string                                    `json:"zone"`
	CapacityType string                                    `json:"capacityType"`
	Price        float64                                   `json:"price"`
	Requirements []v1.NodeSelectorRequirementWithMinValues `json:"requirements"`
}

// summarise counts what came of the pods. Unplaced are all that got no node: when the time is up Karpenter forgets
// those it had not come to, so its errors alone would be too few.
func (o *outcome) summarise(results scheduling.Results, pods []*corev1.Pod) {
	o.Nodes, o.PeakMiB = len(results.NewNodeClaims), peakMiB()
	placed := placements(results)
	for _, pod := range pods {
		if !placed[nameOf(pod)] {
			o.Unplaced++
		}
	}
	for _, made := range results.NewNodeClaims {
		o.Cost += describe(made).Price
	}
	o.Cost = math.Round(o.Cost*1e4) / 1e4
}

func placements(results scheduling.Results) map[string]bool {
	placed := map[string]bool{}
	for _, made := range results.NewNodeClaims {
		for _, pod := range made.Pods {
			placed[nameOf(pod)] = true
		}
	}
	for _, node := range results.ExistingNodes {
		for _, pod := range node.Pods {
			placed[nameOf(pod)] = true
		}
	}
	return placed
}

// tell adds who goes where, and why the others stay.
func (o *outcome) tell(results scheduling.Results) {
	o.Claims, o.Existing, o.Errors = []claim{}, map[string]string{}, map[string]string{}
	for _, made := range results.NewNodeClaims {
		o.Claims = append(o.Claims, describe(made))
	}
	slices.SortFunc(o.Claims, func(a, b claim) int { return slices.Compare(a.Pods, b.Pods) })
	for _, node := range results.ExistingNodes {
		for _, pod := range node.Pods {
			o.Existing[nameOf(pod)] = node.Name()
		}
	}
	for pod, err := range results.PodErrors {
		o.Errors[nameOf(pod)] = err.Error()
	}
}

// explain adds an error for each pod that never reached the scheduler.
func (o *outcome) explain(pods []*corev1.Pod, validate func(*corev1.Pod) error) {
	reached := map[string]bool{}
	for _, made := range o.Claims {
		for _, name := range made.Pods {
			reached[name] = true
		}
	}
	for _, pod := range pods {
		name := nameOf(pod)
		if reached[name] || o.Existing[name] != "" || o.Errors[name] != "" {
			continue
		}
		o.Errors[name] = "not considered"
		if err := validate(pod); err != nil {
			o.Errors[name] = err.Error()
		}
	}
}

// describe tells a claim as a launch by lowest price would settle it: the cheapest offering that is for sale and that
// the requirements admit. Types of one price go by name, since the map they come from has no order.
func describe(made *scheduling.NodeClaim) claim {
	type choice struct {
		name     string
		offering *cloudprovider.Offering
	}
	var choices []choice
	for _, instanceType := range made.InstanceTypeOptions {
		forSale := instanceType.Offerings.Available().Compatible(made.Requirements)
		if len(forSale) > 0 {
			choices = append(choices, choice{instanceType.Name, forSale.Cheapest()})
		}
	}
	slices.SortFunc(choices, func(a, b choice) int {
		return cmp.Or(cmp.Compare(a.offering.Price, b.offering.Price), cmp.Compare(a.name, b.name))
	})
	told := claim{NodePool: made.NodePoolName, Types: []string{}}
	told.Requirements = made.Requirements.NodeSelectorRequirements()
	slices.SortFunc(told.Requirements, func(a, b v1.NodeSelectorRequirementWithMinValues) int {
		return cmp.Compare(a.Key, b.Key)
	})
	for _, requirement := range told.Requirements {
		slices.Sort(requirement.Values)
	}
	for _, one := range choices[:min(len(choices), maxTypes)] {
		told.Types = append(told.Types, one.name)
	}
	if len(choices) > 0 {
		bought := choices[0].offering
		told.Zone, told.CapacityType, told.Price = bought.Zone(), bought.CapacityType(), bought.Price
	}
	for _, pod := range made.Pods {
		told.Pods = append(told.Pods, nameOf(pod))
	}
	slices.Sort(told.Pods)
	return told
}

func nameOf(pod *corev1.Pod) string {
	if pod.Namespace == corev1.NamespaceDefault {
		return pod.Name
	}
	return pod.Namespace + "/" + pod.Name
}

// stopwatch measures a stretch of work: by the clock, and in processor time, which a busy machine spoils less.
type stopwatch struct {
	began time.Time
	used  time.Duration
}

func startWatch() stopwatch {
	return stopwatch{time.Now(), processorTime()}
}

func (o *outcome) stop(watch stopwatch) {
	o.Seconds, o.CPUSeconds = rounded(time.Since(watch.began)), rounded(processorTime()-watch.used)
}

func processorTime() time.Duration {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		return 0
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

func rounded(took time.Duration) float64 {
	return math.Round(took.Seconds()*1e4) / 1e4
}

// peakMiB is the most memory this program held. Not getrusage: a child's figure there begins with its parent's.
func peakMiB() float64 {
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(status)) {
		if rest, ok := strings.CutPrefix(line, "VmHWM:"); ok {
			kib, _ := strconv.ParseFloat(strings.TrimSuffix(strings.TrimSpace(rest), " kB"), 64)
			return math.Round(kib/1024*10) / 10
		}
	}
	return 0
}
