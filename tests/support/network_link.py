"""A network namespace for a process, whose way to one address of this machine can be cut: what that
address sends gets lost, and no end hears of it."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from support.eventually import PATIENCE_S


class Link:
    """The namespace and its addresses, in a network that no other process of the tests has."""

    def __init__(self) -> None:
        number = os.getpid() % 60_000
        self.name = f"tgl{number}"
        network = f"10.{200 + number // 255 % 50}.{number % 255}"
        self.here, self.cut_off, self.proxy, self.there = (f"{network}.{n}" for n in (1, 2, 3, 4))
        """This machine's, of which `cut_off` is the one that is cut, and the namespace's."""
        self._rule = ("from", self.cut_off, "to", self.there)

    @property
    def command(self) -> list[str]:
        """What a command in the namespace begins with."""
        return ["ip", "netns", "exec", self.name]

    def open(self) -> bool:
        """Make it; whether that is allowed here."""
        near, far = f"{self.name}h", f"{self.name}n"
        inside = ("netns", "exec", self.name, "ip")
        steps = [
            ("netns", "add", self.name),
            ("link", "add", near, "type", "veth", "peer", "name", far),
            ("link", "set", far, "netns", self.name),
            *(("addr", "add", f"{each}/24", "dev", near)
              for each in (self.here, self.cut_off, self.proxy)),
            ("link", "set", near, "up"),
            (*inside, "addr", "add", f"{self.there}/24", "dev", far),
            (*inside, "link", "set", far, "up"),
            (*inside, "link", "set", "lo", "up"),
        ]  # fmt: skip
        return all(_ip(*step) for step in steps)

    def close(self) -> None:
        self.mend()
        _ip("link", "del", f"{self.name}h")
        _ip("netns", "del", self.name)

    def cut(self) -> None:
        """From now on nothing arrives from `cut_off`."""
        assert _ip("rule", "add", "blackhole", *self._rule)

    def mend(self) -> None:
        _ip("rule", "del", "blackhole", *self._rule)


@contextmanager
def network_link() -> Iterator[Link | None]:
    """A link; None where none may be made."""
    link = Link()
    try:
        yield link if link.open() else None
    finally:
        link.close()


def _ip(*words: str) -> bool:
    quiet = subprocess.DEVNULL
    with suppress(OSError):
        ended = subprocess.run(["ip", *words], stdout=quiet, stderr=quiet, timeout=PATIENCE_S)
        return ended.returncode == 0
    return False
