"""The whole table, and the check of one call against it."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from types import ModuleType
from typing import Any, Final

from . import (
    describe,
    fleet,
    identifiers,
    instances,
    interfaces,
    launch,
    messages,
    model,
    other_services,
    tags,
    volumes,
)
from .rule import Call, Problem, Rule

_MODULES: Final[tuple[ModuleType, ...]] = (
    describe,
    fleet,
    identifiers,
    instances,
    interfaces,
    launch,
    messages,
    other_services,
    tags,
    volumes,
)
RULES: Final[tuple[Rule, ...]] = tuple(
    sorted((one for part in _MODULES for one in vars(part).values() if isinstance(one, Rule)), key=lambda one: one.name)
)


@cache
def rules_for(service: str, operation: str) -> tuple[Rule, ...]:
    """The rules of the documentation that apply to an operation; `ec2:*` stands for all of a service."""
    keys = {f"{service}:{operation}", f"{service}:*"}
    return tuple(one for one in RULES if keys.intersection(one.operations))


def check(service: str, operation: str, parameters: Mapping[str, Any]) -> list[Problem]:
    """Every problem of a call. A call that breaks the service model is not judged further."""
    call = Call(service, operation, parameters)
    found = model.problems(call)
    return found or [problem for one in rules_for(service, operation) for problem in one.problems(call)]
