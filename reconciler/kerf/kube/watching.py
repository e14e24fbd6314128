"""An open watch: a thread reads the stream line by line and decodes, the caller takes what has arrived.

A socket cannot be read for a moment and left again without losing half a line, hence the thread. A line that stays
silent for longer than bookmarks are apart is taken for a half-open connection.
"""

from __future__ import annotations

import contextlib
import socket
import threading
from collections import deque
from collections.abc import Iterator, Sequence

import urllib3

from kerf.kube.decoding import KindDecoder
from kerf.ports import Change, Disconnected, PortError

CHUNK_BYTES = 64 * 1024
#: So many changes may wait for the reader; then the stream is left alone until it has caught up.
WAITING = 10_000


class HttpWatch:
    """See the module."""

    def __init__(self, answer: urllib3.BaseHTTPResponse, decoder: KindDecoder, name: str) -> None:
        self._answer, self._decoder = answer, decoder
        self._changes: deque[Change] = deque()
        self._end: PortError | None = None
        self._closed = False
        self._news = threading.Condition()
        self._thread = threading.Thread(target=self._pump, name=f"stream-{name}", daemon=True)
        self._thread.start()

    def read(self, timeout_seconds: float) -> Sequence[Change]:
        """What has arrived, waiting for the first change up to the time-out. Raises what ended the stream."""
        with self._news:
            self._news.wait_for(lambda: self._changes or self._end is not None, timeout_seconds)
            if self._changes:
                found = tuple(self._changes)
                self._changes.clear()
                self._news.notify_all()
                return found
            if self._end is not None:
                raise self._end
            return ()

    def close(self) -> None:
        """End the stream, also while another thread reads it."""
        with self._news:
            if self._closed:
                return
            self._closed = True
            self._end = self._end or Disconnected("watch: closed")
            self._news.notify_all()
        connection = getattr(self._answer, "connection", None)
        sock = getattr(connection, "sock", None)
        if sock is not None:
            with contextlib.suppress(OSError):
                sock.shutdown(socket.SHUT_RDWR)

    def _pump(self) -> None:
        try:
            for line in self._lines():
                if (change := self._decoder.line(line)) is not None and not self._put(change):
                    break
            end: PortError = Disconnected("the API server closed the watch")
        except PortError as error:
            end = error
        except Exception as error:  # the line broke, or does not make sense: the reader must learn of it in any case
            end = Disconnected(f"watch: {error}")
        finally:
            self._answer.close()
        with self._news:
            self._end = self._end or end
            self._news.notify_all()

    def _lines(self) -> Iterator[bytes]:
        rest = b""
        for chunk in self._answer.stream(CHUNK_BYTES):
            *lines, rest = (rest + chunk).split(b"\n")
            yield from (line for line in lines if line)

    def _put(self, change: Change) -> bool:
        with self._news:
            self._news.wait_for(lambda: self._closed or len(self._changes) < WAITING)
            self._changes.append(change)
            self._news.notify_all()
            return not self._closed
