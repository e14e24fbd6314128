"""The addresses of the page and their templates. Every one reads the current views and changes nothing."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any, Final

from flask import Flask, abort, render_template, request
from werkzeug.exceptions import HTTPException

from kerf.cli.answering import explained, node_page
from kerf.cli.answering.boards import Views
from kerf.cli.web import words
from kerf.cli.web.guards import guard
from kerf.disruption.view import view
from kerf.scheduling.facts.nodes import Needs
from kerf.views.board import Board
from kerf.views.costs import TEAM, Costs, costs
from kerf.views.order import ORDERS, Filter, listed

#: Rows of one page of a list.
ROWS: Final = 100
#: No label of Kubernetes is longer.
_LONGEST_LABEL: Final = 317


@dataclass(frozen=True, slots=True)
class Part:
    """One page of a list: the rows from number `first` (1 for the first one) of `count`; 0 for no such page."""

    rows: Sequence[Any]
    first: int
    count: int
    previous: int
    next: int

    @property
    def last(self) -> int:
        return self.first + len(self.rows) - 1


def part(rows: Sequence[Any], number: int) -> Part:
    """Page `number` of a list; the last one for a higher number."""
    pages = max(1, -(-len(rows) // ROWS))
    number = min(max(number, 1), pages)
    start = (number - 1) * ROWS
    return Part(rows[start : start + ROWS], start + 1, len(rows), number - 1, number + 1 if number < pages else 0)


def create_app(boards: Views, hosts: Iterable[str], scheme: str = "http") -> Flask:
    """The page of these views. `hosts` (`name:port`) are those that a browser may ask for."""
    app = Flask("kerf.cli.web", static_url_path="/static")
    app.jinja_env.trim_blocks = app.jinja_env.lstrip_blocks = True
    words.install(app)
    guard(app, hosts, scheme)
    _lists(app, boards)
    _details(app, boards)

    @app.get("/favicon.ico")
    def icon() -> tuple[str, int]:
        return "", HTTPStatus.NO_CONTENT

    @app.errorhandler(HTTPException)
    def failed(error: HTTPException) -> tuple[str, int, dict[str, str]]:
        code = error.code or HTTPStatus.INTERNAL_SERVER_ERROR
        kept = {name: value for name, value in error.get_headers() if name == "Allow"}
        return _page(boards, "error.html", "", title=HTTPStatus(code).phrase, text=error.description), code, kept

    return app


def _page(boards: Views, template: str, tab: str, **values: Any) -> str:
    return render_template(
        template, board=boards.current, origin=boards.name, problem=boards.problem, tab=tab, **values
    )


def _lists(app: Flask, boards: Views) -> None:
    @app.get("/")
    def cluster() -> str:
        found, chosen, order = boards.current, _filter(), request.args.get("sort", "nodepool")
        if order not in ORDERS:
            abort(HTTPStatus.BAD_REQUEST, f"sort: no such order: one of {', '.join(ORDERS)}")
        shown = part(listed(found.nodes, chosen, order), _number())
        zones = sorted({row.machine.zone for row in found.nodes} - {""})
        return _page(
            boards, "cluster.html", "cluster", part=shown, chosen=chosen, order=order, orders=tuple(ORDERS), zones=zones
        )

    @app.get("/pending")
    def pending() -> str:
        return _page(boards, "pending.html", "pending", part=part(boards.current.pending, _number()))

    @app.get("/next")
    def upcoming() -> str:
        found = boards.current
        lines = [list(node_page.budgets(one, found.now)) for one in found.budgets]
        return _page(boards, "next.html", "next", part=part(found.disruptions, _number()), budgets=lines)

    @app.get("/cost")
    def cost() -> str:
        label = request.args.get("label", TEAM).strip() or TEAM
        if len(label) > _LONGEST_LABEL:
            abort(HTTPStatus.BAD_REQUEST, f"label: too long: a label has at most {_LONGEST_LABEL} characters")
        return _page(boards, "cost.html", "cost", costs=_costs(boards.current, label))


def _details(app: Flask, boards: Views) -> None:
    @app.get("/nodes/<path:name>")
    def node(name: str) -> str:
        row = boards.current.node(name)
        if row is None:
            abort(HTTPStatus.NOT_FOUND, f"Node {name}: not in the cluster: choose one from the list of nodes")
        return _page(
            boards, "node.html", "cluster", row=row, why=explained.of_node(boards.current.snapshot, name).splitlines()
        )

    @app.get("/pods/<namespace>/<path:name>")
    def pod(namespace: str, name: str) -> str:
        key, snapshot = f"{namespace}/{name}", boards.current.snapshot
        if key not in snapshot.pods:
            abort(HTTPStatus.NOT_FOUND, f"Pod {key}: not in the cluster: choose one from the list of pending pods")
        node_name = snapshot.pods[key].spec.node_name
        return _page(
            boards, "pod.html", "pending", key=key, node=node_name, why=explained.of_pod(snapshot, key).splitlines()
        )


def _filter() -> Filter:
    given = request.args
    return Filter(given.get("nodepool", ""), given.get("zone", ""), given.get("q", "").strip())


def _number() -> int:
    return request.args.get("page", 1, type=int)


def _costs(found: Board, label: str) -> Costs:
    """The costs by a label; those by the usual one are known."""
    return found.costs if label == found.costs.label else costs(view(found.snapshot), found.nodes, Needs(), label)
