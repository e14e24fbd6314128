"""A record in a bucket for the verbs that read one: downloaded into a folder that is deleted at the end."""

from __future__ import annotations

import atexit
import os
import shutil
import tempfile
from pathlib import Path
from typing import Final

from kerf.aws.buckets import Bucket
from kerf.cli.arguments import Mistake
from kerf.ports import PortError
from kerf.runtime.process import connecting
from kerf.runtime.recording.ring import SUFFIX
from kerf.runtime.recording.uploading import NAME
from kerf.runtime.settings import settings
from kerf.runtime.settings.settings import SettingsError

#: The bytes of a record that are downloaded.
MOST_BYTES: Final = 2 * 1024**3


def downloaded(address: str) -> list[Path]:
    """The parts under an address `s3://bucket/prefix`, or the one that it names, as files. Raises Mistake, OSError."""
    place, only = address, ""
    if address.endswith(SUFFIX):
        place, _, only = address.rpartition("/")
    bucket = _bucket(place)
    try:
        sizes = {name: size for name, size in bucket.sizes().items() if NAME.fullmatch(name) and only in ("", name)}
        if not sizes:
            example = f"20260301T031200000000Z-1a2b3c4d-00000001{SUFFIX}"
            raise Mistake(f"{address}: there is no part of a record, such as {example}; RECORD_S3 names the address")
        if (total := sum(sizes.values())) > MOST_BYTES:
            mib = 1024**2
            raise Mistake(
                f"{address}: {total // mib:,} MiB, and at most {MOST_BYTES // mib:,} MiB are downloaded; "
                "name one part, or copy the parts that you need into a folder"
            )
        folder = Path(tempfile.mkdtemp(prefix="kerf-record-"))  # mode 0700
        atexit.register(shutil.rmtree, folder, ignore_errors=True)
        for name in sorted(sizes):
            bucket.fetch(name, folder / name)
    except PortError as error:
        raise Mistake(f"{address}: {error}") from error
    return [folder / name for name in sorted(sizes)]


def _bucket(address: str) -> Bucket:
    """Raises Mistake."""
    folder = {"CLUSTER_NAME": "files", "RECORD_FOLDER": "unused"}
    try:
        options = settings.parse([], {**folder, **os.environ, "RECORD_S3": address})
        found = connecting.bucket(options)
    except SettingsError as error:
        raise Mistake(f"{address}: {'; '.join(error.problems)}") from error
    assert found is not None
    return found
