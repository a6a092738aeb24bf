"""Ships the record to one destination, on a thread of its own.

The position of a destination is saved after it has acknowledged, so that a kill at any moment loses
nothing: what was not acknowledged is sent again, and each event has the same id then.
"""

from __future__ import annotations

import logging
import random
import time
from collections import deque
from threading import Event, Thread

from tidegate.errors import TidegateError
from tidegate.products.shipping.destination import Destination, TooLarge
from tidegate.products.shipping.events import make_events
from tidegate.products.shipping.segments import MOST_BYTES, Batch, SegmentReader
from tidegate.store.shipping import Position, ShippingStore

logger = logging.getLogger("tidegate.shipping")

LONGEST_PAUSE_S = 60.0
"""Between two attempts: the first pauses are as long as `poll_s`, then twice as long."""
_LEAST_BYTES = 4_096
_HELD_BYTES = 262_144
"""Of events that are made before other threads get the processor, which costs them as well: about
240 events, half a millisecond. A caller must not wait for more."""
_YIELD_S = 0.0002
"""For other threads."""


class Shipper:
    """`positions` are those that are acknowledged. What one destination does delays no other."""

    def __init__(
        self,
        name: str,
        gate: str,
        reader: SegmentReader,
        destination: Destination,
        store: ShippingStore,
        poll_s: float,
    ) -> None:
        self.name = name
        self.positions: dict[str, Position] = {}
        self.failure = ""
        """Why the last attempt failed; empty if it did not."""
        self.is_unsaved = False
        """Whether positions are ahead of what is saved."""
        self._gate = gate
        self._reader = reader
        self._destination = destination
        self._store = store
        self._poll_s = poll_s
        self._sent: dict[str, Position] = {}
        self._unproved: deque[tuple[str, Position]] = deque()
        self._acknowledged = 0
        self._most_bytes = MOST_BYTES
        self._pause_s = self._poll_s
        self._stopping = Event()
        self._thread = Thread(target=self._run, name=f"tidegate-ship-{name}", daemon=True)

    def start(self) -> None:
        """Begin on the thread."""
        self._thread.start()

    def ask_to_stop(self) -> None:
        """Have the thread end after one more round."""
        self._stopping.set()

    def join(self, within_s: float) -> None:
        """Wait for the end of the thread. A receiver that does not answer keeps it longer; it ends
        with the process then."""
        if self._thread.is_alive():
            self._thread.join(within_s)

    def _run(self) -> None:
        while True:
            is_last = self._stopping.is_set()
            wait_s = self._poll_s
            try:
                self.ship()
                self.failure = ""
                self._pause_s = self._poll_s
            except TooLarge as error:
                if self._most_bytes <= _LEAST_BYTES:  # smaller ones have not helped
                    wait_s = self._take_failure(error)
                else:
                    self._most_bytes = max(_LEAST_BYTES, self._most_bytes // 4)
                    self._begin_again()
                    wait_s = 0.0
            except (OSError, TidegateError) as error:
                wait_s = self._take_failure(error)
            except Exception as error:  # the record goes on, and so must this
                logger.exception("shipping to %s", self.name)
                wait_s = self._take_failure(error)
            if is_last:
                self._destination.reset()
                return
            if wait_s:
                self._stopping.wait(wait_s)

    def load(self) -> None:
        """Begin where the destination was at last. Raises: OSError, TidegateError."""
        saved = self._store.positions(self._gate, self.name)
        if removed := self._reader.removed(saved):
            self._store.forget(self._gate, removed)
        found = {name: each for name, each in saved.items() if name not in removed}
        checked = self._reader.check(found)
        for segment in found.keys() - checked.keys():
            logger.error(
                "shipping to %s: %s was changed after it was shipped; it is sent again",
                self.name,
                segment,
            )
        self.positions = checked
        self._begin_again()

    def ship(self) -> None:
        """Send what is new, and take acknowledgements. Raises: OSError, TidegateError."""
        for batch in self._reader.read(self._sent, self._most_bytes):
            self._send(batch)
            self._take_acknowledgements()
            if self._stopping.is_set() and batch.size >= self._most_bytes // 2:
                return  # the rest is for the next process
        self._take_acknowledgements()

    def _send(self, batch: Batch) -> None:
        self._destination.send(self._make(batch))
        self._sent[batch.segment] = batch.position
        self._unproved.append((batch.segment, batch.position))

    def _make(self, batch: Batch) -> bytes:
        made: list[bytes] = []
        held = 0
        for events in make_events(self._gate, batch.segment, batch.text, batch.after):
            if held >= _HELD_BYTES:
                time.sleep(_YIELD_S)
                held = 0
            made.append(events)
            held += len(events)
        return b"".join(made)

    def _take_acknowledgements(self) -> None:
        count = self._destination.acknowledged()
        fresh: dict[str, Position] = {}
        while self._acknowledged < count and self._unproved:
            segment, position = self._unproved.popleft()
            fresh[segment] = position
            self._acknowledged += 1
        if fresh:
            self.positions = {**self.positions, **fresh}
            self.is_unsaved = True
        if self.is_unsaved:
            self._store.save(self._gate, self.name, fresh or self.positions)
            self.is_unsaved = False

    def _begin_again(self) -> None:
        self._destination.reset()
        self._sent = dict(self.positions)
        self._unproved.clear()
        self._acknowledged = 0

    def _take_failure(self, error: Exception) -> float:
        """Returns how long to wait."""
        self.failure = _reason(error)
        self._begin_again()
        asked = getattr(error, "retry_after_s", None)
        wait_s = self._pause_s if asked is None else max(asked, self._poll_s)
        self._pause_s = min(2 * self._pause_s, LONGEST_PAUSE_S)
        return min(wait_s, LONGEST_PAUSE_S) * random.uniform(0.8, 1.0)


def _reason(error: Exception) -> str:
    if isinstance(error, TidegateError):
        return error.without_secrets().message
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    return str(error) or type(error).__name__
