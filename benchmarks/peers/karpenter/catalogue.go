package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/awslabs/operatorpkg/status"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"

	v1 "sigs.k8s.io/karpenter/pkg/apis/v1"
	"sigs.k8s.io/karpenter/pkg/cloudprovider"
	"sigs.k8s.io/karpenter/pkg/scheduling"
)

const awsGroup = "karpenter.k8s.aws"

// catalogueRow is one instance type. Amounts that are numbers mean milli-cores of cpu, MiB of memory and plain units of
// anything else; strings are Kubernetes quantities. What Capacity leaves out is as large as it is in Allocatable.
type catalogueRow struct {
	Name        string                     `json:"name"`
	Arch        string                     `json:"arch"`
	OS          string                     `json:"os"`
	Allocatable map[string]json.RawMessage `json:"allocatable"`
	Capacity    map[string]json.RawMessage `json:"capacity"`
	Labels      map[string]labelValues     `json:"labels"`
	Offerings   []offeringRow              `json:"offerings"`
}

type offeringRow struct {
	Zone                string                 `json:"zone"`
	CapacityType        string                 `json:"capacityType"`
	Price               float64                `json:"price"`
	Available           bool                   `json:"available"`
	Labels              map[string]labelValues `json:"labels"`
	ReservationCapacity int                    `json:"reservationCapacity"`
}

// labelValues is a string, a list of them, or null, which says that the label is never there.
type labelValues []string

func (l *labelValues) UnmarshalJSON(raw []byte) error {
	var one string
	if !bytes.HasPrefix(raw, []byte(`"`)) {
		return json.Unmarshal(raw, (*[]string)(l))
	}
	if err := json.Unmarshal(raw, &one); err != nil {
		return err
	}
	*l = labelValues{one}
	return nil
}

func (l labelValues) requirement(key string) *scheduling.Requirement {
	if len(l) == 0 {
		return scheduling.NewRequirement(key, corev1.NodeSelectorOpDoesNotExist)
	}
	return scheduling.NewRequirement(key, corev1.NodeSelectorOpIn, l...)
}

// instanceType makes what a cloud provider would answer. Each of the provider's labels that neither the row nor its
// offerings mention is told to be absent, because Karpenter takes a label nobody mentions for one that would match.
func (row catalogueRow) instanceType(providerLabels []string) (*cloudprovider.InstanceType, error) {
	allocatable, err := amounts(row.Allocatable)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", row.Name, err)
	}
	capacity, err := amounts(row.Capacity)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", row.Name, err)
	}
	whole := maps.Clone(allocatable)
	maps.Copy(whole, capacity)
	reserved := corev1.ResourceList{}
	for name, usable := range allocatable {
		kept := whole[name].DeepCopy()
		kept.Sub(usable)
		reserved[name] = kept
	}
	values := map[string]labelValues{}
	for _, key := range providerLabels {
		values[key] = nil
	}
	made := &cloudprovider.InstanceType{
		Name:     row.Name,
		Capacity: whole,
		Overhead: &cloudprovider.InstanceTypeOverhead{KubeReserved: reserved},
	}
	for _, sold := range row.Offerings {
		made.Offerings = append(made.Offerings, sold.offering())
		values[corev1.LabelTopologyZone] = append(values[corev1.LabelTopologyZone], sold.Zone)
		values[v1.CapacityTypeLabelKey] = append(values[v1.CapacityTypeLabelKey], sold.CapacityType)
		for key, found := range sold.Labels {
			values[key] = append(values[key], found...)
		}
	}
	maps.Copy(values, row.Labels)
	values[corev1.LabelInstanceTypeStable] = labelValues{row.Name}
	values[corev1.LabelArchStable], values[corev1.LabelOSStable] = labelValues{row.Arch}, labelValues{row.OS}
	made.Requirements = requirementsOf(values)
	return made, nil
}

func (sold offeringRow) offering() *cloudprovider.Offering {
	values := map[string]labelValues{}
	maps.Copy(values, sold.Labels)
	values[corev1.LabelTopologyZone] = labelValues{sold.Zone}
	values[v1.CapacityTypeLabelKey] = labelValues{sold.CapacityType}
	return &cloudprovider.Offering{
		Requirements:        requirementsOf(values),
		Price:               sold.Price,
		Available:           sold.Available,
		ReservationCapacity: sold.ReservationCapacity,
	}
}

func requirementsOf(values map[string]labelValues) scheduling.Requirements {
	found := scheduling.NewRequirements()
	for _, key := range slices.Sorted(maps.Keys(values)) {
		found.Add(values[key].requirement(key))
	}
	return found
}

func amounts(rows map[string]json.RawMessage) (corev1.ResourceList, error) {
	found := corev1.ResourceList{}
	for name, raw := range rows {
		amount, err := quantity(name, raw)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		found[corev1.ResourceName(name)] = amount
	}
	return found, nil
}

func quantity(name string, raw json.RawMessage) (resource.Quantity, error) {
	if strings.HasPrefix(string(raw), `"`) {
		var read resource.Quantity
		err := json.Unmarshal(raw, &read)
		return read, err
	}
	var number int64
	if err := json.Unmarshal(raw, &number); err != nil {
		return resource.Quantity{}, err
	}
	switch corev1.ResourceName(name) {
	case corev1.ResourceCPU:
		return *resource.NewMilliQuantity(number, resource.DecimalSI), nil
	case corev1.ResourceMemory:
		return *resource.NewQuantity(number<<20, resource.BinarySI), nil
	default:
		return *resource.NewQuantity(number, resource.DecimalSI), nil
	}
}

// shop is a cloud provider that sells one catalogue to every NodePool. Scheduling asks it for nothing else.
type shop struct{ types []*cloudprovider.InstanceType }

var errOnlySells = errors.New("this provider has a catalogue and no machines")

func newShop(rows []catalogueRow, providerLabels []string) (*shop, error) {
	sells := &shop{}
	for _, row := range rows {
		made, err := row.instanceType(providerLabels)
		if err != nil {
			return nil, err
		}
		sells.types = append(sells.types, made)
	}
	return sells, nil
}

func (s *shop) GetInstanceTypes(context.Context, *v1.NodePool) ([]*cloudprovider.InstanceType, error) {
	return s.types, nil
}

func (s *shop) GetSupportedNodeClasses() []status.Object { return []status.Object{&nodeClass{}} }
func (s *shop) RepairPolicies() []cloudprovider.RepairPolicy {
	return nil
}
func (s *shop) Name() string { return "shop" }
func (s *shop) Create(context.Context, *v1.NodeClaim) (*v1.NodeClaim, error) {
	return nil, errOnlySells
}
func (s *shop) Delete(context.Context, *v1.NodeClaim) error        { return errOnlySells }
func (s *shop) Get(context.Context, string) (*v1.NodeClaim, error) { return nil, errOnlySells }
func (s *shop) List(context.Context) ([]*v1.NodeClaim, error)      { return nil, errOnlySells }
func (s *shop) IsDrifted(context.Context, *v1.NodeClaim) (cloudprovider.DriftReason, error) {
	return "", errOnlySells
}

// nodeClass stands for EC2NodeClass: Karpenter's core passes over NodePools whose class its provider does not know.
type nodeClass struct {
	metav1.TypeMeta
	metav1.ObjectMeta
}

func (n *nodeClass) DeepCopyObject() runtime.Object {
	return &nodeClass{TypeMeta: n.TypeMeta, ObjectMeta: *n.ObjectMeta.DeepCopy()}
}
func (n *nodeClass) GetConditions() []status.Condition { return nil }
func (n *nodeClass) SetConditions([]status.Condition)  {}
func (n *nodeClass) StatusConditions(options ...status.ForOption) status.ConditionSet {
	return status.NewReadyConditions().For(n, options...)
}

// useAWSVocabulary tells Karpenter's core what the AWS provider tells it when it starts: its kind, its label domain,
// the label that names a reservation and the old spelling of a zone. The provider's own labels come with the input.
func useAWSVocabulary() {
	kind := schema.GroupVersionKind{Group: awsGroup, Version: "v1", Kind: "EC2NodeClass"}
	scheme.Scheme.AddKnownTypeWithName(kind, &nodeClass{})
	v1.RestrictedLabelDomains.Insert(awsGroup)
	v1.NormalizedLabels["topology.ebs.csi.aws.com/zone"] = corev1.LabelTopologyZone
	cloudprovider.ReservationIDLabel = awsGroup + "/capacity-reservation-id"
	cloudprovider.ReservedCapacityLabels.Insert(cloudprovider.ReservationIDLabel)
	v1.WellKnownLabels.Insert(cloudprovider.ReservationIDLabel)
}
