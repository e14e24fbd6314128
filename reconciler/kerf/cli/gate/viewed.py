"""The views of the person who asks. Every template and every address reads the cluster through these."""

from __future__ import annotations

from dataclasses import dataclass

from flask import g, has_request_context

from kerf.cli.answering.amounts import many
from kerf.cli.gate.flights import Answered
from kerf.cli.gate.kept_views import KeptViews
from kerf.views.board import Board


@dataclass(frozen=True, slots=True)
class Viewer:
    """A person whose request was admitted: the views to choose from, and the namespaces whose pods are shown.

    `failing`: a later reading has failed.
    """

    views: KeptViews
    answered: Answered
    failing: bool = False


def admit(viewer: Viewer) -> None:
    """Answer the current request as of this person."""
    g.viewer = viewer


class ViewedBoards:
    """See `kerf.cli.answering.boards.Views`. Outside of an admitted request there is an empty cluster."""

    def __init__(self, cluster: str, nothing: Board) -> None:
        self._cluster, self._nothing = cluster, nothing

    @property
    def current(self) -> Board:
        viewer = _viewer()
        if viewer is None:
            return self._nothing
        if "board" not in g:  # one for all parts of a page
            g.board = viewer.views.board(viewer.answered.namespaces)
        found: Board = g.board
        return found

    @property
    def name(self) -> str:
        viewer = _viewer()
        if viewer is None:
            return "Kerf"
        return f"cluster {self._cluster} · prices that come with Kerf{_scope(viewer.answered)}"

    @property
    def live(self) -> bool:
        """Whether a page hears of new readings; the server sends whole answers only."""
        return False

    @property
    def problem(self) -> str:
        viewer = _viewer()
        return "the API server refused or did not answer; the log has the error" if viewer and viewer.failing else ""


def _scope(answered: Answered) -> str:
    """The namespaces with names, and those that may get them; empty for all."""
    if answered.namespaces is None:
        return ""
    shown = f" · {many(len(answered.namespaces), 'namespace')} with their pods' names"
    if not answered.unanswered:
        return shown
    return f"{shown} · permissions in {many(answered.unanswered, 'namespace')} are not known yet: reload the page"


def _viewer() -> Viewer | None:
    found: Viewer | None = g.get("viewer") if has_request_context() else None
    return found
