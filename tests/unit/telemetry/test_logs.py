"""The log: its shape, its level while it runs, where it goes, and what links a line to an event and a metric."""

from __future__ import annotations

import io
import json
import logging
import threading
import warnings
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from botocore.exceptions import ClientError

from kerf.aws.requests.errors import translate
from kerf.model.kinds import Ref
from kerf.model.plan import Event, PatchObject, Reason
from kerf.ports import Unavailable
from kerf.sandbox.clock import VirtualClock
from kerf.telemetry.events import EventWriter
from kerf.telemetry.log import libraries
from kerf.telemetry.log.logs import Logger, Threshold, make_logger, shortened
from kerf.telemetry.log.sinks import SAID_EVERY_SECONDS, Sinks
from kerf.telemetry.reconciling import identities, reconcile_id, reconciling
from kerf.telemetry.series import build
from kerf.telemetry.series.metrics import Metrics
from kerf.telemetry.telemetry import Telemetry
from kerf_api import labels


@pytest.fixture
def stream() -> io.StringIO:
    return io.StringIO()


@pytest.fixture
def log(stream: io.StringIO) -> Logger:
    return make_logger("info", stream)


def the_lines(stream: io.StringIO) -> list[dict[str, Any]]:
    return [json.loads(line) for line in stream.getvalue().splitlines()]


# --- shape ------------------------------------------------------------------------------------------------------
def test_no_blanks_and_no_escapes_of_other_scripts(stream: io.StringIO) -> None:
    make_logger("info", stream, commit="490ef94").info("x", pool="größe")
    assert '"logger":"controller","message":"x","commit":"490ef94","pool":"größe"}' in stream.getvalue()


def test_the_level_changes_while_it_runs_and_only_debug_names_the_caller(stream: io.StringIO) -> None:
    threshold = Threshold("error")
    log = make_logger(threshold, stream)
    log.info("quiet")
    threshold.level = "debug"
    log.debug("loud")
    threshold.level = "info"
    log.debug("quiet")
    log.info("usual")
    loud, usual = the_lines(stream)
    assert (loud["level"], loud["message"]) == ("DEBUG", "loud")
    assert list(loud)[:5] == ["level", "time", "logger", "caller", "message"]
    assert loud["caller"].startswith("telemetry/test_logs.py:")
    assert "caller" not in usual
    with pytest.raises(ValueError, match="must be one of"):
        threshold.level = "warn"


def test_what_aws_answered_is_in_fields_of_its_own(log: Logger, stream: io.StringIO) -> None:
    said = {
        "Error": {"Code": "UnauthorizedOperation", "Message": "not allowed"},
        "ResponseMetadata": {"HTTPStatusCode": 403, "RequestId": "r-1"},
    }
    log.error("x", error=translate("ec2:CreateFleet", ClientError(said, "CreateFleet")))
    (line,) = the_lines(stream)
    told = {key: text for key, text in line.items() if key.startswith("aws-")}
    assert told == {
        "aws-error-code": "UnauthorizedOperation",
        "aws-operation-name": "CreateFleet",
        "aws-service-name": "ec2",
        "aws-status-code": "403",
        "aws-request-id": "r-1",
    }
    assert line["error"].startswith("ec2:CreateFleet: UnauthorizedOperation: not allowed (aws-error-code=")


def test_a_long_list_is_shortened() -> None:
    assert shortened(["a", "b"], 2) == "a, b"
    assert shortened(["a", "b", "c", "d"], 2) == "a, b and 2 other(s)"


@pytest.mark.parametrize(
    ("said", "commit"),
    [("490ef94aaaabbbb", "490ef94"), ("490ef94aaaabbbb-dirty", "490ef94-dirty"), ("", "")],
)
def test_the_commit_is_what_the_image_says(said: str, commit: str) -> None:
    assert build.commit({"KERF_COMMIT": said} if said else {}) == commit


# --- from a line to the event and the metric --------------------------------------------------------------------
class Written:
    def __init__(self) -> None:
        self.annotations = list[dict[str, str]]()

    def emit(self, *told: object, annotations: dict[str, str]) -> None:
        self.annotations.append(annotations)


def test_line_event_and_metric_of_a_look_bear_its_id(log: Logger, stream: io.StringIO) -> None:
    kube, clock = Written(), VirtualClock()
    told = Telemetry(log, Metrics(), EventWriter(kube, clock), clock)  # type: ignore[arg-type]
    deed = PatchObject(reason=Reason("R"), verb="SetStatus", ref=Ref("NodePool", "", "p"), patch={})
    with told.look():
        look = reconcile_id()
        told.events.write(Event(Ref("NodePool", "", "p"), "u", "Normal", "R", "text"))
    with told.look():  # how it went shows in a later one
        assert reconcile_id() != look
        with reconciling(look):
            told.done(deed, "unavailable", None, Unavailable("away"), None)
    assert kube.annotations == [{labels.RECONCILE_ID: look}]
    assert [line["reconcileID"] for line in the_lines(stream)] == [look]
    assert f'action="SetStatus",outcome="unavailable",reconcile_id="{look}"' in told.metrics.text().decode()


def test_a_thread_that_writes_events_later_keeps_their_look() -> None:
    kube = Written()
    writer = EventWriter(kube, VirtualClock(), threaded=True)  # type: ignore[arg-type]
    with reconciling("one"):
        writer.write(Event(Ref("NodePool", "", "p"), "u", "Normal", "A", "text"))
    with reconciling("two"):
        writer.write(Event(Ref("NodePool", "", "p"), "u", "Normal", "B", "text"))
    writer.close()
    assert kube.annotations == [{labels.RECONCILE_ID: "one"}, {labels.RECONCILE_ID: "two"}]


def test_looks_of_two_processes_have_other_ids_and_those_of_one_life_are_the_same_again() -> None:
    one, again, other = identities("a"), identities("a"), identities("b")
    first = [next(one) for _ in range(3)]
    assert first == [next(again) for _ in range(3)]
    assert not set(first) & {next(other) for _ in range(3)}


def test_what_the_api_server_warns_of_is_told_once(log: Logger, stream: io.StringIO) -> None:
    told = Telemetry(log, Metrics(), EventWriter(Written(), VirtualClock()), VirtualClock())  # type: ignore[arg-type]
    for _ in range(3):
        told.warned("unknown field spec.new")
    (line,) = the_lines(stream)
    assert (line["level"], line["warning"]) == ("INFO", "unknown field spec.new")


# --- where it goes ----------------------------------------------------------------------------------------------
def test_lines_go_to_all_files_that_are_named(tmp_path: Path) -> None:
    paths = [str(tmp_path / name) for name in ("a.log", "b.log")]
    log = make_logger("info", Sinks(paths, ["stderr"]))
    log.info("x")
    log.info("y")
    for path in paths:
        assert [json.loads(line)["message"] for line in Path(path).read_text().splitlines()] == ["x", "y"]


def test_a_line_that_cannot_be_written_is_told_once_a_minute_and_ends_nothing(tmp_path: Path) -> None:
    full, errors, now = "/dev/full", tmp_path / "errors", [0.0]
    sinks = Sinks([full], [str(errors)], lambda: now[0])
    log = make_logger("info", sinks)
    log.info("x")
    log.info("y")
    assert errors.read_text().count("could not be written") == 1
    now[0] += SAID_EVERY_SECONDS
    log.info("z")
    assert errors.read_text().count("could not be written") == 2


def test_a_file_that_cannot_be_opened_is_a_mistake_in_a_setting(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="nowhere"):
        Sinks([str(tmp_path / "nowhere/log")], ["stderr"])


@pytest.fixture
def routed(log: Logger) -> Iterator[None]:
    """Libraries as they were, afterwards."""
    before = logging.getLogger().handlers[:], threading.excepthook
    libraries.route(log)
    yield
    logging.captureWarnings(False)
    logging.getLogger().handlers[:], threading.excepthook = before


@pytest.mark.usefixtures("routed")
def test_what_libraries_say_is_a_line_like_others(stream: io.StringIO) -> None:
    logging.getLogger("botocore").warning("two\nlines")
    logging.getLogger("botocore").error("worse")
    logging.getLogger("botocore").info("of no interest")
    logging.getLogger("urllib3.connectionpool").warning("Connection pool is full")
    warnings.warn("old", DeprecationWarning, stacklevel=1)
    told = [(line["level"], line["message"], line["library"]) for line in the_lines(stream)]
    assert told[:2] == [("INFO", "two lines", "botocore"), ("ERROR", "worse", "botocore")]
    assert len(told) == 3
    assert told[2][2] == "py.warnings"


@pytest.mark.usefixtures("routed")
def test_what_a_thread_dies_of_is_a_line(stream: io.StringIO) -> None:
    def body() -> None:
        raise ZeroDivisionError("by nothing")

    thread = threading.Thread(target=body, name="unlucky")
    thread.start()
    thread.join()
    (line,) = the_lines(stream)
    assert (line["thread"], line["error"]) == ("unlucky", "by nothing")
    assert line["where"].startswith("test_logs.py:")


def test_a_duration_is_told_as_go_does(log: Logger, stream: io.StringIO) -> None:
    log.info("x", took=timedelta(minutes=1, milliseconds=250))
    assert the_lines(stream)[0]["took"] == "1m0.25s"
