"""The alerts that must name a fault fire on its recorded series, by Prometheus' own judge; before it, none does."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from .charts import Helm
from .fault_alerts import document
from .fault_records import Record, records, waits
from .test_alerts import promtool, rendered, tried, written

__all__ = ["promtool"]
pytestmark = pytest.mark.cluster


@pytest.mark.parametrize("record", records(), ids=lambda record: str(record.slug))
def test_its_alerts_fire_in_the_fault_and_none_before(
    helm: Helm, promtool: Path, tmp_path: Path, record: Record
) -> None:
    rules, tests = tmp_path / "rules", tmp_path / "fault.yaml"
    rules.mkdir()
    written(rules, rendered(helm))
    tests.write_text(yaml.safe_dump(document(record, waits()), width=10_000), encoding="utf-8")
    done = tried(promtool, rules, tests)
    assert done.returncode == 0, done.stdout + done.stderr
