"""Ports for servers that need one by number, reserved until they listen.

To bind port 0, close it and hand its number on is a race: until the server listens, and whenever it
restarts, the kernel may give the number to another. So the ports are taken from below those that
the kernel gives away by itself, and each is claimed by a name that lives as long as this process:
an abstract Unix socket, which belongs to the same network namespace as the port.
"""

from __future__ import annotations

import os
import socket

_PORTS = range(10_240, 32_768)
_claims: list[socket.socket] = []


def claim_port() -> int:
    """A TCP port on loopback that is this process's until it ends."""
    begin = os.getpid() * 64  # each process starts elsewhere: few are found claimed
    for offset in range(len(_PORTS)):
        port = _PORTS[(begin + offset) % len(_PORTS)]
        if _claimed(port) and _free(port):
            return port
    raise RuntimeError("every port is taken")


def _claimed(port: int) -> bool:
    claim = socket.socket(socket.AF_UNIX)
    try:
        claim.bind(f"\0tidegate-test-port-{port}")
    except OSError:
        claim.close()
        return False
    _claims.append(claim)
    return True


def _free(port: int) -> bool:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True
