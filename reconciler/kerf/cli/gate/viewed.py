"""The views of the person who asks. Every template and every address reads the cluster through these."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from http import HTTPStatus
from typing import Final

from flask import Response, g, has_request_context, request

from kerf.cli.gate.flights import Answered
from kerf.cli.gate.kept_views import KeptViews, Made
from kerf.views.board import Board
from kerf_api.texts import counted

_HTML: Final = "text/html"


@dataclass(frozen=True, slots=True)
class Viewer:
    """A person whose request was admitted: the views to choose from, and the namespaces whose pods are shown.

    `failing`: a later reading has failed. `left_out` permitted namespaces have no names: too many sets are in use.
    """

    views: KeptViews
    answered: Answered
    failing: bool = False
    left_out: int = 0


def admit(viewer: Viewer) -> None:
    """Answer the current request as of this person."""
    g.viewer = viewer


def admitted() -> Viewer | None:
    """The person of the current request after its check; None before it and outside of requests."""
    found: Viewer | None = g.get("viewer") if has_request_context() else None
    return found


class ViewedBoards:
    """See `kerf.cli.answering.boards.Views`. Outside of an admitted request there is an empty cluster."""

    def __init__(self, cluster: str, nothing: Board) -> None:
        self._cluster, self._nothing = cluster, nothing

    @property
    def current(self) -> Board:
        viewer = admitted()
        if viewer is None:
            return self._nothing
        return _made(viewer).board

    @property
    def name(self) -> str:
        viewer = admitted()
        if viewer is None:
            return "Kerf"
        return f"cluster {self._cluster} · prices that are part of Kerf{_scope(viewer.answered, viewer.left_out)}"

    @property
    def live(self) -> bool:
        """Whether a page hears of new readings; the server sends whole answers only."""
        return False

    @property
    def problem(self) -> str:
        viewer = admitted()
        if viewer is None:
            return ""
        if viewer.failing:
            return "the API server refused or did not answer; the log has the error"
        bug = viewer.views.failing(viewer.answered.namespaces)
        return "its views cannot be made; this is a bug of Kerf: the log has the error" if bug else ""

    def kept(self) -> Response | None:
        """The page of the current request as it was made of the same views before; None without one."""
        viewer = admitted()
        if viewer is None:
            return None
        made = _made(viewer)
        text = made.pages.get(self._address()) if request.method == "GET" else None
        return None if text is None else Response(text, mimetype=_HTML)

    def keep(self, response: Response) -> None:
        """Keep a page for later requests of people with the same permissions."""
        viewer = admitted()
        whole = request.method == "GET" and response.status_code == HTTPStatus.OK and response.mimetype == _HTML
        if viewer is not None and whole:
            _made(viewer).pages.put(self._address(), response.get_data())

    def _address(self) -> Hashable:
        """All that a page depends on beside its views."""
        return request.path, request.query_string, self.name, self.problem


def _made(viewer: Viewer) -> Made:
    """One for all parts of a page."""
    if "made" not in g:
        g.made = viewer.views.made(viewer.answered.namespaces)
    found: Made = g.made
    return found


def _scope(answered: Answered, left_out: int) -> str:
    """The namespaces with names, and those that may get them; empty for all."""
    if answered.namespaces is None:
        return ""
    shown = f" · {counted(len(answered.namespaces), 'namespace')} with their pods' names"
    if left_out:
        spaces = counted(left_out, "namespace")
        shown += f" · pods of {spaces} are shown without names: too many people with other permissions use the page"
    if answered.failed:
        names = counted(answered.failed, "namespace")
        shown += f" · permissions in {names} cannot be read, so their pods are shown without names"
    if answered.unanswered:
        shown += f" · permissions in {counted(answered.unanswered, 'namespace')} are not known yet: reload the page"
    return shown
