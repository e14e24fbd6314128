"""A record in a bucket for the verbs that read one: downloaded into a folder that is deleted at the end."""

from __future__ import annotations

import atexit
import os
import shutil
import signal
import sys
import tempfile
import threading
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Final

from botocore.exceptions import BotoCoreError

from kerf.aws.buckets import Bucket
from kerf.cli.arguments import Mistake
from kerf.ports import AlreadyGone, PortError
from kerf.runtime.process import connecting
from kerf.runtime.recording.ring import SUFFIX
from kerf.runtime.recording.uploading import NAME
from kerf.runtime.settings import readers, settings
from kerf.runtime.settings.settings import SettingsError

#: The bytes of a record that are downloaded.
MOST_BYTES: Final = 2 * 1024**3
#: The settings that lead to a bucket; others of the environment are those of a controller.
_GIVEN: Final = ("AWS_REGION", "AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_S3")


def downloaded(address: str) -> list[Path]:
    """The parts under an address `s3://bucket/prefix`, or the one that it names, as files. Raises Mistake, OSError."""
    place, only = address, ""
    if address.endswith(SUFFIX):
        place, _, only = address.rpartition("/")
    bucket = _bucket(place)
    try:
        sizes = {
            name: size for name, (size, _) in bucket.objects().items() if NAME.fullmatch(name) and only in ("", name)
        }
        if not sizes:
            example = f"20260301T031200000000Z-1a2b3c4d-00000001{SUFFIX}"
            raise Mistake(f"{address}: there is no part of a record, such as {example}; RECORD_S3 names the address")
        if (total := sum(sizes.values())) > MOST_BYTES:
            mib = 1024**2
            raise Mistake(
                f"{address}: {total // mib:,} MiB, and at most {MOST_BYTES // mib:,} MiB are downloaded; "
                "name one part, or copy the parts that you need into a folder"
            )
        return _fetched(bucket, sorted(sizes))
    except PortError as error:
        raise Mistake(f"{address}: {error}") from error


def _fetched(bucket: Bucket, names: list[str]) -> list[Path]:
    """Raises Mistake, PortError."""
    found, left = list[Path](), MOST_BYTES
    try:
        folder = Path(tempfile.mkdtemp(prefix="kerf-record-"))  # mode 0700
        atexit.register(shutil.rmtree, folder, ignore_errors=True)
        _end_by_signals()
        for name in names:
            with suppress(AlreadyGone):  # the controller has deleted it meanwhile, as its bounds ask for
                left -= bucket.fetch(name, folder / name, left)
                found.append(folder / name)
    except OSError as error:
        place = tempfile.gettempdir()
        raise Mistake(f"{place}: {error.strerror or error}; TMPDIR names another folder for the download") from error
    if not found:
        raise Mistake(f"{bucket.address}: the controller has deleted all parts meanwhile; run the command again")
    return found


def _end_by_signals() -> None:
    """Have the signals that end a command run `atexit`: the downloaded files must not outlive it."""
    if threading.current_thread() is threading.main_thread():
        for number in (signal.SIGTERM, signal.SIGHUP):
            if signal.getsignal(number) is signal.SIG_DFL:
                signal.signal(number, lambda received, _: sys.exit(128 + received))


def _bucket(address: str) -> Bucket:
    """One without a prefix too: a controller needs one, and another store of records may have none. Raises Mistake."""
    given = {name: os.environ[name] for name in _GIVEN if os.environ.get(name)}
    try:
        options = settings.parse([], {**given, "CLUSTER_NAME": "files"})
        found = connecting.bucket(replace(options, record_s3=readers.bucket(address)))
    except BotoCoreError as error:  # no such profile, or a file of the SDK that cannot be read
        raise Mistake(f"{address}: {error}") from error
    except SettingsError as error:
        raise Mistake(f"{address}: {'; '.join(error.problems)}") from error
    except ValueError as error:
        raise Mistake(f"{address}: {error}") from error
    assert found is not None
    return found
