"""The client's address behind proxies: read from `Forwarded` (RFC 7239) and `X-Forwarded-For`.

Anyone can send these headers, so they count only as far as trusted proxies wrote them. Each proxy
adds the address that it was called from at the end. They are read from there: past the trusted
proxies, up to the first address that is not one. What comes before that is the client's own word.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network

Pairs = Iterable[tuple[bytes, bytes]]
_Address = IPv4Address | IPv6Address

MOST_HOPS = 32
"""The most hops that are read; no chain of proxies is longer."""
_MOST_CHARS = 256
"""Of one hop."""

_TOKEN = r"[!#$%&'*+.^_`|~0-9A-Za-z-]+"  # noqa: S105 - the grammar's word
_PAIR = rf'({_TOKEN})=({_TOKEN}|"[^"\\]*")'
_PAIRS = re.compile(rf"[ \t]*{_PAIR}(?:[ \t]*;[ \t]*{_PAIR})*[ \t]*")
_ONE_PAIR = re.compile(_PAIR)
_WITH_PORT = re.compile(r"(?:\[(?P<v6>[0-9A-Fa-f:.]+)\]|(?P<v4>[0-9.]+))(?::[0-9]{1,5})?")


class TrustedProxies:
    """The proxies whose word on the client's address counts: addresses and networks.

    `generation` counts how often they were replaced: an address that was found under another number
    may be another one now. `refresh`, if there is one, must be called before each read.
    """

    def __init__(
        self,
        networks: Iterable[str] = (),
        refresh: Callable[[], None] | None = None,
        listens_at: str = "",
    ) -> None:
        """`listens_at` is an address of this machine. Raises: ValueError if one is neither an
        address nor a network."""
        self._networks = tuple(ip_network(each) for each in networks)
        self._listens_at = _parsed(listens_at)
        self.refresh = refresh
        self.generation = 0

    def replace(self, networks: Iterable[str]) -> None:
        """Trust these from now on. Raises: ValueError if one is no address and no network."""
        made = tuple(ip_network(each) for each in networks)
        if made != self._networks:
            self._networks = made
            self.generation += 1

    def trusts(self, peer: str) -> bool:
        """Whether the settings, as they are now, name this address."""
        if self.refresh is not None:
            self.refresh()
        address = _parsed(peer)
        return address is not None and self._trusts(address)

    def client_address(self, peer: str, pairs: Pairs) -> str:
        """The address of the client of a request that came from `peer` with these headers.

        It is `peer` unless that is a trusted proxy. It is the last hop that is known where a proxy
        does not name the one before it. Where the two headers name different clients it is `peer`:
        a proxy writes one of them and may pass on the other, which the client wrote.
        """
        if not self._networks:
            return peer
        start = _parsed(peer)
        if start is None or not self._trusts(start):
            return peer
        for_lines: list[str] = []
        forwarded_lines: list[str] = []
        for name, value in pairs:
            if name == b"x-forwarded-for":
                for_lines.append(value.decode("latin-1"))
            elif name == b"forwarded":
                forwarded_lines.append(value.decode("latin-1"))
        found = {
            self._follow(start, map(read, _hops(lines)))
            for lines, read in ((for_lines, _plain_hop), (forwarded_lines, _forwarded_hop))
            if lines
        }
        return str(found.pop() if len(found) == 1 else start)

    def _follow(self, start: _Address, hops: Iterator[_Address | None]) -> _Address:
        """The first address that is no trusted proxy, or the last one that is known."""
        known = start
        for hop in hops:
            # Loopback is another machine's own word for itself, and here it means this machine.
            if hop is None or (self._is_here(hop) and not self._is_here(known)):
                break
            known = hop
            if not self._trusts(hop):
                break
        return known

    def _is_here(self, address: _Address) -> bool:
        """Whether an address means this machine."""
        return address.is_loopback or address == self._listens_at

    def _trusts(self, address: _Address) -> bool:
        return any(address in network for network in self._networks)


def _hops(lines: list[str]) -> Iterator[str]:
    """The elements of a header, the last one first. No address has a comma, so quotes do not
    matter: a quote that a client left open cannot swallow what a proxy has added."""
    count = 0
    for line in reversed(lines):
        rest: str | None = line
        while rest is not None:
            if count == MOST_HOPS:
                return
            count += 1
            before, comma, last = rest.rpartition(",")
            yield last if len(last) <= _MOST_CHARS else ""
            rest = before if comma else None


def _plain_hop(text: str) -> _Address | None:
    """A hop of `X-Forwarded-For`: an address, also in brackets, with a port or without."""
    text = text.strip(" \t")
    return _parsed(text) if "%" not in text else None


def _forwarded_hop(text: str) -> _Address | None:
    """A hop of `Forwarded`: the address of its `for`; None if that is hidden or not given."""
    if _PAIRS.fullmatch(text) is None:
        return None
    given = [value for name, value in _ONE_PAIR.findall(text) if name.lower() == "for"]
    return _plain_hop(given[0].strip('"')) if len(given) == 1 else None


def _parsed(text: str) -> _Address | None:
    """The address; an IPv4 address that is written as IPv6 is the IPv4 address."""
    found = _WITH_PORT.fullmatch(text)
    try:
        address = ip_address((found["v6"] or found["v4"]) if found else text)
    except ValueError:
        return None
    if isinstance(address, IPv6Address) and address.ipv4_mapped is not None:
        return address.ipv4_mapped
    return address
