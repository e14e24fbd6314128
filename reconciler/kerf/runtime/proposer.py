"""The slow half: consolidation is thought about in a worker process, and its proposals come back as events.

The worker keeps indexes of its own and is sent only what has changed since it was last asked, in small pieces, so that
the loop is never held up. A worker that dies is replaced and gets everything. In the sandbox the thinking is inline.
"""

from __future__ import annotations

import contextlib
import os
import pickle
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from multiprocessing.connection import Connection, Pipe
from typing import Any, Protocol

import msgspec

from kerf.disruption.propose import consider
from kerf.kube.interning import interner
from kerf.model import kinds
from kerf.model.cluster import FACTS, FIELDS, Cluster
from kerf.model.kinds import Ref
from kerf.model.memory import Memory
from kerf.model.snapshot import Findings, Snapshot
from kerf.runtime.inbox import Inbox, Proposed

#: Gives moves for a snapshot; the memory is the same from time to time.
Think = Callable[[Snapshot, Memory], Findings]
#: What changed since the last time: objects by address, None for one that is gone.
Changes = Mapping[Ref, Any | None]
#: An answer that takes longer than this means that the worker hangs.
ANSWER_SECONDS = 300.0
#: So many objects are encoded at a time: a few milliseconds without letting other threads run.
PIECE = 500
_NICE = 5
#: The program of the worker process, with the descriptor of its end of the pipe.
_BEGIN = "from kerf.runtime.proposer import begin; begin({})"


def considered(snapshot: Snapshot, memory: Memory) -> Findings:
    """What the room of disruption thinks of it."""
    return consider(snapshot, memory=memory)


class Proposer(Protocol):
    def start(self, snapshot: Snapshot, changes: Changes) -> bool:
        """Begin to think about a snapshot; False when it is still thinking about an earlier one.

        `changes` are those since the last call that returned True.
        """
        ...

    def forget(self) -> None:
        """Changes were not kept: the next start looks at the whole snapshot."""
        ...

    def rest(self) -> None:
        """Give back what is used between questions: none is expected soon. The next start looks at the whole."""
        ...

    def close(self) -> None: ...


class InlineProposer:
    """Thinks at once; the answer is an event for the next tick."""

    def __init__(self, inbox: Inbox, think: Think = considered) -> None:
        self._inbox, self._think, self._memory = inbox, think, Memory()

    def start(self, snapshot: Snapshot, changes: Changes) -> bool:
        found = self._think(snapshot, self._memory)
        self._inbox.put(Proposed(found.proposals, snapshot.now, found.kept, found.until))
        return True

    def forget(self) -> None:
        """It remembers nothing: each snapshot is whole."""

    def rest(self) -> None:
        """It uses nothing between questions."""

    def close(self) -> None:
        """Nothing is open."""


# --- what is sent -----------------------------------------------------------------------------------------------
@dataclass(frozen=True, slots=True)
class _Piece:
    """Objects of one kind, encoded, or the addresses and UIDs of objects that are gone."""

    kind: str
    encoded: bytes = b""
    gone: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class _Facts:
    """The rest of a snapshot. Of a mapping only what changed: new values, and the keys that are gone."""

    whole: Mapping[str, Any] = field(default_factory=dict)
    changed: Mapping[str, Mapping[Any, Any]] = field(default_factory=dict)
    gone: Mapping[str, tuple[Any, ...]] = field(default_factory=dict)


@dataclass
class _Told:
    """The facts that the worker has."""

    facts: dict[str, dict[Any, Any]] = field(default_factory=dict)

    def difference(self, snapshot: Snapshot) -> _Facts:
        whole: dict[str, Any] = {}
        changed: dict[str, dict[Any, Any]] = {}
        gone: dict[str, tuple[Any, ...]] = {}
        for name in FACTS:
            value = getattr(snapshot, name)
            if not isinstance(value, Mapping):
                whole[name] = value
                continue
            before, now = self.facts.get(name, {}), dict(value)
            changed[name] = {k: v for k, v in now.items() if k not in before or before[k] is not v}
            gone[name] = tuple(k for k in before if k not in now)
            self.facts[name] = now
        return _Facts(whole, changed, gone)


@dataclass(frozen=True, slots=True)
class _Objects:
    """What is to be sent, by kind: objects, and the addresses of those that are gone."""

    there: Mapping[str, Sequence[Any]] = field(default_factory=dict)
    gone: Mapping[str, Sequence[str]] = field(default_factory=dict)


def _all(snapshot: Snapshot) -> _Objects:
    """All objects of a snapshot. The loop waits for it, and there may be 100,000: so nothing is done for each."""
    return _Objects({kind: list(getattr(snapshot, name).values()) for kind, name in FIELDS.items()})


def _changed(changes: Changes) -> _Objects:
    there: dict[str, list[Any]] = {}
    gone: dict[str, list[str]] = {}
    for ref, value in changes.items():
        if value is None:
            gone.setdefault(ref.kind, []).append(f"{ref.namespace}/{ref.name}")
        else:
            there.setdefault(ref.kind, []).append(value)
    return _Objects(there, gone)


def _pieces(objects: _Objects) -> Iterator[_Piece]:
    for kind, names in objects.gone.items():
        yield _Piece(kind, gone=tuple(names))
    for kind, values in objects.there.items():
        for start in range(0, len(values), PIECE):
            yield _Piece(kind, msgspec.msgpack.encode(values[start : start + PIECE]))


# --- the parent's side ------------------------------------------------------------------------------------------
class ProcessProposer:
    """One worker process, started when it is first needed. `start` and `close` belong to the loop's thread."""

    def __init__(
        self,
        inbox: Inbox,
        on_error: Callable[[Exception], None] = lambda error: None,
        think: Think = considered,
        *,
        on_answer: Callable[[float], None] = lambda seconds: None,
    ) -> None:
        """`on_answer` gets the time that the worker took for one."""
        self._inbox, self._on_error, self._think, self._on_answer = inbox, on_error, think, on_answer
        self._process: subprocess.Popen[bytes] | None = None
        self._pipe: Connection | None = None
        self._told = _Told()
        self._lost = self._closed = False
        self._thread: threading.Thread | None = None

    def start(self, snapshot: Snapshot, changes: Changes) -> bool:
        if self._thread is not None and self._thread.is_alive():
            return False
        if self._process is None or self._lost or self._process.poll() is not None:
            self._restart()
            objects = _all(snapshot)
        else:
            objects = _changed(changes)
        facts = self._told.difference(snapshot)
        work = (objects, facts, snapshot.now)
        self._thread = threading.Thread(target=self._ask, args=work, name="propose", daemon=True)
        self._thread.start()
        return True

    def forget(self) -> None:
        """The next start is that of a new worker, which gets everything."""
        self._lost = True

    def rest(self) -> None:
        """The worker process ends; an answer that is still awaited comes first."""
        if self._thread is None or not self._thread.is_alive():
            self._end()
            self._lost = True

    def close(self) -> None:
        self._closed = True
        self._end()

    def _end(self) -> None:
        if self._process is not None:
            self._process.kill()
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(2.0)
            self._process = None
        if self._pipe is not None:
            self._pipe.close()

    def _restart(self) -> None:
        self._end()
        self._told, self._lost = _Told(), False
        self._pipe, theirs = Pipe()
        # A process of `multiprocessing` would bring another one, which tracks semaphores, and there are none here.
        command = [sys.executable, "-P", "-c", _BEGIN.format(theirs.fileno())]
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
        with theirs:
            self._process = subprocess.Popen(
                command, env=environment, stdin=subprocess.DEVNULL, pass_fds=[theirs.fileno()]
            )
        self._pipe.send(self._think)

    def _ask(self, objects: _Objects, facts: _Facts, made_at: datetime) -> None:
        pipe = self._pipe
        assert pipe is not None
        began = time.perf_counter()
        try:
            for piece in _pieces(objects):
                pipe.send(piece)
            pipe.send(facts)
            if not pipe.poll(ANSWER_SECONDS):
                raise TimeoutError(f"no proposal within {ANSWER_SECONDS:.0f} s")
            answer = pipe.recv()
        except Exception as error:  # the worker is not believed any more, whatever it was
            self._lost = True
            if not self._closed:
                self._on_error(error)
            return
        if isinstance(answer, str):
            self._on_error(RuntimeError(answer))
        else:
            self._on_answer(time.perf_counter() - began)
            self._inbox.put(Proposed(answer.proposals, made_at, answer.kept, answer.until))


# --- the worker's side ------------------------------------------------------------------------------------------
class Worker:
    """The indexes and facts of the worker process, fed by pieces."""

    def __init__(self) -> None:
        self._cluster = Cluster()
        self._facts: dict[str, Any] = {}
        self._decoders = {
            kind.name: msgspec.msgpack.Decoder(list[kind.type])  # type: ignore[name-defined]
            for kind in kinds.KNOWN
        }
        self._interners = {kind.name: interner(kind) for kind in kinds.KNOWN}

    def take(self, piece: _Piece) -> None:
        kind = kinds.BY_NAME[piece.kind]
        for address in piece.gone:
            namespace, _, name = address.partition("/")
            self._cluster.remove(kind, namespace, name)
        if piece.encoded:
            intern = self._interners[piece.kind]
            for value in self._decoders[piece.kind].decode(piece.encoded):
                self._cluster.apply(kind, value if intern is None else intern(value))

    def snapshot(self, facts: _Facts) -> Snapshot:
        self._facts.update(facts.whole)
        for name, changed in facts.changed.items():
            table = self._facts.setdefault(name, {})
            for key in facts.gone.get(name, ()):
                table.pop(key, None)
            table.update(changed)
        return self._cluster.snapshot(**self._facts)


def begin(descriptor: int) -> None:
    """The worker process, from its start: what thinks comes first through the pipe."""
    with Connection(descriptor) as pipe, contextlib.suppress(EOFError, KeyboardInterrupt):
        work(pipe, pipe.recv())


def work(pipe: Connection, think: Think) -> None:
    """The worker process: take pieces in; answer each set of facts with proposals, or with what went wrong."""
    with contextlib.suppress(OSError):
        os.nice(_NICE)
    worker, memory = Worker(), Memory()
    while True:
        try:
            message = pipe.recv()
        except (EOFError, OSError):
            return
        if isinstance(message, _Piece):
            worker.take(message)
            continue
        try:
            answer: object = think(worker.snapshot(message), memory)
            pickle.dumps(answer)
        except Exception as error:
            answer = f"{type(error).__name__}: {error}"
        pipe.send(answer)
