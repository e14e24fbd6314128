// Where Karpenter's definitions of release 1.0 come from; no program is built of it.
module kerf.invalid/tests/cluster/definitions/1.0

go 1.22

require (
	github.com/aws/karpenter-provider-aws v1.0.8
	sigs.k8s.io/karpenter v1.0.8
)
