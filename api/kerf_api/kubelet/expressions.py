"""The CEL expressions that `spec.kubelet` may hold: what one may be made of, and what it comes to on an instance type.

An expression is evaluated for every instance type of a region, by the loop. So it may have neither loops nor patterns,
and its length is bounded: one evaluation takes microseconds, whatever the expression. CEL's own type checker is not
there; instead an expression is tried on one plain machine. Source: API reference §5.8, AWS provider reference §5.5.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Any, Final

from kerf_api.cel_library import cel

#: What an expression may ask, and a plain machine on which it is tried.
PLAIN: Final[Mapping[str, int | str]] = {
    "vcpus": 4,
    "memory_mib": 16384,
    "default_enis": 4,
    "ips_per_eni": 15,
    "max_pods": 58,
    "instance_type": "m5.xlarge",
}
MOST_CHARACTERS: Final = 1000
#: The library's words for what CEL's macros are made of are the same for several of them, so they are known by name.
_LOOPS: Final = re.compile(r"\b(all|exists|exists_one|existsOne|filter|map|transform\w*)\b")
_FUNCTIONS: Final = frozenset({"min", "max", "int", "double", "string", "size", "startsWith", "endsWith", "contains"})
_OPERATORS: Final = frozenset(
    {"_+_", "_-_", "_*_", "_/_", "_%_", "-_", "!_", "_&&_", "_||_", "_?_:_", "@in", "_[_]"}
    | {"_==_", "_!=_", "_<_", "_<=_", "_>_", "_>=_"}
)
_SYNTAX: Final = re.compile(r":(\d+):(\d+): (?:Syntax error: )?([^\n]*)")
_END: Final = "mismatched input '<EOF>'"
_INT64: Final = 2**63
_TYPES: Final = "joins values of incompatible types; int() and double() make one of the other"
_PAIRS: Final = "has no value; min and max need two numbers"
_KINDS: Final[Mapping[type, str]] = {bool: "truth value", str: "text", list: "list", dict: "map"}


class ExpressionError(ValueError):
    """An expression that cannot be read, or has no value on a machine; the text says why, and does not repeat it."""


class _Mistyped(ExpressionError):
    """One whose values are of types that do not go together: on one machine as on all others, as a rule."""


def problem(text: str) -> str | None:
    """Why a text is no expression at all, whatever the machine; None when it may be one."""
    try:
        program, _ = _compiled(text)
    except ExpressionError as error:
        return str(error)
    try:
        _run(program, PLAIN)
    except _Mistyped as error:
        return str(error)
    except ExpressionError:
        pass  # this machine has no value for it; others may
    return None


def value(text: str, variables: Mapping[str, int | str]) -> int:
    """What an expression comes to on a machine, truncated towards zero. `variables` has a value for each of `PLAIN`.

    Raises ExpressionError, also where the value is no finite number.
    """
    _, names = _compiled(text)
    return _value(text, tuple((name, variables[name]) for name in names))


@lru_cache(maxsize=16384)
def _value(text: str, asked: tuple[tuple[str, int | str], ...]) -> int:
    """Machines that are alike in what the expression asks share an answer."""
    answer = _run(_compiled(text)[0], dict(asked))
    if not math.isfinite(answer) or not -_INT64 <= answer < _INT64:
        raise ExpressionError(f"is {answer}, which is no number of 64 bits")
    return int(answer)


@lru_cache(maxsize=1024)
def _compiled(text: str) -> tuple[Any, tuple[str, ...]]:
    """The program, and the names of the variables it asks. Raises ExpressionError."""
    if len(text) > MOST_CHARACTERS:
        raise ExpressionError(f"is longer than {MOST_CHARACTERS} characters")
    try:
        program = cel.compile(text)
    except ValueError as error:
        raise ExpressionError(f"cannot be read: {_syntax(str(error))}") from error
    loop = _LOOPS.search(text)
    unknown = loop[1] if loop else next((n for n in program.functions() if n not in _FUNCTIONS | _OPERATORS), None)
    if unknown is not None:
        raise ExpressionError(f"may not use {unknown}; allowed functions: {', '.join(sorted(_FUNCTIONS))}")
    names = tuple(program.variables())
    strange = next((name for name in names if name not in PLAIN), None)
    if strange is not None:
        raise ExpressionError(f"asks for {strange}; allowed variables: {', '.join(PLAIN)}")
    return program, names


def _run(program: Any, variables: Mapping[str, int | str]) -> int | float:
    """The number that a program comes to. Raises ExpressionError."""
    try:
        answer = program.execute(cel.Context(variables=dict(variables), functions={"min": _least, "max": _most}))
    except TypeError as error:
        raise _Mistyped(_TYPES) from error
    except Exception as error:
        raise ExpressionError(str(error).splitlines()[0][:200] if str(error) else type(error).__name__) from error
    if _is_number(answer):
        return answer  # type: ignore[no-any-return]
    raise _Mistyped(_PAIRS if answer is None else f"is a {_KINDS.get(type(answer), type(answer).__name__)}, no number")


def _least(*given: Any) -> int | float | None:
    return _chosen(min, given)


def _most(*given: Any) -> int | float | None:
    return _chosen(max, given)


def _chosen(choose: Any, given: tuple[Any, ...]) -> int | float | None:
    """Of two numbers one, as an int if both are, else as a double. Of anything else none: the library prints errors."""
    if len(given) != 2 or not all(map(_is_number, given)):
        return None
    chosen: int | float = choose(given)
    return chosen if all(isinstance(one, int) for one in given) else float(chosen)


def _is_number(answer: Any) -> bool:
    return isinstance(answer, int | float) and not isinstance(answer, bool)


def _syntax(told: str) -> str:
    """Where an expression cannot be read on, without the long list of what might come there."""
    found = _SYNTAX.search(told)
    if "Recursion limit" in told or found is None:
        return "the expression is nested too deeply" if "Recursion limit" in told else told.splitlines()[-1][:200]
    line, column, words = found.groups()
    place = f"column {column}" if line == "1" else f"line {line}, column {column}"
    return f"{place}: {words.partition(' expecting ')[0][:200].replace(_END, 'it ends too early')}"
