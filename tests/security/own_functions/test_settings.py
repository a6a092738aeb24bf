"""The setting `functions` of a source: what it takes, and what is said of it."""

from __future__ import annotations

from pathlib import Path

import duckdb
import pytest

from support.command_line import tidegate
from tidegate.config.sources import RunAsSettings, SourceSettings
from tidegate.errors import TidegateError
from tidegate.gateway.configured_sources import source_from_settings
from tidegate.model.sources import Source
from tidegate.policy.widening import widened


@pytest.fixture
def notes(tmp_path: Path) -> Path:
    path = tmp_path / "notes.duckdb"
    with duckdb.connect(str(path)) as connection:
        connection.execute(
            "CREATE TABLE notes (id int PRIMARY KEY); CREATE MACRO slugify(t) AS lower(t)"
        )
    return path


@pytest.mark.parametrize(
    "name",
    [
        "slugify",
        "a.b.c",
        ".f",
        "s.",
        "s.f()",
        "s.*",
        '"s".f',
        "pg_catalog.f",
        "MYSQL.f",
        "s. f",
        "",
    ],
)
def test_what_names_no_function_of_a_user_is_refused(name: str) -> None:
    with pytest.raises(TidegateError) as refused:
        SourceSettings("shop", "postgresql://db/shop", functions=(name,))
    assert "functions" in refused.value.message


@pytest.mark.parametrize(
    "url", ["sqlite:///{path}", "files://{folder}", "jdbc:postgresql://db/shop", "cloud://"]
)
def test_where_it_would_do_nothing_or_more_it_is_refused(url: str, tmp_path: Path) -> None:
    (tmp_path / "x.db").touch()
    filled = url.format(path=tmp_path / "x.db", folder=tmp_path)
    with pytest.raises(TidegateError) as refused:
        source_from_settings(SourceSettings("shop", filled, functions=("app.f",)))
    assert "cannot have `functions`" in refused.value.message


def test_it_does_not_go_with_roles_of_callers() -> None:
    settings = SourceSettings(
        *("shop", "postgresql://db/shop"),
        functions=("app.f",),
        run_as=RunAsSettings(role="reader"),
    )
    with pytest.raises(TidegateError, match=r"functions.*run_as"):
        source_from_settings(settings)


def test_a_function_more_widens_a_source() -> None:
    before = Source("1", "shop", "postgresql://db/shop", "postgres", "postgres")
    after = Source(
        "1", "shop", "postgresql://db/shop", "postgres", "postgres", functions=("app.f",)
    )
    assert widened(before, after) == ("functions",)
    assert widened(after, before) == ()


@pytest.mark.needs("duckdb")
def test_the_doctor_names_what_matches_no_function(notes: Path, tmp_path: Path) -> None:
    settings = tmp_path / "tidegate.toml"
    settings.write_text(
        f'state = "{tmp_path / "state"}"\n[[sources]]\nname = "notes"\nurl = "duckdb:///{notes}"\n'
        'functions = ["main.slugify", "main.slugfy"]\n'
    )
    (tmp_path / "state").mkdir(mode=0o700)
    ended = tidegate("doctor", "--json", "--config", str(settings))
    checks = [each for each in ended.json["checks"] if each["check"] == "source notes"]
    (said,) = [each for each in checks if each["state"] == "fault"]
    assert "`main.slugfy`" in said["text"] and "main.slugify" not in said["text"]
    assert ended.status == 1
    asked = tidegate("query", "--config", str(settings), "notes", "SELECT slugify('AB') AS t")
    assert "ab" in asked.out, asked


@pytest.mark.needs("duckdb")
def test_a_saved_source_takes_it_and_gives_it_back(notes: Path, tmp_path: Path) -> None:
    state = tmp_path / "state"
    url = f"duckdb:///{notes}"
    added = tidegate("source", "add", "notes", url, "--function", "main.slugify", state=state)
    assert added.status == 0, added
    shown = tidegate("source", "show", "notes", "--json", state=state)
    assert shown.json["functions"] == ["main.slugify"]
    cleared = tidegate("source", "update", "notes", "--clear", "functions", state=state)
    assert cleared.status == 0, cleared
    assert tidegate("source", "show", "notes", "--json", state=state).json["functions"] == []
