// Where Karpenter's definitions of release 1.4 come from; no program is built of it.
module kerf.invalid/tests/cluster/definitions/1.4

go 1.22

require (
	github.com/aws/karpenter-provider-aws v1.3.3
	sigs.k8s.io/karpenter v1.4.0
)
