"""Options that several verbs have, with the same words in each."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Annotated

import typer

Files = Annotated[list[str] | None, typer.Option("-f", "--file", help="a cluster from files; repeatable")]
Kubeconfig = Annotated[str, typer.Option(help="kubeconfig file; empty: in the cluster, or kubectl's own")]
KubeContext = Annotated[str, typer.Option("--context", help="context of the kubeconfig")]
Output = Annotated[str, typer.Option("-o", "--output", help="text or json")]


def begun(words: Iterable[str]) -> Callable[[str], list[str]]:
    """A completion that offers those of the words that begin as the typed one does."""
    return lambda incomplete: [word for word in words if word.startswith(incomplete)]
