"""What the chart takes: as many values as the page lists, with the defaults that it says, and nothing that is wrong."""

from __future__ import annotations

from collections.abc import Iterator
from copy import deepcopy
from pathlib import Path
from typing import Any, Final

import pytest
import yaml
from jsonschema import Draft7Validator

from .values_table import CHART, Row, at, defaults, leaves, rows, schema

#: Values of Karpenter's chart 1.14.1. Source: operations reference §6.2.
KARPENTERS: Final = frozenset((Path(__file__).parent / "karpenter_keys.txt").read_text(encoding="utf-8").split())
KARPENTERS_ROWS: Final = rows("Karpenter's")
#: Values that Karpenter's charts had once, and gates as 1.8.0 spelled one.
OLDER: Final = {
    "webhook": {
        "enabled": False,
        "metrics": {"port": 8001},
        "serviceName": "karpenter",
        "serviceNamespace": "kube-system",
    },
    "postInstallHook": {"image": {"repository": "public.ecr.aws/bitnami/kubectl", "tag": "1.30", "digest": "sha256:0"}},
    "settings": {"featureGates": {"StaticCapacity": True, "SpotToSpotConsolidation": "false", "drift": True}},
}
ALL_ROWS: Final = (*KARPENTERS_ROWS, *rows("Ours"))


def problems(changes: Any) -> Iterator[str]:
    """What the schema says of the chart's values with these changes: the place, and what is wrong there."""
    for error in Draft7Validator(schema()).iter_errors(merged(defaults(), changes)):
        yield f"/{'/'.join(map(str, error.absolute_path))}: {error.message}"


def merged(values: Any, changes: Any) -> Any:
    """As Helm merges them."""
    if not (isinstance(values, dict) and isinstance(changes, dict)):
        return deepcopy(changes)
    return {**values, **{key: merged(values.get(key), change) for key, change in changes.items()}}


def test_the_page_lists_every_value_once() -> None:
    listed = [row.value for row in ALL_ROWS]
    assert len(set(listed)) == len(listed)
    assert {row.value for row in KARPENTERS_ROWS} == KARPENTERS
    assert set(listed) == {path for path, _ in leaves(defaults(), schema())}


@pytest.mark.parametrize("row", ALL_ROWS, ids=lambda row: str(row.value))
def test_the_defaults_are_those_of_the_page(row: Row) -> None:
    """Karpenter's where it says the same, else those that it says, with a reason."""
    assert at(defaults(), row.value) == yaml.safe_load(row.stated)
    if not row.same:
        default, _, reason = row.here.partition(": ")
        assert default == f"`{row.stated}`"
        assert len(reason) > 20
        assert row.stated != row.theirs


def test_the_schema_is_one_and_the_defaults_fit_it() -> None:
    Draft7Validator.check_schema(schema())
    assert list(problems({})) == []


def test_older_values_switch_nothing_of_kerf_off() -> None:
    """They are in the schema alone: no template but that of the notes reads them."""
    assert not {path for path, _ in leaves(OLDER, schema())} & {path for path, _ in leaves(defaults(), schema())}
    templates = [
        file for file in sorted((CHART / "templates").rglob("*")) if file.is_file() and file.name != "NOTES.txt"
    ]
    assert not [file for file in templates if ".Values.webhook.enabled" in file.read_text(encoding="utf-8")]


def test_values_that_somebody_wrote_for_karpenter_fit() -> None:
    """All of them are in use in that file, but for those that another value there makes pointless."""
    written = yaml.safe_load((Path(__file__).parent / "karpenter_values.yaml").read_text(encoding="utf-8"))
    assert list(problems(written)) == []
    used = {path for path, _ in leaves(written, schema())}
    unused = {"fullnameOverride", "settings.awsFeatureGates.nodeClassCEL", "controller.securityContext.seLinuxOptions"}
    assert KARPENTERS - used == unused | {f"controller.image.{part}" for part in ("repository", "tag", "digest")}


@pytest.mark.parametrize(
    "changes",
    [
        {"settings": {"featureGates": {"nodeOverlay": "true"}, "reservedENIs": 0, "vmMemoryOverheadPercent": "0"}},
        {"webhook": {"timeoutSeconds": "1", "deletionGuard": "false"}, "replicas": "1"},
        {"settings": {"batchMaxDuration": "{{ .Values.window }}", "clusterEndpoint": "https://{{ .Values.host }}"}},
        {"global": {"anything": [1]}},
        {"strategy": {"type": "Recreate", "rollingUpdate": None}},
        {"additionalAnnotations": {"off": None}, "initContainers": {}},
        OLDER,
    ],
    ids=["strings and numbers", "as --set-string has them", "templates", "a parent's", "recreated", "nothing", "1.0"],
)
def test_spellings_of_right_values(changes: Any) -> None:
    assert list(problems(changes)) == []


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"setings": {}}, "/: Additional properties are not allowed ('setings' was unexpected)"),
        ({"settings": {"clusterNam": "x"}}, "/settings: Additional properties are not allowed"),
        ({"settings": {"featureGates": {"drif": True}}}, "/settings/featureGates: Additional properties"),
        ({"settings": {"featureGates": {"nodeRepair": "yes"}}}, "/settings/featureGates/nodeRepair: 'yes' is not one"),
        ({"settings": {"preferencePolicy": "ignore"}}, "/settings/preferencePolicy: 'ignore' is not one of"),
        ({"settings": {"batchIdleDuration": "1 s"}}, "/settings/batchIdleDuration: '1 s' does not match"),
        ({"settings": {"clusterEndpoint": "10.0.0.1"}}, "/settings/clusterEndpoint: '10.0.0.1' does not match"),
        ({"settings": {"vmMemoryOverheadPercent": 7.5}}, "/settings/vmMemoryOverheadPercent: 7.5 is greater"),
        ({"settings": {"deletionGuardPercent": "101"}}, "/settings/deletionGuardPercent: '101' does not match"),
        ({"settings": {"reservedENIs": -1}}, "/settings/reservedENIs: -1 is less than"),
        ({"logLevel": "warn"}, "/logLevel: 'warn' is not one of"),
        ({"logOutputPaths": ["/var/log/kerf.log"]}, "/logOutputPaths/0: '/var/log/kerf.log' is not one of"),
        ({"controller": {"image": {"digest": "latest"}}}, "/controller/image/digest: 'latest' does not match"),
        ({"controller": {"resources": {"request": {}}}}, "/controller/resources: Additional properties"),
        ({"tolerations": [{"keys": "x"}]}, "/tolerations/0: Additional properties"),
        ({"webhook": {"failurePolicy": "ignore"}}, "/webhook/failurePolicy: 'ignore' is not one of"),
        ({"webhook": {"url": "http://10.0.0.5"}}, "/webhook/url: 'http://10.0.0.5' does not match"),
        ({"webhook": {"timeoutSeconds": 60}}, "/webhook/timeoutSeconds: 60 is greater than"),
        ({"podLabels": {"on": True}}, "/podLabels/on: True is not of type"),
        ({"prometheusRule": {"alerts": {"KerfNoLeeder": {}}}}, "/prometheusRule/alerts: Additional properties"),
        (
            {"prometheusRule": {"alerts": {"KerfNoLeader": {"threshold": 1}}}},
            "/prometheusRule/alerts/KerfNoLeader: Additional properties",
        ),
        (
            {"prometheusRule": {"alerts": {"KerfPodsWait": {"for": "5 minutes"}}}},
            "/prometheusRule/alerts/KerfPodsWait/for: '5 minutes' does not match",
        ),
    ],
    ids=lambda given: given.partition(":")[0] if isinstance(given, str) else "",
)
def test_wrong_values_are_refused_at_their_place(changes: Any, problem: str) -> None:
    (found,) = problems(changes)
    assert found.startswith(problem)
