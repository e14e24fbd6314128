"""Pages of errors: the cause, the fix, and the navigation with the time of the request."""

from __future__ import annotations

from http import HTTPStatus
from typing import Final

from flask import Flask
from werkzeug.exceptions import HTTPException

from kerf.cli.web.pages import Sources

#: The texts for errors that no code of the page describes.
_TEXTS: Final = {
    HTTPStatus.NOT_FOUND: "There is no page at this address: choose a view above.",
    HTTPStatus.METHOD_NOT_ALLOWED: "The page answers GET and HEAD only: open the address in a browser.",
    HTTPStatus.INTERNAL_SERVER_ERROR: (
        "Kerf cannot draw this page. This is a bug of Kerf: report it with the error in the terminal or log of kerf. "
        "Other views may work: choose one above."
    ),
}


def add(app: Flask, sources: Sources) -> None:
    """Answer every error with a page."""

    @app.errorhandler(HTTPException)
    def failed(error: HTTPException) -> tuple[str, int, dict[str, str]]:
        status = HTTPStatus(error.code or HTTPStatus.INTERNAL_SERVER_ERROR)
        kept = {name: value for name, value in error.get_headers() if name == "Allow"}
        usual = error.description == type(error).description
        text = _TEXTS.get(status, error.description) if usual else error.description
        return sources.page("error.html", "", sources.board_of_error(), title=status.phrase, text=text), status, kept
