"""TLS and client certificates on the wire protocol, and addresses that need them."""

from __future__ import annotations

from pathlib import Path

import psycopg
import pytest

from support.certificates import Authority
from support.command_line import tidegate
from support.wire_server import wire_server


def test_a_client_verifies_the_server_and_logs_in_over_tls(tmp_path: Path):
    authority = Authority(tmp_path, "authority")
    cert, key = authority.sign("server", "localhost", "127.0.0.1")
    options = ("--tls-cert", str(cert), "--tls-key", str(key))
    with wire_server(tmp_path, *options) as server:
        secure = server.conninfo(sslmode="verify-full", sslrootcert=authority.file)
        with psycopg.connect(secure, autocommit=True) as gate:
            assert gate.pgconn.ssl_in_use
            assert gate.execute("SELECT count(*) FROM item").fetchone() == (3,)
        with psycopg.connect(server.conninfo(sslmode="disable")) as gate:
            assert not gate.pgconn.ssl_in_use  # on loopback


def test_with_an_authority_for_clients_a_certificate_is_needed_and_names_the_token(tmp_path: Path):
    authority = Authority(tmp_path, "authority")
    cert, key = authority.sign("server", "localhost", "127.0.0.1")
    mine, my_key = authority.sign("reader")
    (tmp_path / "other").mkdir()
    other, other_key = Authority(tmp_path / "other", "stranger").sign("reader")
    options = ("--tls-cert", str(cert), "--tls-key", str(key))
    settings = {"pg": {"client_ca": str(authority.file)}}
    with wire_server(tmp_path, *options, **settings) as server:

        def connect(user: str, certificate: Path | None, its_key: Path | None, **more: str):
            files = {} if certificate is None else {"sslcert": certificate, "sslkey": its_key}
            info = server.conninfo(user=user, sslmode="require", **files, **more)
            return psycopg.connect(info, autocommit=True)

        with connect("reader", mine, my_key, password="none") as gate:
            assert gate.execute("SELECT current_user").fetchone() == ("reader",)
        with connect("writer", mine, my_key) as gate:  # another name takes its password
            assert gate.execute("SELECT current_user").fetchone() == ("writer",)
        for certificate, its_key in ((None, None), (other, other_key)):
            with pytest.raises(psycopg.OperationalError):
                connect("reader", certificate, its_key)
        with pytest.raises(psycopg.OperationalError, match="TLS"):
            psycopg.connect(server.conninfo(sslmode="disable"))
        with pytest.raises(psycopg.OperationalError):
            connect("writer", mine, my_key, password="none")


@pytest.mark.parametrize("more", [(), ("--no-auth",)], ids=["without TLS", "without a login"])
def test_an_address_that_others_reach_needs_tls_and_a_login(tmp_path: Path, more: tuple[str, ...]):
    everywhere = ".".join("0" * 4)
    ended = tidegate("serve", "--pg", f"{everywhere}:0", *more, state=tmp_path)
    assert ended.status != 0
    assert everywhere in ended.err
