"""Ships the record as long as a server runs, and says how far each destination is.

One process on a directory of segments ships: the one that has its lock. The others watch, so that
they withhold calls by the same rule, and the next of them goes on when that process ends.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Iterable, Mapping
from contextlib import suppress
from functools import partial
from threading import Event, Thread

from tidegate.app import App
from tidegate.audit.shipped import gate_id
from tidegate.errors import TidegateError
from tidegate.products.shipping.destination import Destination, FileDestination, Rejected
from tidegate.products.shipping.segments import Lag, SegmentReader
from tidegate.products.shipping.settings import DestinationSettings, ShipSettings
from tidegate.products.shipping.shipper import Shipper
from tidegate.service import Figure
from tidegate.store.shipping import Position
from tidegate.system.file_locks import try_lock
from tidegate.system.private_files import open_file

logger = logging.getLogger("tidegate.shipping")

STOP_S = 3.0
_NO_LAG = Lag(0, None)


def make_service(app: App) -> ShippingService | None:
    """What ships the record of this process's state; None without a destination."""
    settings = app.config.section(ShipSettings)
    return ShippingService(app, settings) if settings.to else None


def open_destination(settings: DestinationSettings, gate: str, rejected: Rejected) -> Destination:
    """Raises: TidegateError CONFIG_INVALID."""
    if settings.scheme == "file":
        return FileDestination(settings.path)
    if settings.scheme in ("http", "https"):
        from tidegate.products.shipping.otlp import OtlpDestination

        return OtlpDestination(settings, gate, rejected)
    from tidegate.products.shipping.syslog import SyslogDestination

    return SyslogDestination(settings)


class ShippingService:
    """A `service.Service` with a thread that watches, and one for each destination."""

    def __init__(self, app: App, settings: ShipSettings) -> None:
        self._app = app
        self._settings = settings
        self._directory = app.directory / "audit"
        self._reader = SegmentReader(self._directory)
        self._shippers: dict[str, Shipper] = {}
        self._gate = ""
        self._lock: int | None = None
        self._lags: dict[str, Lag] = {each.name: _NO_LAG for each in settings.to}
        self._followed: frozenset[str] = frozenset()
        self._failure = ""
        self._stopping = Event()
        self._thread = Thread(target=self._watch, name="tidegate-ship", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._stopping.set()
        shippers = list(self._shippers.values())
        for shipper in shippers:
            shipper.ask_to_stop()
        if self._thread.is_alive():
            self._thread.join(STOP_S)
        for shipper in shippers:
            shipper.join(STOP_S)
        self._app.audit.withheld = ""
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None

    def problems(self) -> Mapping[str, str]:
        found = [self._failure] if self._failure else []
        for name, shipper in list(self._shippers.items()):
            if shipper.failure:
                found.append(f"`{name}` {_words(self._lags[name])}: {shipper.failure}")
        if self._app.audit.withheld:
            found.append(self._app.audit.withheld)
        return {"shipping": "; ".join(found)} if found else {}

    def figures(self) -> Iterable[Figure]:
        for name, lag in list(self._lags.items()):
            labels = {"destination": name}
            yield Figure(
                "tidegate_ship_lag_bytes", "Bytes of the record that a destination lacks.",
                lag.size, labels,
            )  # fmt: skip
            yield Figure(
                "tidegate_ship_lag_seconds", "How old the oldest line is that it lacks.",
                lag.age(), labels,
            )  # fmt: skip
            shipper = self._shippers.get(name)
            yield Figure(
                "tidegate_ship_failing", "1 where the last attempt of this process failed.",
                float(shipper is not None and bool(shipper.failure)), labels,
            )  # fmt: skip

    def _watch(self) -> None:
        while not self._stopping.is_set():
            try:
                if not self._shippers and self._take_lock():
                    self._begin()
                self._measure()
                self._failure = ""
            except (OSError, TidegateError) as error:
                self._failure = str(error)
            except Exception as error:  # calls go on, and so must this
                logger.exception("shipping")
                self._failure = f"{type(error).__name__}: {error}"
            self._stopping.wait(self._settings.poll_s)

    def _take_lock(self) -> bool:
        """Whether this process is the one that ships. Raises: OSError."""
        if self._lock is not None:
            return True
        descriptor = open_file(self._directory / "ship.lock", "read and write")
        if try_lock(descriptor):
            self._lock = descriptor
            return True
        os.close(descriptor)
        return False

    def _begin(self) -> None:
        """Raises: OSError, TidegateError."""
        self._gate = gate_id(self._directory)
        store, settings = self._app.state.shipping, self._settings
        store.set_destinations(self._gate, [each.name for each in settings.to])
        made: dict[str, Shipper] = {}
        for each in settings.to:
            rejected = partial(self._note_rejected, each.name)
            destination = open_destination(each, self._gate, rejected)
            made[each.name] = Shipper(
                each.name, self._gate, self._reader, destination, store, settings.poll_s
            )
            made[each.name].load()
        self._shippers = made
        for shipper in made.values():
            shipper.start()

    def _measure(self) -> None:
        """Raises: OSError, TidegateError."""
        self._lags = {
            each.name: self._reader.lag(self._positions(each.name)) for each in self._settings.to
        }
        most = self._settings.max_lag_bytes
        withheld = ""
        if most is not None and self._is_late(most):
            withheld = (
                f"the record is not shipped, and what is missing elsewhere is more than"
                f" `ship.max_lag_bytes` ({most:,})"
            )
        self._app.audit.withheld = withheld

    def _is_late(self, most: int) -> bool:
        """Whether a destination lacks more than this. One that was just added does not count until
        it has caught up once: it would stop the calls of a gate whose record is long. Raises:
        TidegateError."""
        store = self._app.state.shipping
        fresh = {name for name, lag in self._lags.items() if lag.size <= most} - self._followed
        if fresh and self._shippers:
            for name in fresh:
                store.set_followed(self._gate, name)
            self._followed |= fresh
        late = {name for name, lag in self._lags.items() if lag.size > most}
        if late and not late <= self._followed:
            self._followed = store.followed(self._gate)
        return bool(late & self._followed)

    def _positions(self, name: str) -> Mapping[str, Position]:
        """Raises: TidegateError."""
        shipper = self._shippers.get(name)
        if shipper is not None:
            return shipper.positions
        if not self._gate:
            self._gate = gate_id(self._directory)
        return self._app.state.shipping.positions(self._gate, name)

    def _note_rejected(self, name: str, count: int, reason: str) -> None:
        """What a receiver threw away is on record here, and that it did so."""
        details = {"destination": name, "events": str(count), "reason": reason}
        with suppress(TidegateError):
            self._app.server_audit.record_anonymous("ship.rejected", details)


def _words(lag: Lag) -> str:
    return f"lacks {lag.size:,} bytes of the record, the oldest {lag.age():,.0f} s old"
