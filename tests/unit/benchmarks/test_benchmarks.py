"""What the benchmarks measure with is itself right: workloads, catalogues, quantiles and the reading of both files."""

from __future__ import annotations

import json
import re
from collections import Counter
from pathlib import Path
from typing import Any

import msgspec
import pytest

from benchmarks import scheduling, workloads
from benchmarks.nodepools import nodepool
from benchmarks.table import Row, quantile, text
from kerf.model.kubernetes import pods
from kerf_api import labels
from kerf_api.lint import validate
from kerf_api.resources import Resources


def encoded(value: Any) -> bytes:
    return msgspec.json.encode(value)


@pytest.mark.parametrize("kind", workloads.KINDS)
@pytest.mark.parametrize("count", [7, 100, 333])
def test_a_workload_has_the_pods_that_were_asked_for(kind: str, count: int) -> None:
    made = workloads.workload(kind, count)
    assert sum(row["count"] for row in made["pods"]) == count
    found = scheduling.read_pods(encoded(made))
    assert len({pod.key for pod in found}) == count
    assert all(pods.provisionable(pod) for pod in found)


def test_equal_seeds_make_equal_workloads() -> None:
    assert workloads.workload("mixed", 50, 3) == workloads.workload("mixed", 50, 3)
    assert workloads.workload("mixed", 50, 3)["pods"] != workloads.workload("mixed", 50, 4)["pods"]


def test_mixed_is_a_fifth_of_each() -> None:
    found = scheduling.read_pods(encoded(workloads.workload("mixed", 100)))
    sorts = Counter(
        (
            tuple(c.topology_key for c in pod.spec.topology_spread_constraints),
            pod.spec.affinity is not None and pod.spec.affinity.pod_affinity is not None,
            pod.spec.affinity is not None and pod.spec.affinity.pod_anti_affinity is not None,
        )
        for pod in found
    )
    assert sorts == {
        ((), False, False): 20,
        ((labels.ZONE,), False, False): 20,
        ((labels.HOSTNAME,), False, False): 20,
        ((), True, False): 20,
        ((), False, True): 20,
    }


def test_a_catalogue_is_read_in_exact_units() -> None:
    row = {
        "name": "m.large",
        "arch": "amd64",
        "os": "linux",
        "allocatable": {"cpu": 1930, "memory": 3114, "pods": 29},
        "offerings": [{"zone": "z-1", "capacityType": "spot", "price": 0.037242, "available": False}],
    }
    (found,) = scheduling.read_catalogue(encoded([row]))
    assert found.allocatable == Resources.parse({"cpu": "1930m", "memory": "3114Mi", "pods": "29"})
    assert [(o.key, o.price, o.available) for o in found.offerings] == [(("m.large", "z-1", "spot"), 37242, False)]
    assert found.requirements.allowed(labels.ARCH).has("amd64")


@pytest.mark.parametrize("name", workloads.CATALOGUES)
def test_catalogues_have_room_and_prices(name: str) -> None:
    found = scheduling.read_catalogue(encoded(workloads.CATALOGUES[name]()))
    assert len(found) >= 80
    assert all(t.allocatable["cpu"] > 0 and t.allocatable["memory"] > 0 and t.allocatable["pods"] > 0 for t in found)
    assert all(o.price > 0 for t in found for o in t.offerings)


def inputs(folder: Path) -> list[str]:
    files = folder / "workload.json", folder / "catalogue.json"
    files[0].write_bytes(encoded(workloads.workload("services", 60)))
    files[1].write_bytes(encoded(workloads.synthetic(20)))
    return ["--workload", str(files[0]), "--catalogue", str(files[1])]


def test_a_run_places_every_pod_by_the_rules_and_buys_what_it_may(tmp_path: Path, capsys: Any) -> None:
    command = [*inputs(tmp_path), "--json"]
    assert scheduling.main(command) == 0
    found = json.loads(capsys.readouterr().out)
    figures = ["seconds", "parse_seconds", "nodes", "unplaced", "cost_usd_per_hour", "lp_bound_usd_per_hour"]
    assert list(found) == [*figures, "violations"]
    assert (found["unplaced"], found["violations"]) == (0, 0)
    assert found["nodes"] > 0
    assert 0 < found["lp_bound_usd_per_hour"] <= found["cost_usd_per_hour"]
    assert scheduling.main([*command, "--capacity-type", "spot", "--unjudged"]) == 0
    restricted = json.loads(capsys.readouterr().out)
    assert list(restricted) == figures
    assert restricted["unplaced"] > 0, "pods that want on-demand have no place when only spot is bought"


def test_for_people_a_run_says_more(tmp_path: Path, capsys: Any) -> None:
    assert scheduling.main(inputs(tmp_path)) == 0
    told = dict(line.split() for line in capsys.readouterr().out.splitlines())
    assert float(told["ratio"]) == pytest.approx(
        float(told["cost_usd_per_hour"]) / float(told["lp_bound_usd_per_hour"]), abs=1e-3
    )
    assert 10 < float(told["peak_mib"]) < 10_000
    assert 0 < float(told["cpu_seconds"]) < 60


def test_work_for_a_cheaper_answer_makes_it_no_dearer(tmp_path: Path, capsys: Any) -> None:
    costs = []
    for improve in ("0", "0.2"):
        assert scheduling.main([*inputs(tmp_path), "--json", "--improve", improve]) == 0
        costs.append(json.loads(capsys.readouterr().out)["cost_usd_per_hour"])
    assert costs[1] <= costs[0]


ROW = {"count": 2, "template": workloads.pod("p", {}, 100, 100)}
TYPE = workloads.synthetic(1)[0]


@pytest.mark.parametrize(
    ("pods", "types", "said"),
    [
        (None, [TYPE], r"^/.*/workload\.json cannot be read: No such file or directory$"),
        ({"pods": [ROW]}, None, r"^/.*/catalogue\.json cannot be read: "),
        ("hello", [TYPE], r"^/.*/workload\.json is no workload: Expected `object`, got `str` "),
        ({"pods": [ROW, {"count": 1}]}, [TYPE], r"missing required field `template` - at `\$\.pods\[1\]`"),
        ({"pods": [ROW | {"count": "2"}]}, [TYPE], r"^/.+Expected `int`, got `str` - at `\$\.pods\[0\]\.count`"),
        ({"pods": [ROW, ROW]}, [TYPE], r"there are two pods default/p-0 "),
        ({"pods": [ROW]}, {"pods": [ROW]}, r"^/.*/catalogue\.json is no catalogue: Expected `array`, got `object` "),
        ({"pods": [ROW]}, [TYPE | {"allocatable": {"cpu": 1}}], r"field `memory` - at `\$\[0\]\.allocatable`"),
    ],
)
def test_an_input_of_no_use_is_named_with_the_place(
    pods: Any, types: Any, said: str, tmp_path: Path, capsys: Any
) -> None:
    files = tmp_path / "workload.json", tmp_path / "catalogue.json"
    for path, content in zip(files, (pods, types), strict=True):
        if content is not None:
            path.write_bytes(encoded(content))
    assert scheduling.main(["--workload", str(files[0]), "--catalogue", str(files[1]), "--json"]) == 2
    told = capsys.readouterr()
    assert told.out == ""
    assert re.search(said, told.err), told.err


@pytest.mark.parametrize("text", ["-1", "soon", "inf", "nan"])
def test_work_for_a_cheaper_answer_is_a_number_of_seconds(text: str, tmp_path: Path, capsys: Any) -> None:
    with pytest.raises(SystemExit):
        scheduling.main([*inputs(tmp_path), "--improve", text])
    assert f"argument --improve: {text} is not a number of seconds (0 or more)" in capsys.readouterr().err


@pytest.mark.parametrize("number", [0, 7, 399])
def test_the_node_pools_of_the_benchmarks_are_valid_and_have_thirty_requirements(number: int) -> None:
    made = nodepool(number)
    assert len(made["spec"]["template"]["spec"]["requirements"]) == 30
    assert [problem for problem in validate(made) if problem.severity == "error"] == []


def test_quantiles_are_values_that_were_measured() -> None:
    hundred = [float(n) for n in range(1, 101)]
    assert quantile(hundred, 0.5) == 50
    assert quantile(hundred, 0.99) == 99
    assert quantile(hundred, 1.0) == 100
    assert quantile([7.0], 0.01) == 7


def test_the_table_is_aligned() -> None:
    assert text([Row("a", "1 ms", "≤ 2 ms"), Row("longer", "10 ms")]).splitlines() == [
        "what    measured  to reach",
        "a       1 ms      ≤ 2 ms",
        "longer  10 ms",
    ]
