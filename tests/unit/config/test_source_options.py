"""The options of a source: kept as they were given, checked and resolved for its engine."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from msgspec import structs

from support.engine_cases import CASES
from support.memory_engine import ENTRY
from support.operator_terminal import at_operator_terminal
from tidegate.cli.main import main
from tidegate.config.sources import SourceSettings
from tidegate.engines.registry import open_engine, resolve_options
from tidegate.errors import Code, TidegateError
from tidegate.gateway.configured_sources import source_from_settings
from tidegate.model.sources import Source


def memory(*options: tuple[str, str]) -> Source:
    return Source("1", "odd", "memory://", ENTRY.engine, ENTRY.engine, options=options)


async def test_an_engine_gets_its_options_with_their_secrets(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "password").write_text("open sesame\n")
    monkeypatch.setenv("VERSION", "7")
    given = ("version", "${ENV:VERSION}b"), ("password", f"${{FILE:{tmp_path}/password}}")
    assert resolve_options(memory(*given)) == {"version": "7b", "password": "open sesame"}
    engine = await open_engine(memory(*given))
    assert engine.status.server_version == "memory 7b"
    await engine.close()


async def test_a_secret_that_is_not_there_opens_nothing() -> None:
    with pytest.raises(TidegateError, match="`NOT_SET`") as caught:
        await open_engine(memory(("password", "${ENV:NOT_SET}")))
    assert caught.value.code is Code.SOURCE_URL


@pytest.mark.parametrize(
    ("url", "name", "hint"),
    [
        ("memory://", "pasword", "Did you mean `password`?"),
        ("memory://", "zzz", "Known: version, password."),
        ("sqlite://", "password", "Known: timeout."),
        ("duckdb://", "memorylimit", "Did you mean `memory_limit`?"),
        ("mysql://db.example/shop", "password", "It has none"),
        ("postgresql://db.example/shop", "pool", "It has none"),
    ],
)
async def test_an_option_that_the_engine_does_not_have_is_refused(
    url: str, name: str, hint: str
) -> None:
    settings = SourceSettings("odd", url, options={name: "${ENV:P}"})
    with pytest.raises(TidegateError, match=f"`{name}`") as caught:
        source_from_settings(settings)
    assert (caught.value.code, hint in caught.value.hint) == (Code.CONFIG_INVALID, True)
    saved = Source("1", "odd", url, "", "", options=((name, "${ENV:P}"),))
    with pytest.raises(TidegateError, match=f"`{name}`"):
        await open_engine(saved)


def test_the_command_line_saves_changes_and_clears_options(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "state").mkdir(mode=0o700)
    monkeypatch.setenv("TIDEGATE_STATE", str(tmp_path / "state"))
    for name in ("P", "Q"):  # a source is tried before it is saved
        monkeypatch.setenv(name, "open sesame")

    def source(*words: str) -> int:
        with at_operator_terminal():
            return main(["source", *words])

    def options() -> list[list[str]]:
        capsys.readouterr()
        assert source("list", "--json") == 0
        return json.loads(capsys.readouterr().out)["sources"][0]["options"]

    given = ("--option", "password=${ENV:P}", "--option", "version=a=b")
    assert source("add", "odd", "memory://", *given) == 0
    assert options() == [["password", "${ENV:P}"], ["version", "a=b"]]
    assert source("update", "odd", "--tag", "eu") == 0
    assert options() == [["password", "${ENV:P}"], ["version", "a=b"]]
    assert source("update", "odd", "--option", "version=", "--option", "password=${ENV:Q}") == 0
    assert options() == [["password", "${ENV:Q}"]]
    for words, status in (("verison=2", 78), ("password=hunter2", 66), ("=x", 2), ("version", 2)):
        assert source("update", "odd", "--option", words) == status
        assert "hunter2" not in capsys.readouterr().err
    assert options() == [["password", "${ENV:Q}"]]
    assert source("update", "odd", "--clear", "options") == 0
    assert options() == []


@pytest.mark.needs("duckdb")
async def test_duckdb_takes_its_limits_as_options(tmp_path: Path) -> None:
    case = CASES["duckdb"].prepare(tmp_path)
    options = (("memory_limit", "96MB"), ("threads", "1"))
    engine = await open_engine(structs.replace(case.source, options=options))
    limits = "SELECT current_setting('memory_limit'), current_setting('threads')"
    try:
        assert await case.ask(engine, limits) == [("91.5 MiB", 1)]
    finally:
        await engine.close()


@pytest.mark.parametrize(
    ("url", "option", "message"),
    [
        ("duckdb://", ("memory_limit", "lots"), "is a size"),
        ("duckdb://", ("threads", "0"), "from 1 to 64"),
        ("sqlite://", ("timeout", "soon"), "number of seconds"),
        ("duckdb:///:memory:?threads=2", ("threads", "3"), "in the URL and among"),
        ("sqlite:///:memory:?timeout=2", ("timeout", "3"), "in the URL and among"),
    ],
)
async def test_an_option_of_no_meaning_or_given_twice_opens_nothing(
    url: str, option: tuple[str, str], message: str
) -> None:
    engine = url.partition(":")[0]
    with pytest.raises(TidegateError, match=message) as caught:
        await open_engine(Source("1", "shop", url, engine, engine, options=(option,)))
    assert caught.value.code is Code.SOURCE_URL
