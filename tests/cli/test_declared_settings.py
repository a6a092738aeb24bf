"""A setting of a source is declared once, and works wherever settings are used."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import tidegate
from support.command_line import environment
from tidegate.model.source_settings import source_settings

SOURCE = Path(tidegate.__file__).parent
ROOT = SOURCE.parents[1]
DECLARED = '''
    zeal: Annotated[
        Literal["calm", "keen"],
        Setting(
            meaning="how keen it is", grants_more="a later word", limit={"keen": "keenly at that"}
        ),
    ] = "calm"
    most_boats: Annotated[
        int | None,
        Setting(
            meaning="how many boats there are", grants_more="a higher number", value="N",
            limit="at most {} boats",
        ),
    ] = None
    harbours: Annotated[
        tuple[str, ...],
        Setting(
            meaning="harbours that it may enter", grants_more="an added entry", option="harbour",
            value="HARBOUR", common=True,
        ),
    ] = ()
    """They are in the north."""
'''
GIVEN: dict[str, Any] = {"zeal": "keen", "most_boats": 7, "harbours": ["hull", "leith"]}
SCRIPT = """
import importlib.util, json, sys
from pathlib import Path

import msgspec

from tidegate.config.model import Config
from tidegate.gateway.configured_sources import source_from_settings
from tidegate.model.source_settings import limits_of
from tidegate.model.sources import Source
from tidegate.policy.widening import widened

spec = importlib.util.spec_from_file_location("generate", sys.argv[1])
generate = importlib.util.module_from_spec(spec)
spec.loader.exec_module(generate)
given = json.loads(sys.argv[2])
read = msgspec.convert({"sources": [{"name": "a", "url": "sqlite://", **given}]}, Config)
source = source_from_settings(read.sources[0])
plain = Source(source.id, source.name, source.url, source.engine, source.dialect, ephemeral=True)
print(json.dumps({
    "of a file": {name: getattr(source, name) for name in given},
    "limits": limits_of(source),
    "wider": widened(plain, source),
    "narrower": widened(source, plain),
    "settings.md": generate.settings(),
    "cli.md": generate.command_line(),
}))
"""


@pytest.fixture
def declared(tmp_path: Path) -> dict[str, str]:
    """The environment of a Tidegate with three settings more, which are declared and no more."""
    package = tmp_path / "declared" / "tidegate"
    (package / "model").mkdir(parents=True)
    for inner, names in ((package, SOURCE), (package / "model", SOURCE / "model")):
        for path in names.iterdir():
            if not (inner / path.name).exists() and path.name != "__pycache__":
                (inner / path.name).symlink_to(path)
    declaration = package / "model" / "source_settings.py"
    text = declaration.read_text("utf-8")
    declaration.unlink()
    head, start, rest = text.partition("    tags: Annotated[")
    declaration.write_text(f"{head}{DECLARED}{start}{rest}", "utf-8")
    paths = [str(package.parent), os.environ.get("PYTHONPATH", "")]
    return environment(tmp_path / "state") | {"PYTHONPATH": os.pathsep.join(filter(None, paths))}


def ran(*words: str, env: dict[str, str], status: int = 0) -> str:
    done = subprocess.run(
        [sys.executable, *words], env=env, capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == status, done.stdout[-2000:] + done.stderr[-2000:]
    return done.stdout + done.stderr


def test_a_setting_that_is_only_declared_is_saved_recorded_cleared_and_asked_about(
    declared: dict[str, str],
) -> None:
    def source(*words: str, status: int = 0) -> str:
        return ran("-m", "tidegate", "source", *words, env=declared, status=status)

    options = ("--zeal", "keen", "--most-boats", "7", "--harbour", "hull", "--harbour", "leith")
    source("add", "shop", "sqlite://", *options)
    saved = json.loads(source("show", "shop", "--json"))
    assert {name: saved[name] for name in GIVEN} == GIVEN
    shown = source("show", "shop")
    assert [name for name in GIVEN if name not in shown] == []
    source("update", "shop", "--zeal", "calm", "--most-boats", "5", "--clear", "harbours")
    saved = json.loads(source("show", "shop", "--json"))
    assert [saved[name] for name in GIVEN] == ["calm", 5, []]
    for words in (("--zeal", "keen"), ("--most-boats", "none"), ("--harbour", "hull")):
        assert "widen" in source("update", "shop", *words, status=77)
    assert json.loads(source("show", "shop", "--json")) == saved
    lines = ran("-m", "tidegate", "audit", "tail", "--json", env=declared)
    noted = [line for line in lines.splitlines() if '"source.added"' in line]
    assert len(noted) == 1
    for name, text in {"zeal": "keen", "most_boats": "7", "harbours": "2"}.items():
        assert json.dumps({name: text})[1:-1].replace(": ", ":") in noted[0].replace(": ", ":")


def test_a_setting_that_is_only_declared_is_read_judged_and_in_the_reference(
    declared: dict[str, str],
) -> None:
    generate = str(ROOT / "docs" / "reference" / "generate.py")
    found = json.loads(ran("-c", SCRIPT, generate, json.dumps(GIVEN), env=declared))
    assert found["of a file"] == GIVEN
    assert found["limits"] == [["zeal", "keenly at that"], ["most_boats", "at most 7 boats"]]
    assert (found["wider"], found["narrower"]) == (["zeal", "harbours"], ["most_boats"])
    for row in (
        '| `sources[].zeal` | `calm` or `keen` | `"calm"` | How keen it is. |',
        "| `sources[].most_boats` | whole number, or none | none | How many boats there are. |",
        "| `sources[].harbours` | list of text | `[]` | Harbours that it may enter. They are in"
        " the north. |",
    ):
        assert row in found["settings.md"]
    for row in (
        "| `--zeal calm\\|keen` | how keen it is (default: calm) |",
        "| `--most-boats N` | how many boats there are; none removes the limit |",
        "| `--harbour HARBOUR` | harbours that it may enter; may be repeated |",
    ):
        assert row in found["cli.md"]


def test_each_setting_is_explained_and_the_default_is_one_of_its_words() -> None:
    for setting in source_settings():
        assert setting.about.meaning and not setting.about.meaning.endswith("."), setting.name
        assert setting.form != "words" or setting.default in setting.words, setting.name
        assert set(setting.about.limit) <= set(setting.words) or isinstance(
            setting.about.limit, str
        )
