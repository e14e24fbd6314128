"""What event processing noticed, on its way to logs, metrics and events."""

from __future__ import annotations

from kerf.runtime.state.notices import (
    FieldsDropped,
    ImpairmentFound,
    MessageRead,
    Noticed,
    ObjectChanged,
    TypesFailed,
)
from kerf.telemetry.telemetry import Telemetry


def tell_of(one: Noticed, telemetry: Telemetry, *, telling: bool) -> None:
    """Every replica notices every change of an object; the one that reports it is `telling`."""
    match one:
        case ObjectChanged():
            telemetry.object_changed(one.kind, one.old, one.new, telling=telling)
        case FieldsDropped():
            telemetry.fields_dropped(one.kind, one.fields)
        case MessageRead():
            if one.error is not None:
                telemetry.taking_in_failed("Message", one.error)
            telemetry.received(one.kind, one.message.sent)
        case TypesFailed():
            telemetry.types_failed(one.class_name, one.error)
        case ImpairmentFound():
            telemetry.impaired(one.category)
