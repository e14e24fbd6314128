package main

import (
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/types"
)

// devices is the manager of device claims, and keeps the allocations that wait for their pod to be bound.
type devices struct {
	deviceManager
	claims *deviceClaims
}

type deviceClaims struct {
	claimTracker
	pending map[types.UID]*resourcev1.AllocationResult
}

func newDevices(manager deviceManager) *devices {
	pending := map[types.UID]*resourcev1.AllocationResult{}
	return &devices{deviceManager: manager, claims: &deviceClaims{claimTracker: manager.ResourceClaims(), pending: pending}}
}

func (d *devices) ResourceClaims() claimTracker { return d.claims }

func (c *deviceClaims) SignalClaimPendingAllocation(claim types.UID, allocated *resourcev1.ResourceClaim) error {
	c.pending[claim] = allocated.Status.Allocation
	return c.claimTracker.SignalClaimPendingAllocation(claim, allocated)
}
