"""The debug port answers whoever can read its token, and no other process of the same network."""

from __future__ import annotations

import http.client
import os
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner

from kerf.cli.app import app
from kerf.runtime.process.debugging import DebugServer
from kerf.runtime.process.health import TEXT, Server
from kerf.runtime.secrets import debug_token
from kerf.sockets import loopback

ASKED = {
    ("GET", "/debug/threads"): lambda query: (200, TEXT, b"threads\n"),
    ("PUT", "/debug/log-level"): lambda query: (200, TEXT, b"changed\n"),
}


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder for temporary files."""
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    monkeypatch.delenv("DEBUG_TOKEN_FILE", raising=False)
    return tmp_path


@pytest.fixture
def server() -> Iterator[DebugServer]:
    made = DebugServer(0, ASKED)
    yield made
    made.close()


def status(server: Server, method: str = "GET", path: str = "/debug/threads", **headers: str) -> int:
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=10)
    connection.request(method, path, headers=headers)
    found = connection.getresponse().status
    connection.close()
    return found


def threads(server: Server) -> tuple[int, str]:
    done = CliRunner().invoke(app, ["debug", "threads", "--url", f"http://127.0.0.1:{server.port}"])
    return done.exit_code, done.output


def test_a_request_without_the_token_is_refused(server: DebugServer) -> None:
    token = debug_token.read(debug_token.path(server.port))
    assert status(server) == 401
    assert status(server, "PUT", "/debug/log-level?level=debug") == 401
    assert status(server, path="/nowhere") == 401
    for wrong in (token, "Bearer ", f"Bearer {token}x", f"Bearer {token[:-1]}", f"Basic {token}", "Bearer \xe9"):
        assert status(server, Authorization=wrong) == 401
    assert status(server, Authorization=f"Bearer {token}") == 200


def test_kerf_finds_the_token_by_the_port(server: DebugServer) -> None:
    assert threads(server) == (0, "threads\n")


def test_kerf_names_the_token_when_it_has_none(server: DebugServer) -> None:
    debug_token.path(server.port).unlink()
    code, told = threads(server)
    assert code == 2
    assert "DEBUG_TOKEN_FILE" in told


def test_a_controller_of_an_earlier_version_is_asked_as_before(folder: Path) -> None:
    """It has no token, and looks at no header."""
    earlier = Server(0, {}, loopback, asked=ASKED, local=True)
    try:
        assert threads(earlier) == (0, "threads\n")
        debug_token.write(debug_token.path(earlier.port), "left-behind")
        assert threads(earlier) == (0, "threads\n")
    finally:
        earlier.close()


def test_the_file_is_for_its_own_user_and_goes_with_the_server(folder: Path) -> None:
    os.umask(os.umask(0))
    server = DebugServer(0, ASKED)
    file = debug_token.path(server.port)
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    server.close()
    assert not file.exists()


def test_each_start_has_another_token(folder: Path) -> None:
    file = folder / "token"
    for token in (debug_token.make(), debug_token.make()):
        debug_token.write(file, token)
        assert debug_token.read(file) == token
    assert debug_token.make() != debug_token.make()


def test_a_link_in_the_place_of_the_file_is_replaced_and_not_followed(folder: Path) -> None:
    target, file = folder / "target", folder / "token"
    target.write_text("kept")
    file.symlink_to(target)
    debug_token.write(file, "secret")
    assert target.read_text() == "kept"
    assert debug_token.read(file) == "secret"


def test_a_given_token_is_used_and_kept(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    given = folder / "given"
    given.write_text("of-a-secret\n")
    server = DebugServer(0, ASKED, str(given))
    assert status(server, Authorization="Bearer of-a-secret") == 200
    assert threads(server)[0] == 2
    monkeypatch.setenv("DEBUG_TOKEN_FILE", str(given))
    assert threads(server) == (0, "threads\n")
    server.close()
    assert given.exists()


@pytest.mark.parametrize("content", [b"", b" \n", b"\xff", b"x" * 5000])
def test_a_file_without_a_token_is_refused(folder: Path, content: bytes) -> None:
    file = folder / "wrong"
    file.write_bytes(content)
    with pytest.raises(ValueError, match="contains no token"):
        DebugServer(0, ASKED, str(file))


def test_a_pipe_is_refused_and_does_not_hang(folder: Path) -> None:
    os.mkfifo(folder / "pipe")
    with pytest.raises(ValueError, match="regular file"):
        debug_token.read(folder / "pipe")


def test_a_file_that_cannot_be_written_leaves_no_open_port(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    closed: list[Server] = []
    monkeypatch.setattr("tempfile.tempdir", str(folder / "missing"))
    close = Server.close

    def noted(server: Server) -> None:
        closed.append(server)
        close(server)

    monkeypatch.setattr(Server, "close", noted)
    with pytest.raises(OSError, match="missing"):
        DebugServer(0, ASKED)
    assert len(closed) == 1
