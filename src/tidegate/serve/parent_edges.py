"""What serves in the parent of workers itself, such as figures of all of them together."""

from __future__ import annotations

import socket
from collections.abc import Callable
from typing import NamedTuple

from tidegate.config.model import Config
from tidegate.edges.edge import Edge
from tidegate.edges.http.certificate import ServerCertificate
from tidegate.product import found_already, load
from tidegate.serve.parent import Workers


class ParentListener(NamedTuple):
    """`name` is that of the product's section, `open` makes the edge at its socket in the loop that
    serves; the certificate is read again on SIGHUP."""

    name: str
    open: Callable[[Workers, socket.socket], Edge]
    certificate: ServerCertificate | None


MakeParentListener = Callable[[Config], ParentListener | None]


def parent_listeners_of(config: Config) -> list[ParentListener]:
    """What the settings have the parent serve. Raises: TidegateError CONFIG_INVALID."""
    makers: list[MakeParentListener] = [
        load(each.parent_listener)
        for each in found_already()
        if each.parent_listener and each.settings.keys() & config.sections.keys()
    ]
    return [listener for make in makers if (listener := make(config)) is not None]
