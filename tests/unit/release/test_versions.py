"""A release has one version, in every file that names it, and one name of the server."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from release import Refusal
from release.versions import check_versions, versions

from support.documents import ROOT

FILES = (
    "pyproject.toml", "README.md", "CHANGELOG.md", "src/tidegate/__init__.py",
    "release/channels/server.json", "release/channels/bundle/manifest.json",
    "release/channels/bundle/pyproject.toml", "release/channels/plugin/.mcp.json",
    "release/channels/plugin/.claude-plugin/plugin.json",
)  # fmt: skip


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    for name in FILES:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(ROOT / name, tmp_path / name)
    return tmp_path


def test_the_files_of_this_tree_agree(tree: Path) -> None:
    check_versions(tree)


@pytest.mark.parametrize(
    ("file", "old", "new"),
    [
        ("src/tidegate/__init__.py", '__version__ = "', '__version__ = "9.'),
        ("CHANGELOG.md", "\n## ", "\n## 9."),
        ("release/channels/server.json", '"version": "', '"version": "9.'),
        ("release/channels/server.json", "]==", "]==9."),
        ("release/channels/bundle/manifest.json", '"version": "', '"version": "9.'),
        ("release/channels/bundle/pyproject.toml", '\nversion = "', '\nversion = "9.'),
        ("release/channels/bundle/pyproject.toml", "]==", "]==9."),
        ("release/channels/plugin/.claude-plugin/plugin.json", '"version": "', '"version": "9.'),
        ("release/channels/plugin/.mcp.json", "]==", "]==9."),
    ],
)
def test_one_file_with_another_version_is_named(tree: Path, file: str, old: str, new: str) -> None:
    path = tree / file
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new, 1))
    with pytest.raises(Refusal, match=r"has the version 9\.") as refused:
        check_versions(tree)
    assert Path(file).name in str(refused.value)


def test_every_package_of_the_description_has_the_version(tree: Path) -> None:
    path = tree / "release" / "channels" / "server.json"
    text = path.read_text()
    first = text.index('"version": "') + 1
    path.write_text(text[:first] + text[first:].replace('"version": "', '"version": "9.', 1))
    with pytest.raises(Refusal, match=r"server\.json"):
        check_versions(tree)


def test_every_channel_brings_the_same_drivers(tree: Path) -> None:
    path = tree / "release" / "channels" / "plugin" / ".mcp.json"
    path.write_text(path.read_text().replace("excel,", ""))
    with pytest.raises(Refusal, match="bring different drivers: "):
        check_versions(tree)


def test_the_readme_names_the_server_as_its_description_does(tree: Path) -> None:
    readme = tree / "README.md"
    readme.write_text(readme.read_text().replace("mcp-name: ", "mcp-name: other."))
    with pytest.raises(Refusal, match="mcp-name: other"):
        check_versions(tree)


def test_no_file_that_names_the_version_is_left_out(tree: Path) -> None:
    named = {Path(name).name for name, _ in versions(tree)} | {"pyproject.toml"}
    with_version = {
        path.name
        for path in (ROOT / "release" / "channels").rglob("*")
        if path.suffix in (".json", ".toml") and "0.1.0" in path.read_text("utf-8")
    }
    assert with_version <= named
