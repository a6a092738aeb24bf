"""What catalogs and clients take is as their own tools want it; the bundle answers a question."""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from external.install import node, node_environment, node_modules, python_of
from support.bridge_host import end_server
from support.command_line import tidegate
from support.package_index import serve_index
from support.stdio_question import ask_program

pytestmark = pytest.mark.needs("every product")

FOR_A_HOST = """
import { readFileSync } from "node:fs";
const [library, extensionPath, userConfig] = process.argv.slice(2);
const { getMcpConfigForManifest } = await import(library);
const manifest = JSON.parse(readFileSync(extensionPath + "/manifest.json", "utf8"));
console.log(JSON.stringify(await getMcpConfigForManifest({
  manifest, extensionPath, systemDirs: {}, userConfig: JSON.parse(userConfig), pathSeparator: "/",
})));
"""
"""What a desktop client starts: the library of the bundles' own makers fills the manifest in."""


def mcpb(*words: str) -> subprocess.CompletedProcess[str]:
    cli = node_modules() / "@anthropic-ai" / "mcpb" / "dist" / "cli" / "cli.js"
    return subprocess.run(
        [str(node()), str(cli), *words], env=node_environment(), stdin=subprocess.DEVNULL,
        capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip


def lint(folder: Path) -> subprocess.CompletedProcess[str]:
    program = python_of("channels").with_name("skillsaw")
    return subprocess.run(
        [str(program), "lint", "--strict", str(folder)], capture_output=True, text=True, timeout=60,
        check=False,
    )  # fmt: skip


@pytest.fixture
def bundle(released: Path, tmp_path: Path) -> Path:
    """The bundle as it was unpacked by the tool of its makers."""
    done = mcpb("unpack", str(released / "tidegate.mcpb"), str(tmp_path / "bundle"))
    assert done.returncode == 0, done.stdout + done.stderr
    return tmp_path / "bundle"


def test_the_description_follows_the_registrys_schema(released: Path, tmp_path: Path) -> None:
    folder = tmp_path / "server"
    folder.mkdir()
    shutil.copy(released / "server.json", folder)
    done = lint(folder)
    assert done.returncode == 0 and "mcp-registry" in done.stdout, done.stdout
    described = json.loads((folder / "server.json").read_text())
    assert described["$schema"].endswith("/2025-12-11/server.schema.json")
    described["packages"][0]["version"] = "^0.1.0"
    (folder / "server.json").write_text(json.dumps(described))
    assert lint(folder).returncode != 0, "the linter sees no mistake"


def test_the_plugin_follows_the_rules_for_plugins_and_skills(plugin: Path) -> None:
    done = lint(plugin)
    assert done.returncode == 0 and "single-plugin" in done.stdout, done.stdout
    (plugin / "skills" / "ask-a-database" / "SKILL.md").write_text("# No header\n")
    assert lint(plugin).returncode != 0, "the linter sees no mistake"


def test_the_bundle_is_valid_and_packs_to_the_same_files(
    released: Path, bundle: Path, tmp_path: Path
) -> None:
    done = mcpb("validate", str(bundle / "manifest.json"))
    assert done.returncode == 0, done.stdout + done.stderr
    packed = tmp_path / "again.mcpb"
    assert mcpb("pack", str(bundle), str(packed)).returncode == 0

    def files(path: Path) -> dict[str, bytes]:
        with zipfile.ZipFile(path) as archive:
            return {name: archive.read(name) for name in archive.namelist()}

    assert files(packed) == files(released / "tidegate.mcpb")


def test_the_bundle_asks_for_a_secret_and_passes_it_by_the_environment(bundle: Path) -> None:
    manifest = json.loads((bundle / "manifest.json").read_text())
    assert manifest["user_config"]["database_url"]["sensitive"] is True
    assert manifest["compatibility"]["platforms"] == ["darwin", "linux"]
    started = _as_a_host_starts_it(bundle, {"database_url": "postgresql://a:geheim@h/d"})
    assert started["command"] == "uv" and "geheim" not in " ".join(started["args"])
    assert started["env"] == {"TIDEGATE_DATABASE_URL": "postgresql://a:geheim@h/d"}


def _as_a_host_starts_it(bundle: Path, given: dict[str, str]) -> dict[str, Any]:
    library = node_modules() / "@anthropic-ai" / "mcpb" / "dist" / "node.js"
    script = bundle.with_name("for-a-host.mjs")
    script.write_text(FOR_A_HOST)
    words = [str(script), library.as_uri(), str(bundle), json.dumps(given)]
    done = subprocess.run(
        [str(node()), *words], env=node_environment(),
        capture_output=True, text=True, timeout=60, check=True,
    )  # fmt: skip
    started: dict[str, Any] = json.loads(done.stdout)
    return started


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Path]:
    (tmp_path / "home").mkdir()
    yield tmp_path / "home"
    end_server(tmp_path / "home" / "state")


@pytest.fixture
def shop(home: Path) -> str:
    """The URL of a database with two rows."""
    with closing(sqlite3.connect(home / "shop.db")) as made, made:
        made.execute("CREATE TABLE items (id INTEGER)")
        made.execute("INSERT INTO items VALUES (1), (2)")
    return f"sqlite:///{home / 'shop.db'}"


@pytest.fixture
def account(released: Path, home: Path) -> Iterator[dict[str, str]]:
    """The environment of an account that has nothing yet, where the index has the release."""
    with serve_index(next(released.glob("*.whl"))) as index:
        variables = {name: os.environ[name] for name in os.environ if not name.startswith("XDG_")}
        yield variables | {
            "HOME": str(home),
            "TIDEGATE_STATE": str(home / "state"),
            "UV_INDEX": index,
            "UV_PYTHON": sys.executable,
            "UV_PYTHON_DOWNLOADS": "never",
        }


def answer_of(words: list[str], variables: dict[str, str]) -> str:
    program = python_of("channels").with_name(words[0])
    return ask_program(
        [str(program), *words[1:]], variables, "SELECT count(*) AS n FROM items", source="shop"
    )


def test_the_bundle_answers_a_question_about_the_database_that_a_person_gave(
    bundle: Path, shop: str, account: dict[str, str]
) -> None:
    started = _as_a_host_starts_it(bundle, {"database_url": shop})
    words = [started["command"], *started["args"]]
    assert "[2]" in answer_of(words, account | started["env"])


def test_the_registrys_description_leads_to_an_answer(
    released: Path, shop: str, account: dict[str, str]
) -> None:
    (package,) = json.loads((released / "server.json").read_text())["packages"]
    words = [package["runtimeHint"]]
    for argument in package["runtimeArguments"]:
        words += [argument["name"], argument["value"]]
    words.append(f"{package['identifier']}@{package['version']}")
    for argument in package["packageArguments"]:
        words += [argument[part] for part in ("name", "value") if part in argument]
    (variable,) = package["environmentVariables"]
    assert variable["isSecret"] is True
    assert "[2]" in answer_of(words, account | {variable["name"]: shop})


def test_the_plugins_entry_answers_about_a_source_that_is_there(
    plugin: Path, home: Path, shop: str, account: dict[str, str]
) -> None:
    assert tidegate("source", "add", "shop", shop, state=home / "state").status == 0
    entry = json.loads((plugin / ".mcp.json").read_text())["mcpServers"]["tidegate"]
    assert "[2]" in answer_of([entry["command"], *entry["args"]], account)
