"""Settings from flags and the environment, by Karpenter's names: a flag beats a variable, a variable the default.

Every mistake is reported at once, with the name of the setting and what would be right. A variable that cannot be read
is a mistake too (Karpenter falls back to the default without a word). Source: operations reference §1.1.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import Field, dataclass, fields
from datetime import timedelta
from typing import Any, Final

from kerf.model.kubernetes.objects import TopologySpreadConstraint
from kerf.model.settings import FeatureGates
from kerf.runtime.settings import readers
from kerf.runtime.settings.options import Options
from kerf_api import durations
from kerf_api.lint import nearest
from kerf_api.texts import without_credentials
from kerf_api.v1.meta import encode

#: Where an effective value comes from.
DEFAULT, ENVIRONMENT, FLAG = "default", "environment", "flag"
_HELP: Final = frozenset({"--help", "--h"})
_FLAGS: Final = frozenset(f.metadata["flag"] for f in fields(Options))
_SWITCHES: Final = frozenset(f.metadata["flag"] for f in fields(Options) if f.metadata["read"] is readers.boolean)


class SettingsError(Exception):
    """What is wrong, all of it, one line each."""

    def __init__(self, problems: Sequence[str]) -> None:
        super().__init__("\n".join(problems))
        self.problems = tuple(problems)


class Help(Exception):
    """Someone asked for `--help`."""


@dataclass(frozen=True, slots=True)
class Effective:
    """One setting as it counts: its variable and flag, its value as people write it, and where that comes from."""

    variable: str
    flag: str
    value: str
    source: str

    @property
    def logged(self) -> Mapping[str, str]:
        """The value, without a password of a URL, and where it comes from."""
        return {"value": without_credentials(self.value), "from": self.source}


def parse(arguments: Sequence[str], environment: Mapping[str, str]) -> Options:
    """The options of a command line and an environment. Raises SettingsError with every problem; Help for `--help`."""
    return _resolved(arguments, environment)[0]


def effective(arguments: Sequence[str], environment: Mapping[str, str]) -> list[Effective]:
    """Every setting, by its variable, as `parse` would have it. Raises what `parse` raises."""
    options, sources = _resolved(arguments, environment)
    rows = [
        Effective(
            option.metadata["env"],
            option.metadata["flag"],
            shown(getattr(options, option.name)),
            sources.get(option.name, DEFAULT),
        )
        for option in fields(Options)
    ]
    return sorted(rows, key=lambda row: row.variable)


def check_flags(arguments: Sequence[str]) -> None:
    """Raises SettingsError for flags that there are not, or that lack their value; Help for `--help`."""
    problems: list[str] = []
    _flags(arguments, problems)
    if problems:
        raise SettingsError(problems)


def apart(arguments: Sequence[str]) -> tuple[list[str], list[str]]:
    """The flags of settings with their values, and all other arguments: for a verb that takes words beside them."""
    own, others, rest = list[str](), list[str](), list(arguments)
    while rest and rest[0] != "--":
        word = rest.pop(0)
        name, flag, equals, _ = _split(word)
        if not name.startswith("-") or flag not in _FLAGS:
            others.append(word)
            continue
        own.append(word)
        if not equals and flag not in _SWITCHES and rest:
            own.append(rest.pop(0))
    return own, others + rest


def _split(word: str) -> tuple[str, str, str, str]:
    """The name as it is written, the flag, `=` if there is one, and the text after it."""
    name, equals, text = word.partition("=")
    return name, "--" + name.removeprefix("-").removeprefix("-"), equals, text


def _resolved(arguments: Sequence[str], environment: Mapping[str, str]) -> tuple[Options, dict[str, str]]:
    """The options, and by their names where those come from that a user set."""
    problems: list[str] = []
    flags = _flags(arguments, problems)
    found: dict[str, Any] = {}
    sources: dict[str, str] = {}
    for option in fields(Options):
        for source, name, text in _given(option, flags, environment):
            sources[option.name] = source
            _read_into(found, option, name, text, problems)
            break
    options = Options(**found)
    problems += _together(options, found)
    if problems:
        raise SettingsError(problems)
    return options, sources


def _given(
    option: Field[Any], flags: Mapping[str, str], environment: Mapping[str, str]
) -> Iterator[tuple[str, str, str]]:
    """The values of a setting, the one in effect first: source, name there, text. An empty variable says nothing."""
    flag, env = option.metadata["flag"], option.metadata["env"]
    if flag in flags:
        yield FLAG, flag, flags[flag]
    if text := environment.get(env):
        yield ENVIRONMENT, env, text


def _read_into(found: dict[str, Any], option: Field[Any], name: str, text: str, problems: list[str]) -> None:
    """Problems that need no other word name their place themselves, several at once if there are."""
    try:
        found[option.name] = option.metadata["read"](text)
    except readers.SeveralProblems as error:
        problems += [f"{name}: {problem}" for problem in error.problems]
    except ValueError as error:
        given = "" if "@" in text else f", not {text!r}"  # a URL may have a password, also one without a scheme
        problems.append(f"{name}: {error}{given}")


def _flags(arguments: Sequence[str], problems: list[str]) -> dict[str, str]:
    """Flags and their texts. One dash or two; `--x=v` or `--x v`; a bare flag of a switch means true."""
    found: dict[str, str] = {}
    rest = list(arguments)
    while rest:
        name, flag, equals, text = _split(rest.pop(0))
        if flag in _HELP:
            raise Help
        if not name.startswith("-") or flag not in _FLAGS:
            problems.append(
                f"{name}: there is no such flag{nearest.meant(flag, _FLAGS) if name.startswith('-') else ''}"
            )
        elif equals and flag in _SWITCHES and text not in ("true", "false"):
            problems.append(f"{flag}: must be true or false, not {text!r}")
        elif equals:
            found[flag] = text
        elif flag in _SWITCHES:
            found[flag] = "true"
        elif rest:
            found[flag] = rest.pop(0)
        else:
            problems.append(f"{flag}: needs a value")
    return found


def _together(options: Options, found: Mapping[str, Any]) -> Iterator[str]:
    if not options.cluster_name:
        yield "CLUSTER_NAME (--cluster-name): is required"
    if options.batch_idle_duration > options.batch_max_duration:
        yield "BATCH_IDLE_DURATION (--batch-idle-duration): must not be longer than BATCH_MAX_DURATION"
    if bool(options.webhook_service) != bool(options.webhook_cert_secret):
        yield "WEBHOOK_SERVICE and WEBHOOK_CERT_SECRET: belong together"
    if options.record_s3 and not options.record_folder:
        yield "RECORD_S3 (--record-s3): needs RECORD_FOLDER, the folder whose files are uploaded"
    if options.record_s3 and not readers.prefix(options.record_s3):
        example = f"{options.record_s3.rstrip('/')}/kerf/{options.cluster_name}"
        yield f"RECORD_S3 (--record-s3): needs a prefix of this cluster alone, such as {example}"


# --- in words ---------------------------------------------------------------------------------------------------
def shown(value: Any) -> str:
    """A value as people would write it; reading that gives the value again."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, timedelta):
        return durations.go_text(value)
    if isinstance(value, FeatureGates):
        return readers.gates_text(value)
    if isinstance(value, tuple) and value and isinstance(value[0], TopologySpreadConstraint):
        rows = [{"maxSkew": row.max_skew, **encode(row)} for row in value]
        return json.dumps({"podTopologySpread": {"defaultConstraints": rows}}, separators=(",", ":"))
    return ",".join(map(str, value)) if isinstance(value, tuple) else str(value)


def usage() -> str:
    """Every setting with flag, variable, default and a line of help."""
    rows = []
    for option in fields(Options):
        meta, default = option.metadata, shown(option.default)
        told = f" (default {default})" if default else ""
        rows.append(f"  {meta['flag']:<40} {meta['env']:<36} {meta['about']}{told}")
    return "\n".join(rows)
