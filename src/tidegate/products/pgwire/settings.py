"""Settings of the PostgreSQL wire protocol: the section `pg`."""

from __future__ import annotations

from typing import Annotated, ClassVar

import msgspec

from tidegate.config.addresses import check_proxies_named, http_address, is_this_machine
from tidegate.config.errors import invalid
from tidegate.config.model import Config
from tidegate.config.sections import Section

_Count = Annotated[int, msgspec.Meta(ge=1)]
_Seconds = Annotated[float, msgspec.Meta(gt=0, le=86_400)]


class PgWireSettings(Section, frozen=True, forbid_unknown_fields=True):
    """Where clients of PostgreSQL's wire protocol connect.

    `listen` is HOST:PORT; none: they cannot. With `proxy_protocol` each connection of one of
    `trusted_proxies` begins with a header of the PROXY protocol, version 2, which gives the
    client's address. With `client_ca`, a PEM file, every client must have a
    certificate of that authority, and one whose common name is its user needs no password. A
    result is cut at `max_rows`. At most `max_connections` clients are logged in at a time, and at
    most `max_logins` others are connected: one more ends the oldest of them, of the address that
    has most.

    A transaction block is rolled back and its session ended after `idle_in_transaction_s` seconds
    without a statement, or in which its client reads no more of a result, and `transaction_s`
    seconds in all. One caller has `max_transactions` of
    them open at one source at most.
    """

    NAME: ClassVar[str] = "pg"

    listen: str | None = None
    proxy_protocol: bool = False
    client_ca: str | None = None
    max_rows: _Count = 1_000_000
    max_connections: _Count = 2_000
    max_logins: _Count = 256
    idle_in_transaction_s: _Seconds = 60.0
    transaction_s: _Seconds = 1_800.0
    max_transactions: _Count = 3

    @property
    def listen_address(self) -> str | None:
        return self.listen

    def check_files(self, config: Config) -> None:
        if config.tls is not None and self.client_ca is not None:
            from tidegate.edges.http.certificate import ServerCertificate

            ServerCertificate(config.tls, client_ca=self.client_ca)

    def check(self, config: Config) -> None:
        """Raises: TidegateError CONFIG_INVALID for an address that others reach without TLS and
        authentication, and for headers that no one may send."""
        if self.proxy_protocol:
            check_proxies_named("pg.proxy_protocol", config.trusted_proxies)
        if self.listen is None:
            return
        host, _ = http_address(self.listen)
        if not is_this_machine(host) and (config.tls is None or not config.auth):
            raise invalid(
                f"`pg.listen` is `{host}`, which is not this machine alone: that takes TLS and"
                " authentication.",
                hint="Set `tls.cert` and `tls.key` and leave `auth` on, or listen on 127.0.0.1.",
            )
        if self.client_ca is not None and config.tls is None:
            raise invalid(
                "`pg.client_ca` asks for client certificates, which takes TLS.",
                hint="Set `tls.cert` and `tls.key`.",
            )
