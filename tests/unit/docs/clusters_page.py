"""docs/clusters.md: its files, and what the controller reads from its values of the chart."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import yaml

from kerf.runtime.settings.options import Options
from kerf.runtime.settings.settings import parse
from tests import guides
from tests.sources import ROOT
from tests.unit.charts.test_values import merged
from tests.unit.charts.values_table import CHART, defaults

TEXT: Final = (ROOT / "docs/clusters.md").read_text(encoding="utf-8")
FILES: Final = guides.files(TEXT)
MANIFESTS: Final = {name: [*yaml.safe_load_all(text)] for name, text in FILES.items() if "apiVersion:" in text}
VALUES: Final = {name: yaml.safe_load(text) for name, text in FILES.items() if name not in MANIFESTS}


def options(values: Mapping[str, Any], region: str = "eu-central-1") -> Options:
    """Return the settings that the controller reads from these values; `controller.env` may name another region."""
    template = (CHART / "templates/_settings.tpl").read_text(encoding="utf-8")
    keys = yaml.safe_load(template.partition('define "kerf.variables" -}}')[2].partition("{{")[0])
    settings = merged(defaults(), values)["settings"]
    environment = {variable: _text(settings[key]) for variable, key in keys.items()}
    return parse([], {**environment, "AWS_REGION": region, **environment_of(values)})


def environment_of(values: Mapping[str, Any]) -> dict[str, str]:
    return {row["name"]: row["value"] for row in values.get("controller", {}).get("env", ())}


def _text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
