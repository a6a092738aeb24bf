"""Which directories and servers a caller of the surface `datalog` may open, without a JVM."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from tidegate.app import App
from tidegate.config.model import Config
from tidegate.config.sources import SourceSettings, TemporarySourceSettings
from tidegate.errors import Code, TidegateError
from tidegate.model.actors import Actor, Scope
from tidegate.model.requests import Call
from tidegate.products.datalog.requests import OpenDatalog, OpenedDatalog
from tidegate.products.datalog.settings import OpeningSettings

READER = Actor("r", "r", Scope.READ_ONLY)
WRITER = Actor("w", "w", Scope.READ_WRITE)
HTTP = "192.0.2.7"
DEFAULT = OpeningSettings()


def opened(
    tmp_path: Path,
    url: str,
    *,
    actor: Actor = READER,
    address: str = "",
    own: OpeningSettings = DEFAULT,
    **settings: Any,
) -> OpenedDatalog:
    """What the gate answers a caller on stdio, or with an address over HTTP."""

    async def run() -> OpenedDatalog:
        config = Config(
            state=str(tmp_path / "state"),
            temporary_sources=TemporarySourceSettings(**settings),
            sources=(SourceSettings(name="saved", url=f"datalevin://{tmp_path}/saved"),),
            sections={"datalog": own},
        )
        app = App.open(config)
        try:
            call = Call(
                actor, "datalog", "open", OpenDatalog("x", url), session="s", address=address
            )
            return (await app.gateway.handle(call)).payload
        finally:
            await app.close()

    return asyncio.run(run())


def denied(tmp_path: Path, url: str, **more: Any) -> None:
    with pytest.raises(TidegateError) as refused:
        opened(tmp_path, url, **more)
    assert refused.value.code is Code.POLICY_DENIED
    assert refused.value.details["rule"] == "source.temporary"
    assert "hunter2" not in refused.value.message


def test_a_client_on_stdio_opens_what_its_user_can_reach(tmp_path: Path) -> None:
    url = f"datalevin://{tmp_path}/facts"
    assert opened(tmp_path, url).source.access == "read"
    assert opened(tmp_path, url, actor=WRITER).source.access == "write"
    assert opened(tmp_path, "dtlv://h.example/db").place == "dtlv://h.example/db"
    denied(tmp_path, url, own=OpeningSettings(directories=("/elsewhere",)))
    denied(tmp_path, "dtlv://h.example/db", own=OpeningSettings(hosts=("other.example",)))


def test_nothing_is_open_over_http_unless_it_is_listed(tmp_path: Path) -> None:
    url = f"datalevin://{tmp_path}/listed/facts"
    (tmp_path / "listed").mkdir()
    listed: dict[str, Any] = {"directories": (f"{tmp_path}/listed",)}
    denied(tmp_path, url, address=HTTP)
    denied(tmp_path, "dtlv://h.example/db", address=HTTP)
    assert opened(tmp_path, url, address=HTTP, **listed).source.access == "read"
    written = opened(tmp_path, url, actor=WRITER, address=HTTP, **listed)
    assert written.source.access == "read"
    changed: dict[str, Any] = {**listed, "own": OpeningSettings(changes=True)}
    assert opened(tmp_path, url, actor=WRITER, address=HTTP, **changed).source.access == "write"
    assert opened(tmp_path, url, address=HTTP, **changed).source.access == "read"


def test_no_link_and_no_dots_lead_out_of_a_listed_directory(tmp_path: Path) -> None:
    (tmp_path / "listed").mkdir()
    (tmp_path / "listed" / "link").symlink_to(tmp_path)
    listed: dict[str, Any] = {"directories": (f"{tmp_path}/listed",), "address": HTTP}
    denied(tmp_path, f"datalevin://{tmp_path}/listed/link/facts", **listed)
    denied(tmp_path, f"datalevin://{tmp_path}/listed/../facts", **listed)
    denied(tmp_path, f"datalevin://{tmp_path}/listed/%2e%2e/facts", **listed)


def test_a_saved_source_is_not_opened_by_its_place_and_no_secret_of_ours_is_used(
    tmp_path: Path,
) -> None:
    denied(tmp_path, f"datalevin://{tmp_path}/saved")
    denied(tmp_path, "dtlv://u:${ENV:HOME}@h.example/db")


def test_a_password_is_nowhere_in_the_answer(tmp_path: Path) -> None:
    answer = opened(tmp_path, "dtlv://u:hunter2@h.example/db")
    assert "hunter2" not in f"{answer.place} {answer.source}"
    denied(tmp_path, "dtlv://u:hunter2@h.example/db", address=HTTP)


def test_a_directory_that_is_only_read_is_copied_where_the_operator_says_so(tmp_path: Path) -> None:
    url = f"datalevin://{tmp_path}/facts"
    strict: dict[str, Any] = {"own": OpeningSettings(private_copy_mb=100)}
    assert opened(tmp_path, url, **strict).source.options == (("private_copy_mb", "100"),)
    assert opened(tmp_path, url).source.options == ()
    assert opened(tmp_path, url, actor=WRITER, **strict).source.options == ()
    assert opened(tmp_path, "dtlv://h.example/db", **strict).source.options == ()
