"""What `surface.cloud.server` says of the whole server: its transport, address and certificate."""

from __future__ import annotations

import argparse

from msgspec import structs

from tidegate.config.errors import invalid
from tidegate.config.model import Config, TlsSettings
from tidegate.errors import TidegateError
from tidegate.products.cloud.surface.settings import (
    DEFAULT_ADDRESS,
    Server,
    settings_of,
)

_PLACE = "surface.cloud.server"


def with_cloud_server(config: Config, arguments: argparse.Namespace) -> Config:
    """The settings with what that section says. What is said there as well as in an option or
    elsewhere in the settings is refused: one of them would have no effect.

    Raises: TidegateError CONFIG_INVALID that names both.
    """
    server = settings_of(config).server
    elsewhere = {
        "--http": arguments.http,
        "--stdio": arguments.stdio,
        "http": config.http,
        "stdio": config.stdio,
    }
    of_tls = {
        "--tls-cert": arguments.tls_cert,
        "--tls-key": arguments.tls_key,
        "tls": config.tls,
    }
    key = _key_of_address(server)
    if key is not None:
        for other, value in elsewhere.items():
            if value:
                raise _both(key, other)
    if key is not None or server.tls_cert_file is not None:
        for other, value in of_tls.items():
            if value:
                raise _both("tls_cert_file" if server.tls_cert_file else key or "", other)
    if not server.uses_http:
        return config
    config = structs.replace(config, http=server.address or DEFAULT_ADDRESS)
    if server.tls_cert_file and server.tls_key_file:
        config = structs.replace(config, tls=TlsSettings(server.tls_cert_file, server.tls_key_file))
    return config


def _key_of_address(server: Server) -> str | None:
    """The key that sets how the server is reached; None if none does."""
    for key in ("transport", "address", "scheme", "tls_cert_file"):
        if getattr(server, key) is not None:
            return key
    return None


def _both(key: str, other: str) -> TidegateError:
    return invalid(
        f"`{_PLACE}.{key}` and `{other}` both set how the server is reached.",
        hint="Give one of them.",
    )
