"""docs/tasks: examples are valid, their pods get the promised nodes, and figures are those of the code."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections import Counter
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path
from typing import Final

import botocore.session
import jmespath  # type: ignore[import-untyped]
import pytest
import yaml
from botocore import xform_name

from kerf.aws.observe.cluster_facts import NEWEST, OLDEST
from kerf.aws.observe.images import UnsupportedAlias, alias_sources
from kerf.aws.observe.reservations import LAST_CALL
from kerf.cli.verbs import validate
from kerf.disruption.consolidation.moves import SPOT_TO_SPOT_TYPES
from kerf.ec2 import interruptions
from kerf.model.aws.interruptions import InterruptionKind, Message
from kerf.model.backoff import POOL_STEPS, Steps
from kerf.model.settings import Settings
from kerf.pods import requirements
from kerf.telemetry.catalogue.listed_events import INTERRUPTIONS
from kerf_api.v1.budgets import allowed_disruptions
from tests import worlds
from tests.cluster.definitions import RELEASES
from tests.oracle.binaries import RELEASES as ORACLES
from tests.sources import ROOT
from tests.unit.charts.test_values import problems as problems_of_values
from tests.unit.docs.clusters_page import options
from tests.unit.docs.task_pages import FILES, MANIFESTS, PAGES, VALUES, commands, solved

#: Findings about files that are alternatives of one page, or whose pods are the reader's.
ACCEPTED: Final = {
    "budgets.md": "KERF-SET-304",
    "spot.md": "KERF-SET-304",
    "gpus.md": "KERF-SET-306",
    "pending-pods.md": "KERF-SET-315",
}
#: Words of Kubernetes and IAM.
OF_OTHERS: Final = frozenset({"AmazonEKSWorkerNodePolicy", "AmazonSSMManagedInstanceCore"})
#: Words of the code and of the alerts.
KNOWN: Final = {
    word
    for path in (
        *(ROOT / "reconciler").rglob("*.py"),
        *(ROOT / "api").rglob("*.py"),
        ROOT / "charts/kerf/files/alerts.yaml",
    )
    for word in re.findall(r"[A-Z]\w+", path.read_text(encoding="utf-8"))
}
MONDAY: Final = datetime(2026, 3, 2, tzinfo=UTC)
DAYS: Final = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")


def row_of(page: str, first: str) -> list[str]:
    """The cells of the row of a table that begins with this cell, without it."""
    (found,) = re.findall(rf"^\| {re.escape(first)} \| (.*) \|$", PAGES[page], re.MULTILINE)
    return [cell.strip() for cell in found.split(" | ")]


# --- the folder ---------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("page", PAGES)
def test_a_page_is_short_and_the_index_links_it(page: str) -> None:
    assert 40 <= len(PAGES[page].splitlines()) <= 150
    assert f"](tasks/{page})" in (ROOT / "docs/index.md").read_text(encoding="utf-8")


def test_pages_agree_with_the_order_in_which_preferences_are_given_up() -> None:
    assert requirements.__doc__ is not None
    assert "preferences from the heaviest on" in requirements.__doc__
    concepts = (ROOT / "docs/concepts.md").read_text(encoding="utf-8")
    for text in (PAGES["pods.md"], concepts):
        assert "tries the preferred term of the greatest weight first" in " ".join(text.split())


def test_images_of_init_containers_are_looked_at_too() -> None:
    assert "['initContainers','containers'][*].image" in PAGES["graviton.md"]


@pytest.mark.parametrize("page", PAGES)
def test_every_yaml_of_a_page_is_a_file_that_these_tests_read(page: str) -> None:
    assert PAGES[page].count("```yaml\n") == sum(place[0] == page for place in FILES)


@pytest.mark.parametrize("page", sorted({page for page, _ in MANIFESTS}))
def test_kerf_validate_has_nothing_to_report_about_its_manifests(
    page: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for (of, name), text in FILES.items():
        if of == page and (of, name) in MANIFESTS:
            (tmp_path / name).write_text(text)
    default = yaml.safe_dump(worlds.node_class()).replace("@latest", "@v20250505")
    (tmp_path / "default.yaml").write_text(default)
    ignored = [word for rule in (ACCEPTED.get(page), "KERF-SET-302") if rule for word in ("--ignore", rule)]
    code = validate.main(["--strict", *ignored, str(tmp_path)])
    told = capsys.readouterr().out
    assert (code, told.splitlines()[:-1]) == (0, []), told


@pytest.mark.parametrize("place", VALUES, ids="/".join)
def test_its_values_are_values_of_the_chart(place: tuple[str, str]) -> None:
    assert [*problems_of_values(VALUES[place])] == []
    assert options(VALUES[place]).interruption_queue == "my-cluster"


@pytest.mark.parametrize("page", PAGES)
def test_the_verbs_and_flags_of_kerf_in_its_commands_exist(page: str) -> None:
    reference = (ROOT / "docs/reference/cli.md").read_text(encoding="utf-8")
    for verb, rest in re.findall(r"(?:^\$ |-- |`|\| )kerf ([a-z]+)([^`\n|]*)", PAGES[page], re.MULTILINE):
        assert f"## kerf {verb}\n" in reference
        assert [flag for flag in re.findall(r" (--[a-z-]+)", rest) if flag not in reference] == []


@pytest.mark.parametrize("page", PAGES)
def test_the_rules_and_values_that_it_names_exist(page: str) -> None:
    rules = (ROOT / "docs/reference/rules.md").read_text(encoding="utf-8")
    values = (ROOT / "docs/reference/values.md").read_text(encoding="utf-8")
    named = set(re.findall(r"`(settings\.[A-Za-z.]+|webhook\.[A-Za-z.]+|prometheusRule\.[A-Za-z.]+)", PAGES[page]))
    assert [one for one in sorted(named) if f"`{one}`" not in values] == []
    assert [one for one in re.findall(r"KERF-[A-Z]+\d?-\d+", PAGES[page]) if f"### {one}\n" not in rules] == []


# --- places of pods -----------------------------------------------------------------------------------------------
def test_the_three_pods_of_the_first_page_get_three_spot_nodes_in_three_zones() -> None:
    found = solved(("pods.md", "web.yaml"), ("spot.md", "mixed.yaml"))
    assert (len(found.new_nodes), found.unplaced) == (3, {})
    assert len({node.zones for node in found.new_nodes}) == 3
    assert {node.capacity_types for node in found.new_nodes} == {("spot",)}


def test_only_pods_that_tolerate_its_taint_go_to_graviton() -> None:
    found = solved(("graviton.md", "graviton.yaml"), ("graviton.md", "api.yaml"), ("pods.md", "web.yaml"))
    assert {key.partition("/")[2].partition("-")[0] for key in found.unplaced} == {"web"}
    assert {node.pool for node in found.new_nodes} == {"graviton"}


def test_one_pod_in_five_of_the_ratio_is_on_demand() -> None:
    found = solved(("spot.md", "ratio.yaml"))
    shares: Counter[tuple[str, ...]] = Counter()
    for node in found.new_nodes:
        shares[node.capacity_types] += len(node.pods)
    assert (shares, found.unplaced) == ({("on-demand",): 2, ("spot",): 8}, {})


def test_the_base_is_on_demand_up_to_its_limit_and_the_rest_is_spot() -> None:
    (worker,) = (one for one in MANIFESTS["spot.md", "ratio.yaml"] if one["kind"] == "Deployment")
    plain = {**worker["spec"]["template"]["spec"]}
    plain.pop("topologySpreadConstraints")
    template = {**worker["spec"]["template"], "spec": plain}
    many = {**worker, "spec": {**worker["spec"], "replicas": 100, "template": template}}
    found = solved(("spot.md", "base-and-burst.yaml"), more=[many])
    pods: Counter[str] = Counter()
    for node in found.new_nodes:
        pods[node.pool] += len(node.pods)
    assert found.unplaced == {}
    assert 50 <= pods["base"] <= 64
    assert pods["burst"] == 100 - pods["base"]


def test_a_preference_for_spot_comes_before_the_weight_of_the_base() -> None:
    found = solved(("spot.md", "base-and-burst.yaml"), ("pods.md", "web.yaml"))
    assert ({node.pool for node in found.new_nodes}, found.unplaced) == ({"burst"}, {})


def test_pods_of_the_gpu_page_get_nodes_with_the_gpu_that_they_select() -> None:
    found = solved(("gpus.md", "gpu.yaml"), ("gpus.md", "trainer.yaml"))
    assert found.unplaced == {}
    assert {name.partition(".")[0] for node in found.new_nodes for name in node.instance_types} == {"g5"}


def test_the_canary_gets_a_node_of_its_own_nodepool() -> None:
    found = solved(("node-images.md", "canary.yaml"), ("node-images.md", "paced.yaml"))
    assert [node.pool for node in found.new_nodes] == ["canary"]


def test_pods_without_toleration_leave_a_retired_nodepool() -> None:
    retired = solved(("delete-nodes.md", "retired.yaml"), ("pods.md", "web.yaml"))
    assert (retired.new_nodes, len(retired.unplaced)) == ((), 3)


# --- budgets ------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("row", re.findall(r"^\| (\w+day \d\d:\d\d) \|", PAGES["budgets.md"], re.MULTILINE))
def test_the_calendar_has_the_numbers_of_its_budgets(row: str) -> None:
    (pool,) = MANIFESTS["budgets.md", "calendar.yaml"]
    day, _, time = row.partition(" ")
    hours, _, minutes = time.partition(":")
    now = MONDAY + timedelta(days=DAYS.index(day), hours=int(hours), minutes=int(minutes))
    budgets = pool["spec"]["disruption"]["budgets"]
    counts = [
        allowed_disruptions(budgets=budgets, nodes=20, now=now, reason=reason)
        for reason in ("Empty", "Underutilized", "Drifted")
    ]
    assert [str(count) for count in counts] == row_of("budgets.md", row)


@pytest.mark.parametrize(("row", "open_hours"), [("daily 01:00 to 05:00", 28), ("Saturday 22:00 to Sunday 04:00", 6)])
def test_a_maintenance_window_is_open_for_as_long_as_it_says(row: str, open_hours: int) -> None:
    (text,) = row_of("budgets.md", row)
    budgets = [yaml.safe_load(text.strip("`"))]
    week = (MONDAY + timedelta(hours=hour) for hour in range(7 * 24))
    found = [now for now in week if allowed_disruptions(budgets=budgets, nodes=20, now=now, reason="Drifted")]
    assert len(found) == open_hours


# --- interruption -------------------------------------------------------------------------------------------------
def test_the_events_are_those_of_the_template_and_of_the_code() -> None:
    template = (ROOT / "manifests/aws/cloudformation.yaml").read_text(encoding="utf-8")
    listed = set(re.findall(r"^\| `aws\.\w+` \| `([^`]+)` \|", PAGES["interruption.md"], re.MULTILINE))
    assert listed == set(re.findall(r'detail-type: \["([^"]+)"\]', template))
    assert [one.reason for one in INTERRUPTIONS if f"`{one.reason}`" not in PAGES["interruption.md"]] == []


def test_the_message_of_the_test_interrupts_the_instance_that_it_names() -> None:
    (body,) = re.findall(r"^```json\n(.*?)^```$", PAGES["interruption.md"], re.MULTILINE | re.DOTALL)
    found = interruptions.parse(Message(id="1", body=body, receipt="r"))
    assert found is not None
    assert (found.kind, found.instance_ids) == (InterruptionKind.SPOT_INTERRUPTED, ("i-0a1b2c3d4e5f60718",))
    assert json.loads(body)["version"] == "0"


# --- times and versions -------------------------------------------------------------------------------------------
def test_the_times_of_a_node_that_does_not_join_are_the_defaults() -> None:
    settings, text = Settings(cluster_name="my-cluster"), " ".join(PAGES["node-does-not-join.md"].split())
    minutes = (settings.launch_timeout, settings.registration_timeout)
    launch, registration = (round(time.total_seconds() / 60) for time in minutes)
    assert f"not launched within {launch} minutes or not registered within {registration} minutes" in text


def test_the_versions_are_those_of_the_code_the_charts_and_the_tests() -> None:
    text = " ".join(PAGES["upgrade.md"].split())
    assert f"Kubernetes {OLDEST[0]}.{OLDEST[1]} to {NEWEST[0]}.{NEWEST[1]}" in text
    for chart in ("kerf", "kerf-crd"):
        least = yaml.safe_load((ROOT / f"charts/{chart}/Chart.yaml").read_text(encoding="utf-8"))["kubeVersion"]
        assert least == f">={row_of('upgrade.md', 'charts')[0]}.0-0"
    go = (ROOT / "tests/cluster/tools/go.mod").read_text(encoding="utf-8")
    (tested,) = re.findall(r"^\tk8s\.io/kubernetes v(\S+)", go, re.MULTILINE)
    assert row_of("upgrade.md", tested.rpartition(".")[0])[0].endswith(f"with {tested}")
    compared = [
        version
        for version in ("1.31", "1.32", "1.33", "1.34", "1.35", "1.36")
        if row_of("upgrade.md", version)[1] != "no"
    ]
    assert compared == sorted(ORACLES)
    assert f"CRDs of Karpenter {RELEASES[0]}, {RELEASES[1]} and {RELEASES[2]}" in text


@pytest.mark.parametrize(("alias", "last", "first"), [("al2", 32, 31), ("windows2025", 36, 35)])
def test_the_families_exist_for_the_versions_of_the_table(alias: str, last: int, first: int) -> None:
    there = []
    for minor in range(31, 37):
        try:
            alias_sources(f"{alias}@latest", f"1.{minor}")
        except UnsupportedAlias:
            continue
        there.append(minor)
    assert (there[0], there[-1]) == (first, last)
    assert row_of("upgrade.md", f"`{alias}`") == ["up to 1.32" if alias == "al2" else "from 1.35"]


@pytest.mark.parametrize(
    ("page", "text", "figure"),
    [
        ("reservations.md", "deletes its NodeClaims 40 minutes before", timedelta(minutes=40) == LAST_CALL),
        ("spot.md", "only if at least 15 types are cheaper", SPOT_TO_SPOT_TYPES == 15),
        (
            "spot.md",
            "skipped for 15 seconds to 5 minutes",
            Steps(timedelta(seconds=15), timedelta(minutes=5)) == POOL_STEPS,
        ),
        (
            "delete-nodes.md",
            "wait for ten minutes",
            Settings(cluster_name="x").deletion_guard_wait == timedelta(minutes=10),
        ),
        ("delete-nodes.md", "a tenth of all nodes", Settings(cluster_name="x").deletion_guard_percent == 10),
    ],
)
def test_figures_of_a_page_are_those_of_the_code(page: str, text: str, figure: bool) -> None:
    assert text in " ".join(PAGES[page].split())
    assert figure


@pytest.mark.parametrize("page", PAGES)
def test_reasons_conditions_and_events_that_it_names_are_in_the_code(page: str) -> None:
    named = set(re.findall(r"`([A-Z][a-z]+(?:[A-Z][A-Za-z]*)+)`", PAGES[page]))
    assert named - KNOWN - OF_OTHERS == set()


# --- commands of other programs -----------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("page", "words"), commands("aws"), ids=lambda value: value if isinstance(value, str) else value[2]
)
def test_operations_parameters_and_queries_of_aws_exist(page: str, words: list[str]) -> None:
    model = botocore.session.get_session().get_service_model(words[1])
    operations = {xform_name(name, "-"): name for name in model.operation_names}
    assert words[2] in operations, page
    shape = model.operation_model(operations[words[2]]).input_shape
    parameters = {xform_name(name, "-") for name in (shape.members if shape is not None else ())}
    given = {word.removeprefix("--") for word in words[3:] if word.startswith("--")}
    assert given - parameters - {"query", "output"} == set()
    for query in (after for word, after in pairwise(words) if word == "--query"):
        jmespath.compile(query)


def test_the_pending_pod_of_the_page_gets_both_edits(tmp_path: Path) -> None:
    file = tmp_path / "pending.yaml"
    file.write_text(FILES["pending-pods.md", "pending.yaml"], encoding="utf-8")
    command = [sys.executable, "-m", "kerf.cli.main", "why", "pod", "shop/db-0", "-f", str(file)]
    answer = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert "pod shop/db-0 has no place" in answer
    assert "- the pod: remove kubernetes.io/arch from its nodeSelector" in answer
    assert "- NodePool general: allow arm64 in the requirement kubernetes.io/arch" in answer
