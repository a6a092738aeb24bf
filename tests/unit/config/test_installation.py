"""What a person types to add an extra, and what a client starts, by how Tidegate was installed."""

from __future__ import annotations

import re
import shutil
import sys
import tomllib
from pathlib import Path

import pytest

from tidegate.config.installation import (
    EXTRAS,
    Installation,
    Kind,
    add_command,
    client_command,
    installation,
    kind_of,
    with_runner,
)
from tidegate.errors import TidegateError
from tidegate.search.embeddings.local_model import LocalModel
from tidegate.store.opening import open_state


@pytest.mark.parametrize(
    ("place", "mark", "kind"),
    [
        (".cache/uv/archive-v0/x1Yz", None, "uvx"),
        (".cache/uv/environments-v2/tidegate-1", None, "uvx"),
        (".local/share/uv/tools/tidegate", "uv-receipt.toml", "uv tool"),
        (".local/share/pipx/venvs/tidegate", "pipx_metadata.json", "pipx"),
        (".cache/pipx/8c1f", None, "pipx run"),
        ("project/.venv", None, "pip"),
    ],
)
def test_an_environment_shows_how_it_was_made(
    tmp_path: Path, place: str, mark: str | None, kind: Kind
) -> None:
    prefix = tmp_path / place
    prefix.mkdir(parents=True)
    if mark is not None:
        (prefix / mark).touch()
    assert kind_of(prefix) == kind


@pytest.mark.parametrize(
    ("kind", "said"),
    [
        ("uvx", "uvx --from 'tidegate[duckdb,postgres]' tidegate doctor"),
        ("pipx run", "pipx run --spec 'tidegate[duckdb,postgres]' tidegate doctor"),
        ("uv tool", "uv tool install --force 'tidegate[duckdb,postgres]'"),
        ("pipx", "pipx install --force 'tidegate[duckdb,postgres]'"),
    ],
)
def test_an_extra_is_added_and_those_that_are_there_are_kept(
    tmp_path: Path, kind: Kind, said: str
) -> None:
    here = Installation(kind, tmp_path, extras=("duckdb",))
    assert here.add_command("postgres") == said


def test_a_program_that_is_not_on_the_path_is_typed_with_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    here = Installation("pipx", tmp_path)
    own = tmp_path / "bin" / "tidegate"
    own.parent.mkdir()
    own.write_text("#!/bin/sh\n")
    own.chmod(0o700)
    other = tmp_path / "other"
    other.mkdir()
    monkeypatch.setenv("PATH", str(other))
    assert here.command_with("mysql", ["tables"]).endswith(f" && {own} tables")
    (other / "tidegate").symlink_to(own)
    assert here.command_with("mysql", ["tables"]).endswith(" && tidegate tables")


def test_a_bundle_has_no_program_to_type(tmp_path: Path) -> None:
    bundle = Path(__file__).parents[3] / "release" / "channels" / "bundle"
    shutil.copy(bundle / "manifest.json", tmp_path)
    assert kind_of(tmp_path / ".venv") == "uvx"


@pytest.mark.parametrize(
    ("on_path", "beside_uv", "in_environment", "kind"),
    [
        (("uvx",), ("uvx",), False, "uvx"),
        (("uvx", "pipx"), ("uvx", "pipx"), False, "uvx"),
        (("pipx",), ("uvx", "pipx"), True, "pipx run"),
        ((), ("uvx", "pipx"), True, "pipx run"),
        ((), ("uvx", "pipx"), False, "uvx"),
        ((), ("uvx",), True, "uvx"),
    ],
)
def test_an_environment_that_pipx_had_uv_make_is_of_pipx(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    on_path: tuple[str, ...],
    beside_uv: tuple[str, ...],
    in_environment: bool,
    kind: Kind,
) -> None:
    for folder, programs in (("path", on_path), ("tools/bin", beside_uv)):
        (tmp_path / folder).mkdir(parents=True)
        for name in programs:
            (tmp_path / folder / name).touch(mode=0o755)
    if in_environment:
        (tmp_path / "tools" / "pyvenv.cfg").touch()
    monkeypatch.setenv("PATH", str(tmp_path / "path"))
    monkeypatch.setenv("UV", str(tmp_path / "tools" / "bin" / "uv"))
    monkeypatch.setattr(sys, "prefix", str(tmp_path / "uv" / "archive-v0" / "x"))
    assert installation().kind == kind


@pytest.mark.parametrize(
    ("run", "text", "typed"),
    [
        ((), "answer it in `tidegate console`", "answer it in `tidegate console`"),
        (("uvx", "tidegate"), "run `tidegate stop`", "run `uvx tidegate stop`"),
        (("uvx", "tidegate"), "tidegate install CLIENT", "uvx tidegate install CLIENT"),
        (
            ("uvx", "--from", "tidegate[duckdb]", "tidegate"),
            "`tidegate stop`, then `tidegate status`",
            "`uvx --from 'tidegate[duckdb]' tidegate stop`, then "
            "`uvx --from 'tidegate[duckdb]' tidegate status`",
        ),
        (
            ("uvx", "tidegate"),
            "the entry `tidegate` of tidegate",
            "the entry `tidegate` of tidegate",
        ),
    ],
)
def test_a_command_is_named_as_it_is_typed_where_nothing_is_installed(
    run: tuple[str, ...], text: str, typed: str
) -> None:
    assert with_runner(text, run) == typed


@pytest.mark.needs("every product")
@pytest.mark.parametrize(
    ("kind", "said"),
    [
        ("uvx", "uvx --from 'tidegate[duckdb,postgres]' tidegate query shop 'SELECT 1'"),
        ("pipx run", "pipx run --spec 'tidegate[duckdb,postgres]' tidegate query shop 'SELECT 1'"),
        (
            "uv tool",
            "uv tool install --force 'tidegate[duckdb,postgres]' && tidegate query shop 'SELECT 1'",
        ),
    ],
)
def test_a_command_with_an_extra_is_whole_and_can_be_pasted(
    tmp_path: Path, kind: Kind, said: str
) -> None:
    here = Installation(kind, tmp_path, extras=("duckdb",))
    assert here.command_with("postgres", ["query", "shop", "SELECT 1"]) == said


def test_every_extra_of_the_package_is_known_and_so_kept() -> None:
    text = (Path(__file__).parents[3] / "pyproject.toml").read_text()
    assert set(EXTRAS) == set(tomllib.loads(text)["project"]["optional-dependencies"])


def test_a_package_that_came_from_a_url_comes_from_there_again(tmp_path: Path) -> None:
    here = Installation("uvx", tmp_path, origin="file:///src/tidegate")
    assert here.requirement(["mysql"]) == "tidegate[mysql] @ file:///src/tidegate"
    made = Installation("pip", tmp_path, origin="file:///src/tidegate", editable=True)
    assert made.add_command("mysql").endswith("-e '/src/tidegate[mysql]'")


def test_a_client_starts_a_program_by_its_absolute_path() -> None:
    program, *words = client_command()
    assert Path(program).is_absolute() and Path(program).exists() and words == []


def test_no_other_module_knows_how_an_extra_is_added() -> None:
    """What a person has to type differs: elsewhere it would be right for some of them alone."""
    source = Path(__file__).parents[3] / "src" / "tidegate"
    knowing = {
        path.relative_to(source).as_posix()
        for path in source.rglob("*.py")
        if re.search(r"\b(?:pip|pipx|uv tool) install", path.read_text("utf-8"))
    }
    assert knowing == {"config/installation.py"}


def test_what_is_missing_is_answered_with_what_a_person_types(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in ("numpy", "tidegate.store.postgres.state"):
        monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(TidegateError, match="the extra `postgres`") as state:
        open_state("postgresql://gate@127.0.0.1:1/gate", tmp_path)
    assert state.value.hint == f"Run: {add_command('postgres')}"
    with pytest.raises(TidegateError, match="the package numpy") as model:
        LocalModel(None)
    assert model.value.hint.endswith(f"run: {add_command('embeddings')}")
