"""A headless Chromium, driven over its debugging protocol."""

from __future__ import annotations

import itertools
import json
import shutil
import subprocess
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import websocket

CHROMIUM: Final = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")


class Page:
    """One tab of the browser. `events` are the messages of enabled domains that came with results."""

    def __init__(self, address: str) -> None:
        self.events: list[dict[str, Any]] = []
        self._socket = websocket.create_connection(address, timeout=60, suppress_origin=True)
        self._numbers = itertools.count(1)

    def call(self, method: str, **parameters: Any) -> Any:
        """The result of a command of the protocol. Raises RuntimeError for an error."""
        number = next(self._numbers)
        self._socket.send(json.dumps({"id": number, "method": method, "params": parameters}))
        while True:
            answer = json.loads(self._socket.recv())
            if answer.get("id") == number:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error']}")
                return answer["result"]
            self.events.append(answer)

    def evaluate(self, expression: str) -> Any:
        """The value of an expression of JavaScript; promises are awaited."""
        result = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        return result["result"].get("value")

    def until(self, expression: str, seconds: float = 30) -> Any:
        """The first true value of an expression. Raises TimeoutError after these seconds."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            if value := self.evaluate(expression):
                return value
            time.sleep(0.05)
        raise TimeoutError(expression)

    def emulate(self, width: int, scheme: str, height: int = 900) -> None:
        """A screen of this size, of a phone below 500 pixels, in the colour scheme `light` or `dark`."""
        self.call(
            "Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=width < 500
        )
        self.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])

    def open(self, address: str) -> None:
        """Load an address, and wait until it is complete."""
        self.call("Page.navigate", url=address)
        self.until(f"location.href.startsWith({json.dumps(address)}) && document.readyState === 'complete'")


@contextmanager
def browser(profile: Path) -> Iterator[Page]:
    """A tab of a new Chromium, which ends with the context. The folder of its profile is made."""
    options = ("--headless", "--no-sandbox", "--disable-gpu", "--remote-debugging-port=0", "--hide-scrollbars")
    profile.mkdir(parents=True)
    command = [str(CHROMIUM), *options, f"--user-data-dir={profile}", "about:blank"]
    with (profile / "log").open("w") as log, subprocess.Popen(command, stdout=log, stderr=log) as process:
        try:
            yield Page(_debugger(profile))
        finally:
            process.kill()


def _debugger(profile: Path) -> str:
    """The address of the first tab, once the browser has written its port."""
    written, end = profile / "DevToolsActivePort", time.monotonic() + 60
    while time.monotonic() < end:
        if written.exists() and (port := written.read_text().partition("\n")[0]):
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/json/list", timeout=10) as answer:
                for tab in json.load(answer):
                    if tab["type"] == "page":
                        return str(tab["webSocketDebuggerUrl"])
        time.sleep(0.05)
    raise TimeoutError(f"{CHROMIUM} opened no debugging port: {(profile / 'log').read_text()}")
