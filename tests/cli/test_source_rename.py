"""`tidegate source rename`: what follows the new name, and what refuses it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from support.command_line import Ended

Run = Callable[..., Ended]


def names(run: Run) -> list[str]:
    return [entry["name"] for entry in run("source", "list", "--json").json["sources"]]


def test_a_renamed_source_answers_under_its_new_name_alone(run: Run, towns: Path) -> None:
    run("source", "update", "towns", "--mask", "towns.name=nothing", "--tag", "eu")
    create = ("token", "create", "ann", "--scope", "readOnly", "--source", "towns")
    assert run(*create, "--table", "towns:towns").status == 0
    renamed = run("source", "rename", "towns", "cities")
    assert (renamed.status, renamed.out) == (0, "")
    assert "renamed towns to cities" in renamed.err and "ann" in renamed.err
    (entry,) = run("source", "list", "--json").json["sources"]
    assert (entry["name"], entry["tags"]) == ("cities", ["eu"])
    assert [mask["column"] for mask in entry["masks"]] == ["towns.name"]
    (token,) = run("token", "list", "--json").json["tokens"]
    assert (token["sources"], token["tables"]) == (["cities"], ["cities:towns"])
    assert "1" in run("query", "cities", "SELECT count(*) FROM towns WHERE id = 1").out
    assert run("query", "towns", "SELECT 1").status != 0
    assert '"source.renamed"' in run("audit", "tail", "--json").out


def test_the_old_name_can_be_given_again(run: Run, towns: Path) -> None:
    assert run("source", "rename", "towns", "cities").status == 0
    assert run("source", "add", "towns", f"sqlite:///{towns}").status == 0
    assert names(run) == ["cities", "towns"]


@pytest.mark.parametrize("new", ["towns", "a b", "", "taken"])
def test_a_name_that_cannot_be_given_changes_nothing(run: Run, towns: Path, new: str) -> None:
    run("source", "add", "taken", f"sqlite:///{towns}")
    before = run("source", "list", "--json").json
    ended = run("source", "rename", "towns", new)
    assert ended.status in (2, 78) and ended.err.count("\n") == 1
    assert run("source", "list", "--json").json == before


def test_a_token_that_names_the_new_name_refuses_it(run: Run, towns: Path) -> None:
    words = ("token", "create", "bob", "--scope", "readOnly", "--source", "cities")
    assert run(*words, "--allow-unknown").status == 0
    ended = run("source", "rename", "towns", "cities")
    assert ended.status == 2 and "bob" in ended.err
    assert names(run) == ["towns"]


def test_an_unknown_source_is_not_renamed_and_the_nearest_is_named(run: Run, towns: Path) -> None:
    ended = run("source", "rename", "town", "cities")
    assert ended.status != 0 and "towns" in ended.err
    assert names(run) == ["towns"]


def test_a_source_of_the_settings_is_renamed_there(run: Run, towns: Path, tmp_path: Path) -> None:
    settings = tmp_path / "tidegate.toml"
    settings.write_text(f'[[sources]]\nname = "cities"\nurl = "sqlite:///{towns}"\n')
    settings.chmod(0o600)
    ended = run("source", "rename", "towns", "cities", "--config", str(settings))
    assert ended.status == 2 and str(settings) in ended.err
    assert names(run) == ["towns"]


@pytest.mark.parametrize(
    "setting",
    [
        '[language.sources.towns]\nshare = "names"\n',
        '[bridge]\nsources = ["towns"]\n',
        '[bridge]\ntables = ["cities:towns"]\n',
        '[[embeddings.columns]]\nsource = "cities"\ncolumn = "towns.name"\n',
        '[surface.postgres]\nsource = "towns"\n',
    ],
)
def test_a_source_that_the_settings_name_keeps_its_name(
    run: Run, towns: Path, tmp_path: Path, setting: str
) -> None:
    settings = tmp_path / "tidegate.toml"
    settings.write_text(setting)
    settings.chmod(0o600)
    ended = run("source", "rename", "towns", "cities", "--config", str(settings))
    assert ended.status == 2 and str(settings) in ended.err, ended.err
    assert names(run) == ["towns"]
