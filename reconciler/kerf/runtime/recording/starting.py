"""The recorder of a process, by its settings."""

from __future__ import annotations

import secrets
from collections.abc import Callable
from pathlib import Path
from typing import Final

from kerf.decide import decide
from kerf.model.aws.cloud import Region
from kerf.records.encoding import Encoder
from kerf.runtime.recording.recorder import Decide, Recorder
from kerf.runtime.recording.ring import Ring
from kerf.runtime.recording.software import software
from kerf.runtime.recording.uploading import Store, Uploader
from kerf.runtime.settings.options import Options
from kerf.telemetry.precedence import GiveWay
from kerf.telemetry.troubles import Troubles

_KEY_BYTES: Final = 32
_MIB: Final = 1024 * 1024


class Recording:
    """The decisions of a process, recorded if RECORD_FOLDER names a folder.

    Attributes:
        decide: the function for the controller.
    """

    def __init__(
        self,
        options: Options,
        store: Store | None,
        telemetry: Troubles,
        give_way: GiveWay,
        region: Callable[[], Region | None],
    ) -> None:
        """`store` gets copies of the record; `region` are the facts behind the current instance types."""
        self._recorder: Recorder | None = None
        self._uploader: Uploader | None = None
        self.decide: Decide = decide
        if not options.record_folder:
            return

        def failed(error: Exception) -> None:
            telemetry.recording_failed(options.record_folder, error)

        bounds = options.record_size * _MIB, options.record_age
        ring = Ring(Path(options.record_folder), *bounds)
        encoder = Encoder(secrets.token_bytes(_KEY_BYTES), software(), secrets.token_hex(4))
        recorder = self._recorder = Recorder(ring, encoder, failed, give_way)
        self.decide = recorder.deciding(decide, region)
        telemetry.metrics.recorder_failing.set_function(lambda: recorder.failing)
        telemetry.log.info("decisions are recorded", folder=options.record_folder, copies=options.record_s3)
        if store is None:
            return

        def not_uploaded(error: Exception) -> None:
            telemetry.uploading_failed(options.record_s3, error)

        uploader = self._uploader = Uploader(Path(options.record_folder), store, *bounds, not_uploaded)
        telemetry.metrics.record_upload_failing.set_function(lambda: uploader.error is not None)

    def problems(self) -> tuple[str, ...]:
        """What keeps decisions from being recorded or uploaded now, in words."""
        found = []
        if self._recorder is not None and self._recorder.failing:
            found.append("decisions are not recorded; the log names the error")
        if self._uploader is not None and (error := self._uploader.error) is not None:
            found.append(f"the record is not uploaded: {error}")
        return tuple(found)

    def close(self) -> None:
        """Write and upload the last decisions, but for a few seconds at most."""
        if self._recorder is not None:
            self._recorder.close()
        if self._uploader is not None:
            self._uploader.close()
