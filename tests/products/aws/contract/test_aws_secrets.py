"""Secrets and tokens of AWS, by its own library against moto's server."""

from __future__ import annotations

import asyncio
import json
import ssl
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

import support.postgres_server as postgres_server
from external.install import python_of
from support.certificates import Authority
from support.free_ports import claim_port
from support.loop_server import loop_server
from support.mysql_login import clear_logins
from tidegate.app import App
from tidegate.config.loading import load
from tidegate.engines.common import renewed_login
from tidegate.engines.common.renewed_login import Term
from tidegate.errors import Code, TidegateError
from tidegate.model.actors import Actor, Scope
from tidegate.model.requests import Call, Query
from tidegate.model.statements import Statement
from tidegate.products.aws.settings import AwsSettings
from tidegate.secrets.readers import read_elsewhere, use_settings
from wire.served import Served

ACTOR = Actor("agent", "agent", Scope.READ_ONLY)


@pytest.fixture(scope="module")
def moto() -> Iterator[str]:
    port = claim_port()
    command = [str(python_of("moto")), "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port)]
    served = Served(command, port, "/moto-api/")
    yield f"http://127.0.0.1:{port}"
    served.close()


@pytest.fixture
def aws(moto: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[str]:
    """The variables of an account, and nothing of the one that runs the tests."""
    for name, value in {
        "AWS_ENDPOINT_URL": moto,
        "AWS_ACCESS_KEY_ID": "AKIATESTTESTTESTTEST",
        "AWS_SECRET_ACCESS_KEY": "unguessable key",
        "AWS_CONFIG_FILE": str(tmp_path / "none"),
        "AWS_SHARED_CREDENTIALS_FILE": str(tmp_path / "none"),
        "AWS_EC2_METADATA_DISABLED": "true",
    }.items():
        monkeypatch.setenv(name, value)
    use_settings({"aws": AwsSettings(region="eu-west-1")})
    yield moto
    use_settings({})


def keep(name: str, value: str) -> str:
    """Keep a secret; its ARN."""
    import boto3

    client: Any = boto3.client("secretsmanager", region_name="eu-west-1")
    try:
        arn: str = client.create_secret(Name=name, SecretString=value)["ARN"]
    except client.exceptions.ResourceExistsException:
        arn = client.put_secret_value(SecretId=name, SecretString=value)["ARN"]
    client.close()
    return arn


async def secret_of(kind: str, name: str) -> str:
    return (await read_elsewhere([(kind, name)]))[kind, name].secret


async def failure_of(kind: str, name: str) -> TidegateError:
    with pytest.raises(TidegateError) as caught:
        await read_elsewhere([(kind, name)])
    assert caught.value.code is Code.SECRET_UNAVAILABLE and name in caught.value.message
    assert "unguessable" not in f"{caught.value}{caught.value.hint}"
    return caught.value


async def test_a_field_of_a_secret_and_a_whole_one(aws: str) -> None:
    arn = keep("shop/db", json.dumps({"password": "unguessable p@ss", "port": 5432}))
    keep("plain", "unguessable text")
    assert await secret_of("AWS", "shop/db#password") == "unguessable p@ss"
    assert await secret_of("AWS", "shop/db#port") == "5432"
    assert await secret_of("AWS", "plain") == "unguessable text"
    use_settings({})  # the ARN says the region
    assert await secret_of("AWS", f"{arn}#password") == "unguessable p@ss"
    assert "no region" in (await failure_of("AWS", "plain")).message


async def test_what_cannot_be_read_is_named(aws: str, monkeypatch: pytest.MonkeyPatch) -> None:
    keep("shop/db", json.dumps({"password": "unguessable p@ss"}))
    keep("plain", "unguessable text")
    assert "ResourceNotFoundException" in (await failure_of("AWS", "nothing")).message
    error = await failure_of("AWS", "shop/db#passwort")
    assert "no text in the field" in error.message and error.hint == "Fields: password."
    assert "no JSON object" in (await failure_of("AWS", "plain#password")).message
    nowhere = f"http://127.0.0.1:{claim_port()}"
    monkeypatch.setenv("AWS_ENDPOINT_URL", nowhere)
    assert f"{nowhere}" in (await failure_of("AWS", "plain")).message
    monkeypatch.delenv("AWS_ACCESS_KEY_ID")
    assert "no credentials" in (await failure_of("AWS", "plain")).message


async def test_a_source_logs_in_with_a_secret_of_aws(
    aws: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(renewed_login, "FRESH_S", 0.0)
    server = postgres_server.shared()
    database = server.new_database()
    server.ask("DROP ROLE IF EXISTS of_aws; CREATE ROLE of_aws LOGIN PASSWORD 'unguessable first'")
    keep("of/aws", json.dumps({"password": "unguessable first"}))
    url = f"postgresql://of_aws:${{AWS:of/aws#password}}@127.0.0.1:{server.port}/{database}"
    settings = {"aws": {"region": "eu-west-1"}, "sources": [{"name": "shop", "url": url}]}
    (tmp_path / "state").mkdir(mode=0o700)
    app = App(load(json.dumps(settings)), tmp_path / "state")
    call = Call(ACTOR, "core", "query", Query(Statement("SELECT current_user")), "shop")
    try:
        assert (await app.gateway.handle(call)).payload.rows == b'[["of_aws"]]'
    finally:
        await app.close()
        server.ask("DROP ROLE of_aws")


async def test_a_token_of_rds_is_signed_here_and_holds_for_fifteen_minutes(
    aws: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://127.0.0.1:{claim_port()}")  # nobody is asked
    name = "ann@shop.abc.us-west-2.rds.amazonaws.com:5432"
    reading = (await read_elsewhere([("RDS", name)]))["RDS", name]
    token = urlsplit(f"https://{reading.secret}")
    asked = parse_qs(token.query)
    assert token.netloc == "shop.abc.us-west-2.rds.amazonaws.com:5432"
    assert (asked["DBUser"], asked["X-Amz-Expires"]) == (["ann"], ["900"])
    assert "/us-west-2/rds-db/" in asked["X-Amz-Credential"][0]
    term = Term.of([reading])
    assert term is not None and term.retire_at is None, "sessions outlive the token"
    assert reading.read_at < term.fresh_until < term.usable_until <= reading.read_at + 900


async def test_each_login_to_rds_sends_a_token_of_its_user_and_place(
    aws: str, tmp_path: Path
) -> None:
    sent: list[str] = []

    async def ask_for_password(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """The beginning of PostgreSQL's protocol: the clear text of a password, and its refusal."""
        (length,) = struct.unpack("!i", await reader.readexactly(4))
        first = await reader.readexactly(length - 4)
        if first == struct.pack("!i", 80877103):  # wants TLS
            writer.write(b"N")
            (length,) = struct.unpack("!i", await reader.readexactly(4))
            await reader.readexactly(length - 4)
        writer.write(b"R" + struct.pack("!ii", 8, 3))
        _, length = struct.unpack("!ci", await reader.readexactly(5))
        sent.append((await reader.readexactly(length - 4)).rstrip(b"\0").decode())
        said = b'SFATAL\0C28P01\0Mpassword authentication failed for user "ann"\0\0'
        writer.write(b"E" + struct.pack("!i", len(said) + 4) + said)
        writer.close()

    async with loop_server(ask_for_password) as port:
        url = f"postgresql://ann:${{RDS:ann@db.example:5432}}@127.0.0.1:{port}/shop"
        settings = {"aws": {"region": "eu-west-1"}, "sources": [{"name": "shop", "url": url}]}
        (tmp_path / "state").mkdir(mode=0o700)
        app = App(load(json.dumps(settings)), tmp_path / "state")
        call = Call(ACTOR, "core", "query", Query(Statement("SELECT 1")), "shop")
        try:
            with pytest.raises(TidegateError) as caught:
                await app.gateway.handle(call)
        finally:
            await app.close()
    assert all(each.startswith("db.example:5432/?Action=connect&DBUser=ann&") for each in sent)
    assert 1 <= len(sent) <= 2, "one new read"
    assert sent[0] not in f"{caught.value}{caught.value.details}"


@pytest.mark.needs("mysql")
async def test_a_mysql_of_rds_gets_its_token_in_the_clear_by_verified_tls_alone(
    aws: str, tmp_path: Path
) -> None:
    authority = Authority(tmp_path, "authority")
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(*authority.sign("db", "127.0.0.1"))
    async with clear_logins(tls) as server:
        place = f"mysql://ann:${{RDS:ann@db.example:3306}}@127.0.0.1:{server.port}/shop"
        sources = [
            {"name": "open", "url": f"{place}?tls=require"},
            {"name": "shop", "url": f"{place}?tls=verify&tls_ca={authority.file}"},
        ]
        settings = {"aws": {"region": "eu-west-1"}, "sources": sources}
        (tmp_path / "state").mkdir(mode=0o700)
        app = App(load(json.dumps(settings)), tmp_path / "state")
        try:
            for name in ("open", "shop"):
                call = Call(ACTOR, "core", "query", Query(Statement("SELECT 1")), name)
                with pytest.raises(TidegateError) as caught:
                    await app.gateway.handle(call)
                assert ("in the clear" in caught.value.message) is (name == "open")
                assert bool(server.passwords) is (name == "shop")
        finally:
            await app.close()
    assert all(
        each.startswith("db.example:3306/?Action=connect&DBUser=ann&") for each in server.passwords
    )
