"""`tidegate serve --proxy`: what it refuses, how it waits, what it says of the server behind."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from support.certificates import Authority
from support.cloud_backing import Backing, backing_server, proxy_of
from support.cloud_surface import SELECT, CloudClient
from support.command_line import STARTED, serving, tidegate
from support.free_ports import claim_port
from support.postgres_surface import PostgresShop
from tidegate.errors import Code, TidegateError
from tidegate.products.cloud.commands.backing_server import source_url, wait_for_backing_server
from tidegate.serve.lifecycle import Shutdown

PLAIN = ["server_info", "validate_select_query", "run_select_query"]


@pytest.fixture(scope="module")
def secure(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Backing, Authority]]:
    """A backing server with TLS, for `localhost` alone."""
    folder = tmp_path_factory.mktemp("secure")
    authority = Authority(folder, "authority")
    cert, key = authority.sign("server", "localhost")
    options = ("--tls-cert", str(cert), "--tls-key", str(key))
    with backing_server(folder, *options) as running:
        yield running, authority


def tool(name: str, **arguments: Any) -> dict[str, Any]:
    return {"name": name, "arguments": arguments}


def test_a_proxy_on_stdio_says_what_is_behind_and_answers(
    tmp_path: Path, secure: tuple[Backing, Authority]
) -> None:
    backing, authority = secure
    dsn = backing.dsn().replace("127.0.0.1", "localhost")
    dsn += f"?sslmode=verify-full&sslrootcert={authority.file}"
    words = ("serve", "--surface", "cloud", "--proxy", dsn)
    with serving(words, tmp_path, program=STARTED) as proxy:
        assert "the backing server is Tidegate" in proxy.until("backing")
        answer = proxy.ask("tools/call", tool("run_select_query", sql=SELECT))
        assert len(answer["result"]["structuredContent"]["rows"]) == 2
        command = Path(f"/proc/{proxy.process.pid}/cmdline").read_text()
    assert backing.server.secrets["proxy"] not in command


@pytest.mark.parametrize(
    ("options", "setting"),
    [
        ("sslmode=verify-full&sslrootcert={stranger}", "sslrootcert"),
        ("sslmode=verify-full&sslrootcert={folder}/nothing.pem", "sslrootcert"),
        ("sslmode=verify-full&sslrootcert={root}&hostaddr=127.0.0.1&host=other", "sslmode"),
        ("sslmode=verify-ca&sslrootcert={root}&sslcert={folder}/none.crt&sslkey=x", "sslcert"),
        ("sslmode=maybe", "sslmode"),
    ],
)
def test_what_is_wrong_with_tls_is_said_with_its_setting_and_not_tried_again(
    tmp_path: Path, secure: tuple[Backing, Authority], options: str, setting: str
) -> None:
    backing, authority = secure
    stranger = Authority(tmp_path, "stranger").file
    text = options.format(stranger=stranger, root=authority.file, folder=tmp_path)
    host = "" if "host=" in text else "localhost"
    dsn = backing.dsn().replace("127.0.0.1", host) + f"?{text}"
    ended = tidegate("serve", "--surface", "cloud", "--proxy", dsn, state=tmp_path / "state")
    assert ended.status != 0
    assert f"`{setting}`" in ended.err
    assert "Trying again" not in ended.err
    assert backing.server.secrets["proxy"] not in ended.err


@pytest.mark.parametrize(
    "dsn",
    [
        "postgresql://proxy:s3cr3t@127.0.0.1:1/cloud",
        "postgresql://proxy@127.0.0.1:1/cloud?password=s3cr3t",
        "host=127.0.0.1 user=proxy password=s3cr3t",
        "host=127.0.0.1 user=proxy password='s3c r3t'",
        "mysql://proxy:s3cr3t@127.0.0.1/cloud",
        "s3cr3t",
    ],
)
def test_a_dsn_with_a_password_or_that_cannot_be_read_is_refused_and_not_shown(
    tmp_path: Path, dsn: str
) -> None:
    ended = tidegate("serve", "--surface", "cloud", "--proxy", dsn, state=tmp_path)
    assert ended.status in (66, 78)
    assert "DSN of the backing server" in ended.err
    assert "s3c" not in ended.err + ended.out


@pytest.mark.parametrize(
    ("config", "words", "named"),
    [
        ({}, ("--proxy", "postgresql://p@h/cloud"), "--surface cloud"),
        (
            {"surface": {"cloud": {"backend": {"dsn": "postgresql://p@h/cloud"}}}},
            ("--surface", "cloud", "--proxy", "postgresql://p@h/cloud"),
            "surface.cloud.backend.dsn",
        ),
        (
            {"cloud": {"private_hosts": ["h"]}},
            ("--surface", "cloud", "--proxy", "postgresql://p@h/cloud"),
            "section `cloud`",
        ),
        (
            {"surface": {"cloud": {"source": "other"}}},
            ("--surface", "cloud", "--proxy", "postgresql://p@h/cloud"),
            "surface.cloud.source",
        ),
        (
            {"sources": [{"name": "apis", "url": "cloud:///tmp"}]},
            ("--surface", "cloud", "--proxy", "postgresql://p@h/cloud"),
            "`apis`",
        ),
        (
            {},
            ("--surface", "cloud", "--proxy", "postgresql://p@h/cloud?prepared_statements=on"),
            "prepared_statements",
        ),
    ],
)
def test_settings_that_do_not_go_with_a_backing_server_are_refused_by_name(
    tmp_path: Path, config: dict[str, Any], words: tuple[str, ...], named: str
) -> None:
    ended = tidegate("serve", "--config", json.dumps(config), *words, state=tmp_path)
    assert ended.status in (66, 78)
    assert named in ended.err


def test_a_wrong_password_a_token_of_no_proxy_and_another_database_end_the_start(
    tmp_path: Path, secure: tuple[Backing, Authority]
) -> None:
    backing, _ = secure
    cases = [
        (backing.dsn().replace("proxy:", "writer:"), "refuses the login"),
        (backing.dsn().replace("/cloud", "/shop"), "is no source of cloud providers"),
        (backing.dsn().replace("/cloud", "/nothing"), "is no source that"),
    ]
    secret = tmp_path / "writer.secret"
    secret.write_text(backing.server.secrets["writer"])
    place = f"127.0.0.1:{backing.server.port}"
    cases.append((f"postgresql://writer:${{FILE:{secret}}}@{place}/cloud", "for a proxy's"))
    for dsn, said in cases:
        ended = tidegate("serve", "--surface", "cloud", "--proxy", dsn, state=tmp_path / "state")
        assert ended.status != 0
        assert said in ended.err
        assert "Trying again" not in ended.err
        assert not any(secret in ended.err for secret in backing.server.secrets.values())


def test_a_proxy_waits_for_its_backing_server(tmp_path: Path) -> None:
    port = claim_port()
    secret = tmp_path / "secret"
    secret.write_text("none")
    dsn = f"postgresql://proxy:${{FILE:{secret}}}@127.0.0.1:{port}/cloud"
    (tmp_path / "state").mkdir()
    words = ("serve", "--surface", "cloud", "--proxy", dsn)
    with serving(words, tmp_path / "state") as proxy:
        assert "Trying again in 0.5 s (1 of 5)" in proxy.until("Trying again")
        (tmp_path / "backing").mkdir()
        with backing_server(tmp_path / "backing", "--pg", f"127.0.0.1:{port}") as backing:
            secret.write_text(backing.server.secrets["proxy"])
            assert "Tidegate" in proxy.until("the backing server is")


async def test_the_wait_is_bounded_and_ends_when_the_proxy_is_to_stop(
    tmp_path: Path, secure: tuple[Backing, Authority], capsys: pytest.CaptureFixture[str]
) -> None:
    async with proxy_of(secure[0], tmp_path, port=claim_port()) as app:
        with pytest.raises(TidegateError) as failed:
            await wait_for_backing_server(app, Shutdown(), waits_s=(0.01, 0.01))
        assert failed.value.code is Code.SOURCE_UNREACHABLE
        assert capsys.readouterr().err.count("Trying again") == 2
        shutdown = Shutdown()
        shutdown.ask()
        began = time.monotonic()
        await wait_for_backing_server(app, shutdown, waits_s=(60.0,))
        assert time.monotonic() - began < 30


async def test_the_next_call_connects_again_when_the_backing_server_has_restarted(
    tmp_path: Path,
) -> None:
    (tmp_path / "behind").mkdir()
    (tmp_path / "proxy").mkdir()
    options = ("--pg", f"127.0.0.1:{claim_port()}")
    with backing_server(tmp_path / "behind", *options) as backing:
        async with proxy_of(backing, tmp_path / "proxy") as app:
            client = CloudClient(app)
            await client.good("run_select_query", sql=SELECT)
            process, folder = backing.server.process.process, backing.server.folder
            process.kill()
            await asyncio.to_thread(process.wait, 30)
            assert "cannot be reached" in await client.bad("run_select_query", sql=SELECT)
            words = ("serve", "--config", str(folder / "settings.json"), *options)
            with serving(words, folder / "state") as again:
                await asyncio.to_thread(again.until, "postgresql://")
                await client.good("run_select_query", sql=SELECT)


@pytest.fixture(scope="module")
def postgres() -> Iterator[PostgresShop]:
    shop = PostgresShop.lasting("CREATE TABLE item (id int); INSERT INTO item VALUES (1), (2);")
    yield shop
    shop.drop()


def test_a_postgresql_behind_is_refused_with_the_reason(
    tmp_path: Path, postgres: PostgresShop
) -> None:
    ended = tidegate("serve", "--surface", "cloud", "--proxy", postgres.url, state=tmp_path)
    assert ended.status != 0
    assert "is a PostgreSQL and no Tidegate or StackQL" in ended.err
    assert "surface.cloud.enabled_tools" in ended.err


def test_a_postgresql_behind_answers_select_where_no_tool_sends_anything_else(
    tmp_path: Path, postgres: PostgresShop
) -> None:
    config = json.dumps({"enabled_tools": PLAIN, "backend": {"dsn": postgres.url}})
    with serving(("serve", "--config", config), tmp_path) as proxy:
        assert "PostgreSQL" in proxy.until("backing server is")

        def ask(name: str, sql: str) -> dict[str, Any]:
            return proxy.ask("tools/call", tool(name, sql=sql))["result"]

        found = ask("run_select_query", "SELECT id FROM item ORDER BY id")
        assert found["structuredContent"]["rows"] == [{"id": 1}, {"id": 2}]
        assert ask("validate_select_query", "SELECT id FROM item")["structuredContent"]["valid"]
        for sql in ("SHOW PROVIDERS", "DELETE FROM a.b.item", "SELECT pg_sleep(0)"):
            assert ask("run_select_query", sql)["isError"]
        for sql in (  # that PostgreSQL reads in another way than SQLite
            "SELECT ARRAY[pg_read_file('PG_VERSION')] FROM item",
            "SELECT ARRAY [(SELECT max(id) FROM item)]",
            "SELECT id [pg_read_file('PG_VERSION')] FROM item",
            "SELECT 1 AS n /* /* */ , 2 AS m",
            "SELECT E 'a\\', ' , pg_read_file(1) --'",
        ):
            refused = ask("run_select_query", sql)
            assert refused["isError"]
            assert "is a PostgreSQL" in repr(refused["content"]), sql
        assert not ask("run_select_query", "SELECT 1 AS n").get("isError")


def test_a_dsn_of_pairs_and_one_that_is_a_url_name_the_same_source() -> None:
    pairs = "host=h port=5 dbname=cloud user='a b' passfile='/p\\'q' sslmode=verify-full"
    assert source_url(pairs) == (
        "cloud+postgresql:///?host=h&port=5&dbname=cloud&user=a%20b&passfile=/p%27q"
        "&sslmode=verify-full"
    )
    assert source_url("postgres://u@h:5/cloud") == "cloud+postgresql://u@h:5/cloud"
