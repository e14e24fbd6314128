"""Values that nobody expects: of other types, too large, too long, too deep, or made to keep a regex engine busy."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import UTC, date, datetime
from random import Random
from typing import Any, Final

#: What patterns of the API repeat. A long run of it that ends wrongly makes a backtracking engine try all partitions.
PUMPS: Final = (
    "a",
    "1",
    "-",
    ".",
    " ",
    "/",
    "_",
    "%",
    "0s",
    "1h",
    "a.",
    "a-",
    "a/",
    "1.",
    "a a",
    "*/1 ",
    "1-2,",
    "é",
    "1 1",
)
PREFIXES: Final = ("", "", "1", "a", "-", "Never", "@", "arn:", "ami-", "+", "1h ", "1 ", "tag:", "0.", "* * * * ")
ENDINGS: Final = ("", "!", "\n", " ", "x", "-", "%", "\x00", "\ud800", "²", "h", "Gi")
SCALARS: Final = (
    None,
    True,
    False,
    0,
    -1,
    7,
    1.0,
    1.5,
    -0.0,
    1e300,
    float("nan"),
    float("inf"),
    -float("inf"),
    2**31,
    2**53 + 1,
    2**63,
    -(2**63) - 1,
    10**40,
    10**400,
    10**5000,
    date(2026, 2, 28),
    datetime(2026, 2, 28, 12, tzinfo=UTC),
    b"bytes",
)
TEXTS: Final = (
    "",
    " ",
    "\n",
    "Never",
    "null",
    "0",
    "-0",
    "007",
    "²",
    "١٢",
    "1e9999999999%",
    "1e30",
    "9" * 400,
    "9" * 5000,
    "100%",
    "1e308",
    "0x10",
    "1_000",
    "true",
    "\ud800",
    "a\udfffb",
    "\x00",
    "é" * 63,
    "\U0001d54f",
    "\u202eabc",
    "ﬁ",
    "İ",
    "{{ .Values.x }}",
    "${x}",
    "*",
    "?",
    "a" * 63,
    "a" * 64,
    "a" * 254,
    "karpenter.sh/nodepool",
    "karpenter.k8s.aws/instance-cpu",
    "topology.kubernetes.io/zone",
    "karpenter.sh/capacity-type",
    "node.kubernetes.io/instance-type",
    "on_demand",
    "c5.lage",
    "us-east-1",
    "al2023@latest",
)
KEYS: Final = (
    None,
    True,
    5,
    1.5,
    10**5000,
    date(2026, 1, 1),
    ("a", 1),
    (),
    float("nan"),
    "",
    " ",
    "\ud800",
    "²",
    "a" * 400,
)
CRON_WORDS: Final = (
    "*",
    "?",
    "*/2",
    "*/0",
    "5/10",
    "1-5",
    "5-1",
    "0",
    "59",
    "60",
    "L",
    "7",
    "mon",
    "jan-mar",
    "1,",
    ",",
    "+3",
)
OPERATORS: Final = ("In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt", "Gte", "Lte", "in", "", None, 5)


KEYS_OF_LABELS: Final = (
    "karpenter.k8s.aws/instance-cpu",
    "karpenter.k8s.aws/instance-memory",
    "karpenter.k8s.aws/instance-family",
    "node.kubernetes.io/instance-type",
    "topology.kubernetes.io/zone",
    "karpenter.sh/capacity-type",
    "karpenter.sh/nodepool",
    "beta.kubernetes.io/arch",
    "example.com/team",
    "ä",
)
VALUES: Final = (
    "a",
    "m7i",
    "c5.lage",
    "us-east-1",
    "us-east-1a",
    "on_demand",
    "spot",
    "4",
    "-1",
    "0",
    "007",
    "²",
    "١٢",
    "9" * 19,
    "9" * 400,
    "9" * 5000,
    "",
    "a b",
    None,
    5,
)
KUBELET: Final = (
    "maxPods",
    "podsPerCore",
    "clusterDNS",
    "kubeReserved",
    "systemReserved",
    "evictionHard",
    "evictionSoft",
    "evictionSoftGracePeriod",
    "imageGCHighThresholdPercent",
    "imageGCLowThresholdPercent",
    "cpuCFSQuota",
    "registerWithTaints",
    "logging",
)


def hostile(random: Random, longest: int = 3000) -> str:
    """A text for a regex engine to run into."""
    count = random.choice((3, 30, 300, longest))
    return random.choice(PREFIXES) + random.choice(PUMPS) * count + random.choice(ENDINGS)


def requirement(random: Random) -> Any:
    """A requirement that is half right."""
    values: Any = [random.choice(VALUES) for _ in range(random.randrange(4))]
    made = {
        "key": random.choice(KEYS_OF_LABELS) if random.random() < 0.8 else scalar(random),
        "operator": random.choice(OPERATORS),
        "values": values if random.random() < 0.8 else scalar(random),
        "minValues": random.choice((None, 1, 2, 50, 51, 0, True, "1", 10**400)),
    }
    return _some(random, made)


def budget(random: Random) -> Any:
    """A budget that is half right."""
    made = {
        "nodes": random.choice(("0", "0%", "10%", "100%", "101%", "5", 5, None, "9" * 30, "4294967296", "-1")),
        "schedule": cron(random),
        "duration": random.choice(("1h", "8h", "24h", "168h", "2000000h", "99999999h", "1m", "0m", "1d", None, 5)),
        "reasons": random.choice(([], ["Empty"], ["Drifted", "Underutilized"], ["Drift"], None, 5, "Drifted", [5])),
    }
    return _some(random, made)


def kubelet(random: Random) -> Any:
    """A kubelet configuration that is half right."""
    amounts = ("5%", "100%", "101%", "1e9999999999%", "1e5%", "²%", "1/2%", "1_0%", "500m", "1Gi", "-1", "1e30", "x", 5)
    names = ("memory.available", "nodefs.available", "cpu", "memory", "pid", "x")
    maps = [{random.choice(names): random.choice(amounts) for _ in range(3)} for _ in range(3)]
    return {
        random.choice(KUBELET): random.choice((*maps, random.choice(amounts), scalar(random), [scalar(random)]))
        for _ in range(random.randrange(4))
    }


def limits(random: Random) -> Any:
    """Amounts of resources, some of them."""
    names = ("cpu", "memory", "nodes", "example.com/gpu", "", "ä")
    amounts = ("1", 5, "1e30", "1e999", "9" * 5000, "-3", "0", "64GB", "1.5.5", "²", None, True, 10**300)
    return {random.choice(names): random.choice(amounts) for _ in range(random.randrange(4))}


def taint(random: Random) -> Any:
    """A taint that is half right."""
    made: dict[str, Any] = {
        "key": random.choice(("a", "", 5, None, "a" * 64, "example.com/batch")),
        "value": random.choice(("", "a", None, True, "a b", "²")),
        "effect": random.choice(("NoSchedule", "NoExecute", "PreferNoSchedule", "", None, [])),
    }
    return _some(random, made)


def _several(make: Callable[[Random], Any]) -> Callable[[Random], Any]:
    return lambda random: [make(random) for _ in range(random.choice((0, 1, 2, 3, 8)))]


def cron(random: Random) -> str:
    """A schedule that may or may not be read."""
    if random.random() < 0.2:
        return random.choice(("@daily", "@weekly", "@yearly", "@every 1h", "@", "@reboot"))
    words = [random.choice(CRON_WORDS) for _ in range(random.choice((4, 5, 5, 5, 5, 5, 6)))]
    return random.choice((" ", " ", "  ", "\t")).join(words)


def scalar(random: Random) -> Any:
    """A single value of some type."""
    return random.choice((random.choice(SCALARS), random.choice(TEXTS), hostile(random)))


def deep(random: Random) -> Any:
    """A value in many boxes."""
    value: Any = scalar(random)
    for _ in range(random.choice((3, 40, 70, 300, 2000))):
        value = [value] if random.random() < 0.3 else {random.choice("ab"): value}
    return value


def wide(random: Random) -> Any:
    """Many entries, sound or not."""
    count = random.choice((20, 160, 600))
    make = random.choice((scalar, requirement, budget, lambda _: {"key": "a", "effect": "NoSchedule"}))
    if random.random() < 0.3:
        return {f"{random.choice(('a', 'é', 'example.com/k', 'nodes'))}{n}": make(random) for n in range(count)}
    return [make(random) for _ in range(count)]


def anything(random: Random) -> Any:
    """A value of any sort."""
    sorts: tuple[tuple[int, Callable[[Random], Any]], ...] = (
        (40, scalar),
        (10, hostile),
        (8, requirement),
        (8, budget),
        (4, cron),
        (3, deep),
        (2, wide),
        (4, lambda r: [scalar(r) for _ in range(r.randrange(4))]),
        (4, lambda r: {r.choice(("a", "key", "nodes", "name")): scalar(r) for _ in range(r.randrange(4))}),
        (2, lambda r: (scalar(r), {"a", 1})),
    )
    return random.choices([make for _, make in sorts], [weight for weight, _ in sorts])[0](random)


def _some(random: Random, made: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in made.items() if random.random() < 0.8}


#: What to put into fields of these names to get past the first look.
AIMED: Final[Mapping[str, Callable[[Random], Any]]] = {
    "requirements": _several(requirement),
    "budgets": _several(budget),
    "taints": _several(taint),
    "startupTaints": _several(taint),
    "limits": limits,
    "kubelet": kubelet,
    "labels": lambda random: {random.choice(KEYS_OF_LABELS): random.choice(VALUES) for _ in range(3)},
}
