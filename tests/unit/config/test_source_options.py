"""The options of a source: kept as they were given, checked and resolved for its engine."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

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
        ("sqlite://", "password", "It has none"),
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
