"""Options that several verbs have, with the same words in each."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Annotated

import typer

from kerf.cli.terminal import say

Files = Annotated[list[str] | None, typer.Option("-f", "--file", help="a cluster from files; repeatable")]
Kubeconfig = Annotated[str, typer.Option(help="kubeconfig file; empty: in the cluster, or kubectl's own")]
KubeContext = Annotated[str, typer.Option("--context", help="context of the kubeconfig")]
Output = Annotated[str, typer.Option("-o", "--output", help="text or json")]


class Mistake(Exception):
    """The command makes no sense, or a file of it cannot be used, in words."""


@contextmanager
def exits(verb: str) -> Iterator[None]:
    """Report what stops a verb that reads a cluster or files, and end it: 2 for a Mistake, 1 for a PortError.

    Raises:
        typer.Exit: In place of these errors.
    """
    from kerf.ports import PortError  # the help of a verb needs none of it

    try:
        yield
    except Mistake as error:
        say(f"kerf {verb}: {error}", err=True)
        raise typer.Exit(2) from error
    except PortError as error:
        say(f"kerf {verb}: cannot read: {with_fix(error)}", err=True)
        raise typer.Exit(1) from error


def with_fix(error: Exception) -> str:
    """The error of a request, with the fix where the API server has refused the caller or has not answered."""
    from kerf.runtime.process.connecting import remedy

    fix = remedy(str(error))
    return f"{error}; {fix}" if fix else str(error)


def taken(arguments: Sequence[str], name: str) -> tuple[str | None, list[str]]:
    """The value of an option among arguments, None without it, and the others. The last one counts."""
    value, others, words = None, list[str](), iter(arguments)
    for word in words:
        if word == name:
            value = next(words, "")
        elif word.startswith(f"{name}="):
            value = word.removeprefix(f"{name}=")
        else:
            others.append(word)
    return value, others


def begun(words: Iterable[str]) -> Callable[[str], list[str]]:
    """A completion that offers those of the words that begin as the typed one does."""
    return lambda incomplete: [word for word in words if word.startswith(incomplete)]
