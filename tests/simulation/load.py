"""A load that follows the days: services whose replicas rise until the afternoon and fall until the night, less on
weekends, with some noise from a seed; and one that works at night.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from math import cos, pi
from typing import Final

from kerf.sandbox.api.manifests import chance

#: How often replicas are set anew, and by which share they differ from the curve at most.
STEP: Final = timedelta(hours=1)
_NOISE: Final = 0.08
#: The hour at which there is most to do, and what is left of it on Saturdays and Sundays.
_PEAK_HOUR: Final = 15
_WEEKEND: Final = 0.6


@dataclass(frozen=True, slots=True)
class Service:
    """`most` replicas at the peak, the share `least` of them at the quietest hour; `ahead` hours before the others."""

    name: str
    cpu: str
    memory: str
    most: int
    least: float
    ahead: int = 0


SERVICES: Final = (
    Service("web", "500m", "1Gi", 40, 0.2),
    Service("api", "250m", "512Mi", 50, 0.25),
    Service("search", "1", "3Gi", 12, 0.35),
    Service("cache", "250m", "2Gi", 16, 0.6),
    Service("auth", "100m", "256Mi", 12, 0.5),
    Service("batch", "1", "1Gi", 12, 0.1, ahead=12),
)


@dataclass(frozen=True, slots=True)
class Load:
    """How many replicas each service has at an instant."""

    seed: int = 1
    services: tuple[Service, ...] = SERVICES

    def at(self, when: datetime) -> Mapping[str, int]:
        return {service.name: self._replicas(service, when) for service in self.services}

    def _replicas(self, service: Service, when: datetime) -> int:
        hour = when.hour + when.minute / 60 + service.ahead
        curve = (1 + cos(2 * pi * (hour - _PEAK_HOUR) / 24)) / 2 * (_WEEKEND if when.weekday() >= 5 else 1.0)
        noise = 1 + _NOISE * (2 * chance("load", self.seed, service.name, when.isoformat()) - 1)
        return max(1, round(service.most * (service.least + (1 - service.least) * curve) * noise))
