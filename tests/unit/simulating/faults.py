"""Scenarios with one fault each, and the words that name its place and the fix."""

from __future__ import annotations

from typing import Any

from tests.unit.simulating.changes import (
    BARE,
    OTHER,
    PAGES,
    WORLD,
    asserted,
    budget,
    container,
    event,
    node_affinity,
    objects,
    pod,
    port,
    required,
    rolling,
    selector,
    spread,
    toleration,
    web,
    with_pod,
    without_class,
)
from tests.worlds import daemon_set, deployment, node_pool

#: Changes of `SCENARIO`, and a part of the message.
FAULTS: list[tuple[dict[str, Any], str]] = [
    (
        event("spotInterruption", {"zone": "us-west-2q"}),
        "weather[0].spotInterruption.zone: there is no zone us-west",
    ),
    (
        event("zoneLoss", {"zone": "us-wst-2a", "for": "5m"}),
        "zoneLoss.zone: there is no zone us-wst-2a; did you mean",
    ),
    (
        event("stockOut", {"zones": ["us-west-2a", "eu-west-1a"], "for": "5m"}),
        "weather[0].stockOut.zones[1]: there is no zone eu-west-1a",
    ),
    (
        event("price", {"instanceTypes": ["m5.larg"], "factor": 2}),
        "price.instanceTypes[0]: there is no instance type m5.larg; did you mean m5.large?",
    ),
    (
        event("stockOut", {"instanceTypes": ["g5.xlarge"], "zones": ["us-west-2c"], "for": "5m"}),
        "weather[0].stockOut: none of these instance types is offered in these zones",
    ),
    (
        event("price", {"zones": ["us-west-2a"], "factor": 2}),
        "weather[0].price.zones: on-demand prices are those of all zones; write capacityTypes: [spot], or remove",
    ),
    (event("instanceFailure", {"instanceType": "m5.x"}), "instanceFailure.instanceType: there is no instance type"),
    (event("nodeNotReady", {"nodePool": "genral"}), "there is no NodePool genral; did you mean general?"),
    (
        event("stockOut", {"capacityTypes": ["spott"], "for": "5m"}),
        "stockOut.capacityTypes[0]: there is no value spott; did you mean spot?",
    ),
    (
        event("quota", {"capacityType": "ondemand", "vcpus": 4}),
        "there is no value ondemand; did you mean on-demand?",
    ),
    (event("nodes", {}), "weather[0].nodes: there is nothing to change"),
    (event("stockOut", {"for": "0s"}), "weather[0].stockOut.for: 0s has no effect"),
    (event("nodes", {"boot": "1m"}, at="21m"), "weather[0].at: 21m is not before the end of the scenario (20m)"),
    (event("spotInteruption", {}), "there is no field spotInteruption; did you mean spotInterruption?"),
    (event("throttle", {"api": "awss", "for": "5m"}), "throttle.api: there is no value awss; did you mean aws?"),
    (event("throttle", {"calls": ["RunInstances"], "for": "5m"}), "there is no value RunInstances; did you mean"),
    (
        event("throttle", {"api": "kubernetes", "calls": ["CreateFleet"], "for": "5m"}),
        "throttle.calls: these are calls of aws",
    ),
    (asserted("evictions", workload="wob"), "assertions[0].evictions.workload: there is no workload wob"),
    (asserted("disruptionsPerHour", atMost=1, nodePool="x"), "there is no NodePool x; here are general"),
    (
        asserted("disruptionsPerHour", atMost=1, reasons=["Drifted", "spot_interrupted"]),
        "disruptionsPerHour.reasons[1]: there is no reason spot_interrupted; did you mean SpotInterrupted?",
    ),
    ({"timeline": [{"at": "5m", "scale": {"wob": 2}}]}, "scale.wob: there is no Deployment wob; did you mean"),
    (
        {"timeline": [{"at": "5m", "delete": ["Deploymnt/web"]}]},
        "there is no kind Deploymnt; did you mean Deployment?",
    ),
    ({"timeline": [{"at": "5m", "delete": ["web"]}]}, "timeline[0].delete[0]: web is no object; write KIND/NAME"),
    (
        {"timeline": [{"at": "5m", "delete": ["NodePool/generl"]}]},
        "timeline[0].delete[0]: there is no NodePool generl; did you mean general?",
    ),
    ({"timeline": [{"at": "25m", "scale": {"web": 2}}]}, "timeline[0].at: 25m is not before the end"),
    (web(overTime=[{"at": "30m", "replicas": 2}]), "workloads[0].overTime[0].at: 30m is not before the end"),
    (
        web(overTime=[{"at": "1m", "replicas": 2}, {"at": "60s", "replicas": 3}]),
        "workloads[0].overTime[1].at: two entries have the at 1m",
    ),
    (web(cpu="1x"), "workloads[0].cpu: '1x' is not a quantity"),
    (web(memory="-1Gi"), "workloads[0].memory: -1Gi is below 0"),
    (web(memory="512m"), "workloads[0].memory: 512m is less than a byte for each unit; write 512Mi"),
    (web(memory="2GB"), "workloads[0].memory: '2GB' is not a quantity (such as 500m, 2, 1.5Gi)"),
    (web(cpu=True), "workloads[0].cpu: this is true or false; write a whole number or a number or a text"),
    (web(cpu=float("nan")), "workloads[0].cpu: 'nan' is not a quantity"),
    (web(name=False), "workloads[0].name: this is true or false; write a text, in quotes"),
    (web(name="a" * 64), "is no name of at most 63 characters: write lower case letters, digits and -"),
    (web(replicas=None), "workloads[0].replicas: the value is empty; write a whole number, or remove the field"),
    (web(replicas=-1), "workloads[0].replicas: the value must be at least 0; write such a number"),
    (web(replicas=10**6), "workloads[0].replicas: the value must be at most 100000; write such a number"),
    (web(pod=[]), "workloads[0].pod: this is a list; write a map"),
    (web(pod={"nodeName": "a"}), "workloads[0].pod.nodeName: nodes get their names during the run; remove it"),
    (web(pod={"schedulerName": "a"}), "pod.schedulerName: the simulation has only the default scheduler; remove it"),
    (web(pod={"priority": 7}), "pod.priority: the API server sets it from priorityClassName; write that"),
    ({"weather": None}, "weather: the value is empty; write a list, or remove the field"),
    ({"weather": {"at": "5m"}}, "weather: this is a map; write a list"),
    ({"weather": [{"at": "5m", "spotInterruption": None}]}, "weather[0]: exactly one event is required, found none"),
    ({"warmUp": "-1m"}, "warmUp: '-1m' is not a duration (such as 30s, 1h30m, 720h)"),
    ({"assertions": []}, "assertions: the length must be at least 1; change the number of entries or characters"),
    (event("price", {"factor": float("nan")}), "weather[0].price.factor: the value must be at least 0.001"),
    (event("instanceFailure", {"count": 0}), "instanceFailure.count: the value must be at least 1"),
    (event("nodeNotReady", {}, at="2024-01-01T00:00:00+02:00"), "'2024-01-01T00:00:00+02:00' is not a duration"),
    (event("stockOut", {"for": "999999999999h"}), "weather[0].stockOut.for: '999999999999h' is longer than 2562047h"),
    (asserted("cost", atMost=float("nan")), "assertions[0].cost.atMost: the value must be at least 0"),
    (
        objects(node_pool("general", {"weight": 5})),
        "world.objects[2]: another NodePool general is in world.objects[1], and only one would have an effect",
    ),
    (
        objects(deployment("web", {})),
        "workloads[0].name: another Deployment default/web is in world.objects[2], and only one would have an effect",
    ),
    (web(name="Web_1"), "workloads[0].name: 'Web_1' is no name"),
    (web(namespace="a.b"), "workloads[0].namespace: 'a.b' is no name"),
    (web(annotations={"a b": "c"}), "workloads[0].annotations.a b: must begin and end with a letter or digit"),
    (
        budget(maxUnavailble=1),
        "podDisruptionBudget.maxUnavailble: there is no field maxUnavailble; did you mean max",
    ),
    (budget(minAvailable=1, maxUnavailable=1), "workloads[0].podDisruptionBudget: minAvailable and maxUnavailable"),
    (budget(minAvailable="half"), 'podDisruptionBudget.minAvailable: "half" is neither a number from 0 nor'),
    (budget(maxUnavailable=-1), "podDisruptionBudget.maxUnavailable: -1 is neither"),
    (
        budget(minAvailable=1, unhealthyPodEvictionPolicy="Always"),
        "unhealthyPodEvictionPolicy: there is no value Always; did you mean AlwaysAllow?",
    ),
    (web(pod={"tolerationss": []}), "workloads[0].pod.tolerationss: there is no field tolerationss; did you mean"),
    (web(pod={"tolerations": {"key": "a"}}), "workloads[0].pod.tolerations: {key: a} is not a list"),
    (web(pod={"nodeSelector": {"team": 1}}), "workloads[0].pod.nodeSelector.team: 1 is not a text"),
    (web(pod={"terminationGracePeriodSeconds": "30"}), 'terminationGracePeriodSeconds: "30" is not a whole number'),
    (spread(topologyky="zone"), "topologySpreadConstraints[0].topologyky: there is no field topologyky; did you"),
    (spread(whenUnsatisfiable="DoNotSchedul"), "there is no value DoNotSchedul; did you mean DoNotSchedule?"),
    (
        web(pod={"containers": [{"name": "a", "resources": {"requests": {"cpu": "one"}}}]}),
        "pod.containers[0].resources.requests.cpu: 'one' is not a quantity",
    ),
    (
        objects({"apiVersion": "karpenter.sh/v1", "kind": "NodePol"}),
        "world.objects[2].kind: there is no kind NodePol",
    ),
    (
        objects({"apiVersion": "karpenter.sh/v1beta1", "kind": "NodePool", "metadata": {"name": "a"}}),
        'world.objects[2].apiVersion: the API server refuses NodePool a: "karpenter.sh/v1beta1" of NodePool is not',
    ),
    (
        objects({**deployment("api", {}), "metadata": {}}),
        "objects[2].metadata.name: the API server refuses Deployment",
    ),
    (
        objects({**deployment("api", {}), "spec": {"replica": 3}}),
        "there is no field replica; did you mean replicas?",
    ),
    (spread(maxSkew=0), "topologySpreadConstraints[0].maxSkew: 0 is less than 1, the least allowed"),
    (
        web(pod={"containers": [{"image": "a"}]}),
        "workloads[0].pod.containers[0]: the field name is missing; add it",
    ),
    (web(pod={"containers": []}), "workloads[0].pod: the field containers is missing; add it"),
    (web(pod={"restartPolicy": "Never"}), "workloads[0].pod.restartPolicy: the pods of a Deployment have Always"),
    (web(pod={"priorityClassName": "hihg"}), "workloads[0].pod.priorityClassName: there is no PriorityClass hihg"),
    (
        web(cpu=None, pod={"containers": [{"name": "a", "resources": {"requests": {"cpu": 2}, "limits": {"cpu": 1}}}]}),
        "requests.cpu: 2 is more than the limit 1",
    ),
    (container(requests={"cpu": "2"}), "workloads[0].cpu: pod.containers[0] requests 2 of it already; remove one"),
    (container(limits={"cpu": "500m"}), "workloads[0].cpu: 1 is more than the limit 500m"),
    (web(pod={"containers": [None]}), "workloads[0].pod.containers[0]: the entry is empty; write a value"),
    (container(requests={"mem": "2Gi"}), "requests.mem: there is no resource mem; did you mean memory?"),
    (budget(maxUnavailable="200%"), '"200%" is neither a number from 0 nor a percentage'),
    (budget(maxUnavailable=1, selector={}), "podDisruptionBudget.selector: the selector is that of the workload"),
    (
        web(annotations={"karpenter.sh/do-not-disrupt": "yes"}),
        'annotations.karpenter.sh/do-not-disrupt: "yes" is neither true nor a positive duration',
    ),
    (
        web(annotations={"karpenter.sh/do-not-disrup": "true"}),
        "there is no annotation karpenter.sh/do-not-disrup; did you mean karpenter.sh/do-not-disrupt?",
    ),
    (
        objects({**deployment("api", {}), "metadata": {"name": "API_1"}}),
        'world.objects[2].metadata.name: the API server refuses Deployment API_1: "API_1" is no name',
    ),
    (
        objects({**deployment("api", {}), "spec": {**deployment("api", {})["spec"], "replicas": -1}}),
        "world.objects[2].spec.replicas: the API server refuses Deployment api: -1 is less than 0",
    ),
    (
        objects({**deployment("api", {}), "spec": {**deployment("other", {})["spec"], "selector": OTHER}}),
        'world.objects[2].spec.selector.matchLabels.app: the API server refuses Deployment api: "x" is not the',
    ),
    (asserted("cost", atMost=float("inf")), "assertions[0].cost.atMost: "),
    (
        asserted("podsRunWithin", duration="1h"),
        "podsRunWithin.duration: 1h is longer than the time after the warm-up",
    ),
    (
        {"world": {**WORLD, "settings": {"CLUSTER_NAME": "x"}}},
        "world.settings.CLUSTER_NAME: the simulated cluster is",
    ),
    (
        {"world": {**WORLD, "settings": {"BATCH_MAX_DURATION": 9}}},
        "world.settings: this is a whole number; write a text, in qu",
    ),
    ({"world": {**WORLD, "settings": {"BATCH_MAX_DURATON": "9s"}}}, "did you mean BATCH_MAX_DURATION?"),
    ({"world": {**WORLD, "zones": ["us-west-2a", "us-west-2a"]}}, "world.zones[1]: us-west-2a is listed twice"),
    ({"world": {**WORLD, "zones": ["west"]}}, "world.zones[0]: west is no zone"),
    # Rules between the fields of pods and workloads.
    (
        objects({**BARE, "spec": {**BARE["spec"], "nodeName": "a"}}),
        "world.objects[2].spec.nodeName: kerf simulate cannot run Pod a: nodes get their names",
    ),
    (
        objects({**BARE, "spec": {**BARE["spec"], "schedulerName": "a"}}),
        "world.objects[2].spec.schedulerName: kerf simulate cannot run Pod a: the simulation has only",
    ),
    (
        selector(),
        "world.objects[2].spec.selector: the API server refuses Deployment api: it is empty; write matchLabels",
    ),
    (
        selector(matchExpressions=[{"key": "app", "operator": "NotIn", "values": ["api"]}]),
        "spec.selector.matchExpressions[0]: the API server refuses Deployment api: it does not select the labels",
    ),
    (port(containerPort=81, hostPort=70000), "ports[1].hostPort: 70000 is more than 65535, the most allowed"),
    (
        port(containerPort=81, hostPort=80),
        "containers[0].ports[1].hostPort: the host port 80 is used twice in this pod",
    ),
    (port(hostPort=81), "containers[0].ports[1]: the field containerPort is missing; add it"),
    (port(containerPort=0), "ports[1].containerPort: 0 is less than 1, the least allowed"),
    (port(containerPort=81, protocol="HTTP"), "ports[1].protocol: there is no value HTTP; did you mean TCP?"),
    (
        rolling(deployment, "strategy", rollingUpdate={"maxSurge": 0, "maxUnavailable": "0%"}),
        "spec.strategy.rollingUpdate.maxUnavailable: the API server refuses Deployment api: it and maxSurge are both 0",
    ),
    (
        rolling(deployment, "strategy", type="Recreate", rollingUpdate={"maxSurge": 1}),
        "spec.strategy.rollingUpdate: the API server refuses Deployment api: only the type RollingUpdate has it",
    ),
    (
        rolling(daemon_set, "updateStrategy", rollingUpdate={"maxUnavailable": 0}),
        "rollingUpdate.maxUnavailable: the API server refuses DaemonSet api: it and maxSurge are both 0",
    ),
    (
        rolling(daemon_set, "updateStrategy", rollingUpdate={"maxSurge": 1}),
        "rollingUpdate.maxSurge: the API server refuses DaemonSet api: it and maxUnavailable exclude each other",
    ),
    (
        container(claims=[{"name": "gpu"}]),
        "containers[0].resources.claims[0].name: there is no claim gpu in this pod; add it to resourceClaims",
    ),
    (
        pod(resourceClaims=[{"name": "gpu"}]),
        "resourceClaims[0]: it needs one of resourceClaimName and resourceClaimTemplateName; write exactly one",
    ),
    (
        pod(resourceClaims=[{"name": "gpu", "resourceClaimName": "a"}] * 2),
        "resourceClaims[1].name: another claim has the same name; change one",
    ),
    (
        {"workloads": [{"name": "web", "pod": {"containers": [{"name": "main", "resources": PAGES}]}}]},
        "containers[0].resources: hugepages-2Mi needs a request of cpu or memory beside it; add one",
    ),
    (
        container(limits={"nvidia.com/gpu": "500m"}),
        'limits.nvidia.com/gpu: "500m" of nvidia.com/gpu is no whole number; write 1',
    ),
    (container(limits={"nvidia.com/gpu": 0.5}), "limits.nvidia.com/gpu: 0.5 of nvidia.com/gpu is no whole number"),
    (
        container(requests={"nvidia.com/gpu": 1}, limits={"nvidia.com/gpu": 2}),
        "requests.nvidia.com/gpu: the request of nvidia.com/gpu must be its limit",
    ),
    (container(requests={"nvidia.com/gpu": 1}), "requests.nvidia.com/gpu: nvidia.com/gpu needs a limit; write it into"),
    (container(requests={"memory": []}), "requests.memory: [] is not a quantity; write one such as 500m or 2Gi"),
    (pod(containers=[{"name": "a"}, {"name": "a"}]), "pod.containers[1].name: another container has the same name"),
    (pod(initContainers=[{"name": "web"}]), "pod.initContainers[0].name: another container has the same name"),
    (pod(containers=[{"name": "A_b"}]), 'pod.containers[0].name: "A_b" is no name of at most 63 characters'),
    (
        pod(containers=[{"name": "a", "volumeMounts": [{"name": "x", "mountPath": "/x"}]}]),
        "containers[0].volumeMounts[0].name: there is no volume x in this pod; add it to volumes",
    ),
    (toleration(key="a", operator="Equals"), "tolerations[0].operator: there is no value Equals; did you mean Equal?"),
    (toleration(key="a", operator="Exists", value="b"), "tolerations[0].value: the operator Exists has no value"),
    (toleration(value="b"), "tolerations[0]: without a key the operator must be Exists; write both, or add the key"),
    (
        toleration(key="a", operator="Exists", effect="NoSchedule", tolerationSeconds=5),
        "tolerations[0].tolerationSeconds: only the effect NoExecute has it",
    ),
    (spread(whenUnsatisfiable="ScheduleAnyway", minDomains=2), "[0].minDomains: only whenUnsatisfiable: DoNotSchedule"),
    (spread(matchLabelKeys=["a"]), "topologySpreadConstraints[0].matchLabelKeys: labelSelector is missing; add it"),
    (spread(topologyKey="a b"), 'topologySpreadConstraints[0].topologyKey: "a b" is no label name'),
    (node_affinity(operator="In"), "matchExpressions[0].values: the operator In needs at least one value; add it"),
    (node_affinity(operator="Exists", values=["a"]), "matchExpressions[0].values: the operator Exists has no values"),
    (node_affinity(operator="Gt", values=["a"]), "matchExpressions[0].values: the operator Gt needs one whole number"),
    (node_affinity(operator="In ", values=["a"]), "[0].operator: there is no value In ; did you mean In?"),
    (pod(schedulingGates=[{"name": "a b"}]), 'schedulingGates[0].name: "a b" is no name of a gate'),
    (
        objects({**deployment("api", {}), "metadata": {"name": "api", "namespace": "A"}}),
        'world.objects[2].metadata.namespace: the API server refuses Deployment api: "A" is no name of a Namespace',
    ),
    # NodePools that can never have a node.
    (
        without_class(),
        "objects[2].spec.template.spec.nodeClassRef.name: NodePool other: there is no EC2NodeClass defualt; did you",
    ),
    (
        required("topology.kubernetes.io/zon", "us-west-2a"),
        "world.objects[2].spec.template.spec.requirements[0].key: NodePool typo: no node has the label topology.kub",
    ),
    (
        required("node.kubernetes.io/instance-type", "m5.larg"),
        "node.kubernetes.io/instance-type In [m5.larg]: there is no value m5.larg; did you mean m5.large?",
    ),
    (required("topology.kubernetes.io/zone", "us-west-2x"), "there is no value us-west-2x; did you mean us-west-2"),
    (
        required("kubernetes.io/os", "linuxx"),
        "kubernetes.io/os In [linuxx]: there is no value linuxx; did you mean linux",
    ),
    (required("kubernetes.io/arch", "amd"), "kubernetes.io/arch In [amd]: there is no value amd; did you mean amd64?"),
    # Names in pods and limits.
    (pod(nodeSelector={"karpenter.sh/capacity-typ": "spot"}), "did you mean karpenter.sh/capacity-type?"),
    (
        spread(topologyKey="topology.kubernetes.io/zon"),
        "topologySpreadConstraints[0].topologyKey: no node has the label topology.kubernetes.io/zon; did you mean topo",
    ),
    (
        objects({**deployment("api", {}), "spec": with_pod(priorityClassName="hihg")}),
        "spec.template.spec.priorityClassName: Deployment api: there is no PriorityClass hihg; here are system-",
    ),
    (
        objects({**deployment("api", {}), "spec": with_pod(nodeSelector={"kubernetes.io/arh": "arm64"})}),
        "spec.template.spec.nodeSelector.kubernetes.io/arh: Deployment api: no node has the label kubernetes.io/arh;",
    ),
    (
        objects(node_pool("other", {"limits": {"cpus": "10"}})),
        "spec.limits.cpus: NodePool other: there is no resource cpus; did you mean cpu?; this limit would have",
    ),
    (
        objects({"apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler", "metadata": {"name": "a"}}),
        "world.objects[2].kind: the simulation does not run this kind; describe the replicas in overTime of a workload",
    ),
]
