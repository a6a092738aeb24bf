"""What a product runs in a server beside its edges, and what it says of itself.

A service begins once the edges accept callers and ends after they have ended. No call waits for it.
What does not work of it is shown wherever the server shows what is degraded, and its figures are
where the metrics are, so that no part that shows them knows the service.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple, Protocol


class Figure(NamedTuple):
    """A value at this moment, by the rules of Prometheus for names. `labels` have values from a
    closed set, such as names in the settings."""

    name: str
    about: str
    value: float
    labels: Mapping[str, str] = {}


class Service(Protocol):
    """Runs on threads of its own. `problems` and `figures` may be called from any thread, also
    before `start` and after `stop`; they answer within milliseconds and never raise."""

    def start(self) -> None:
        """Begin. Raises: TidegateError."""
        ...

    def stop(self) -> None:
        """End within a few seconds, on a thread that may wait. Safe to call twice, and without
        `start`."""
        ...

    def problems(self) -> Mapping[str, str]:
        """What does not work now, by a word for the part that callers without a token may see; the
        reason may hold names, and no secret."""
        ...

    def figures(self) -> Iterable[Figure]:
        """The figures of now."""
        ...
