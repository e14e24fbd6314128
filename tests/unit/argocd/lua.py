"""Health scripts as Argo CD runs them: Lua 5.1 with `obj` and very little else.

Argo CD opens the base and the table library and a harmless part of `os` for scripts from its ConfigMap; strings have no
methods there (`useOpenLibs` is off). Here there is no `os` either, nor anything that loads code.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import yaml
from lupa import lua51

SETTINGS: Final = Path(__file__).resolve().parents[3] / "manifests/argocd/argocd-cm.yaml"
PREFIX: Final = "resource.customizations.health."
#: Source: Argo CD, "Resource Health"; of anything else it makes Unknown.
STATUSES: Final = frozenset({"Healthy", "Progressing", "Degraded", "Suspended", "Missing", "Unknown"})

_SANDBOX = """
local world, kept = _G, {}
for _, name in ipairs({
  "assert", "error", "ipairs", "next", "pairs", "pcall", "rawequal", "rawget", "rawset", "select", "tonumber",
  "tostring", "type", "unpack", "xpcall", "setmetatable", "getmetatable", "table",
}) do
  kept[name] = world[name]
end
debug.setmetatable("", nil)
for name in pairs(world) do
  world[name] = kept[name]
end
"""


@dataclass(frozen=True, slots=True)
class Health:
    """What Argo CD shows of an object."""

    status: str
    message: str


def scripts() -> dict[str, str]:
    """The health scripts of the ConfigMap, by `group/Kind`."""
    data = yaml.safe_load(SETTINGS.read_text(encoding="utf-8"))["data"]
    keys = [key for key in data if key.startswith(PREFIX)]
    return {"/".join(key.removeprefix(PREFIX).rsplit("_", 1)): data[key] for key in keys}


def key_of(manifest: Mapping[str, Any]) -> str:
    """The key of an object's script."""
    return f"{manifest['apiVersion'].rpartition('/')[0]}/{manifest['kind']}"


def health(manifest: Mapping[str, Any]) -> Health:
    """What the script for this object's kind says of it; Unknown, as in Argo CD, when it fails."""
    return run(scripts()[key_of(manifest)], manifest)


def run(script: str, manifest: Mapping[str, Any]) -> Health:
    """What a script returns for an object. Raises AssertionError when Argo CD could make nothing of that."""
    runtime = lua51.LuaRuntime(register_eval=False, register_builtins=False, unpack_returned_tuples=True)
    runtime.execute(_SANDBOX)
    runtime.globals().obj = _table(runtime, manifest)
    try:
        answer = dict(runtime.execute(script).items())
    except lua51.LuaError as failure:
        return Health("Unknown", str(failure))
    assert answer.keys() == {"status", "message"}
    assert answer["status"] in STATUSES
    return Health(**answer)


def _table(runtime: Any, value: Any) -> Any:
    """Maps and lists become tables; a null is not there, as in Argo CD."""
    if isinstance(value, Mapping):
        return runtime.table_from({name: _table(runtime, part) for name, part in value.items() if part is not None})
    if isinstance(value, list):
        return runtime.table_from([_table(runtime, part) for part in value])
    return value
