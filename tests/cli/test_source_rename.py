"""`tidegate source rename`: what follows the new name, and what refuses it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from support.command_line import Ended
from support.terminal import terminal

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
        pytest.param(
            '[language.sources.towns]\nshare = "names"\n', marks=pytest.mark.needs("pgedge")
        ),
        '[bridge]\nsources = ["towns"]\n',
        '[bridge]\ntables = ["cities:towns"]\n',
        '[[embeddings.columns]]\nsource = "cities"\ncolumn = "towns.name"\n',
        pytest.param('[surface.postgres]\nsource = "towns"\n', marks=pytest.mark.needs("pgedge")),
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


def test_kept_passwords_follow_the_new_name(run: Run, state: Path) -> None:
    url = "postgresql://ann@127.0.0.1:1/shop"
    keep(run, state, "shop", url, "s3cret")
    keep(run, state, "shop.eu", url, "0ther")
    folder = state / "passwords"
    (folder / "shop.shop_reader.0a0b0c0d").write_text("of the account")
    renamed = run("source", "rename", "shop", "store")
    assert renamed.status == 0, renamed.err
    listed = {each["name"]: each["url"] for each in run("source", "list", "--json").json["sources"]}
    kept = {path.name.rpartition(".")[0]: path for path in folder.iterdir()}
    assert sorted(kept) == ["shop.eu", "store", "store.shop_reader"]
    assert {kept[name].stat().st_mode & 0o077 for name in ("store", "store.shop_reader")} == {0}
    assert listed["store"] == url.replace("ann@", f"ann:${{FILE:{kept['store']}}}@")
    assert str(kept["shop.eu"]) in listed["shop.eu"]
    texts = [kept[name].read_text() for name in sorted(kept)]
    assert texts == ["0ther", "s3cret", "of the account"]
    assert "s3cret" not in renamed.out + renamed.err


def test_a_rename_that_is_refused_leaves_the_kept_password(run: Run, state: Path) -> None:
    url = "postgresql://ann@127.0.0.1:1/shop"
    for name in ("shop", "taken"):
        keep(run, state, name, url, "s3cret")
    before = sorted((state / "passwords").iterdir()), run("source", "list", "--json").json
    assert run("source", "rename", "shop", "taken").status != 0
    assert run("source", "rename", "shop", "new", stdin="").status != 0
    assert (sorted((state / "passwords").iterdir()), run("source", "list", "--json").json) == before


def keep(run: Run, state: Path, name: str, url: str, password: str) -> None:
    """Save a source that cannot be reached, with a password that was typed."""
    with terminal(["source", "add", name, url, "--ask-password", "--anyway"], state) as person:
        person.until("Password of ann")
        person.type(password)
        if (state / "passwords").exists() and name != "shop":
            person.until("agree: ")
            person.type("add")
        assert person.end() == 0, person.said
