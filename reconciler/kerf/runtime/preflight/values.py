"""What an installation that is to come will have, by the values of Kerf's chart, and what is assumed of the rest."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields
from typing import Any, Final

from kerf.runtime.preflight.asking import Account
from kerf.runtime.settings.options import Options
from kerf.runtime.settings.settings import SettingsError

#: Of the chart, where the values say nothing.
_IMAGE, _DNS, _NAME = "kerf/controller", "ClusterFirst", "kerf"
ROLE: Final = "eks.amazonaws.com/role-arn"


@dataclass(frozen=True, slots=True)
class Expected:
    """`environment` are the settings that the values name; `role` the ARN that the ServiceAccount is annotated with."""

    environment: Mapping[str, str]
    account: Account
    role: str
    image: str
    dns_policy: str


def expected(values: Mapping[str, Any], namespace: str) -> Expected:
    """Raises SettingsError for values that are not of the chart's shape."""
    account, image = _part(values, "serviceAccount"), _part(_part(values, "controller"), "image")
    return Expected(
        environment=dict(_environment(values)),
        account=Account(namespace, str(account.get("name") or values.get("fullnameOverride") or _NAME)),
        role=str(_part(account, "annotations").get(ROLE) or ""),
        image=str(image.get("repository") or _IMAGE),
        dns_policy=str(values.get("dnsPolicy") or _DNS),
    )


def merged(first: Mapping[str, Any], second: Mapping[str, Any]) -> dict[str, Any]:
    """Values of two files as Helm has them: maps are joined, and of the rest the second counts."""
    found = dict(first)
    for key, value in second.items():
        before = found.get(key)
        both = isinstance(before, Mapping) and isinstance(value, Mapping)
        found[key] = merged(before, value) if both and isinstance(before, Mapping) else value
    return found


def _part(values: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    found = values.get(key) or {}
    if not isinstance(found, Mapping):
        raise SettingsError([f"--values: {key}: must be a map, not {found!r}"])
    return found


def _environment(values: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """The variables that the chart makes of the values; what `controller.env` names comes last, and counts."""
    named = {option.metadata["env"].replace("_", "").lower(): option.metadata["env"] for option in fields(Options)}
    for key, value in _part(values, "settings").items():
        if key == "featureGates":
            gates = _part(_part(values, "settings"), key).items()
            yield "FEATURE_GATES", ",".join(f"{gate[:1].upper()}{gate[1:]}={_text(on)}" for gate, on in gates)
        elif key.lower() in named and value is not None and not isinstance(value, Mapping | list):
            yield named[key.lower()], _literal(f"settings.{key}", _text(value))
    for row in _rows(values):
        if row.get("value") is not None:
            yield str(row["name"]), _literal(f"controller.env {row['name']}", str(row["value"]))


def _rows(values: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """The variables of `controller.env`. Raises SettingsError for another shape."""
    found = _part(values, "controller").get("env") or []
    rows = found if isinstance(found, list) else [found]
    for row in rows:
        if row is found or not isinstance(row, Mapping) or not row.get("name"):
            text = f"--values: controller.env: must be a list of {{name: …, value: …}}, and has {row!r}"
            raise SettingsError([text])
    return rows


def _literal(place: str, text: str) -> str:
    """Raises SettingsError for a template, which only Helm can fill in."""
    if "{{" in text:
        raise SettingsError([f"--values: {place}: {text!r} is a template; name the value by its flag instead"])
    return text


def _text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
