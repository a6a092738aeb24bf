"""What the documents show of commands and settings is taken as it is written, also where a guide
needs more than a test has, such as a model's server."""

from __future__ import annotations

import re
import shlex
import tomllib
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from tidegate.cli.parser import build
from tidegate.config.loading import load
from tidegate.products.pgedge.surface.prompts import check_prompts
from tidegate.products.pgedge.surface.settings import PostgresSettings
from tidegate.products.pgedge.text_to_sql.knowledge import read_knowledge

pytestmark = pytest.mark.needs("every product")
ROOT = Path(__file__).parents[2]
DOCUMENTS = sorted([ROOT / "README.md", *(ROOT / "docs").glob("*/*.md")])
_FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
_COMMAND = re.compile(r"^(?:\$ | {4})?(tidegate (?!:).*)$")
_OTHERS = ("[mcp_servers", "[queries.")
"""What is in TOML that is no setting of ours: of clients, and of fixtures."""


def commands(text: str) -> Iterator[str]:
    """The commands in fenced and indented code, with the lines that continue them."""
    shown = [body for word, body in _FENCE.findall(text) if word in ("sh", "console", "bash")]
    indented = [line for line in _FENCE.sub("", text).splitlines() if line.startswith("    ")]
    for body in (*shown, "\n".join(indented)):
        lines = iter(re.sub(r"\\\n\s*(?:> )?", " ", body).splitlines())
        for line in lines:
            found = _COMMAND.match(line)
            if found is None:
                continue
            command = found[1]
            while not _is_closed(command) and (more := next(lines, None)) is not None:
                command += "\n" + more.removeprefix("> ")
            yield command


def _is_closed(command: str) -> bool:
    try:
        return bool(shlex.split(command))
    except ValueError:
        return False


def words(command: str) -> list[str]:
    """The arguments of a command, up to what the shell does with it."""
    lexer = shlex.shlex(command, posix=True, punctuation_chars=True)
    lexer.wordchars += "$@+%^{}[]!:,\\"
    found: list[str] = []
    for word in lexer:
        if set(word) <= set("|&;<>()"):
            return found[1:-1] if word[0] == ">" and found[-1] in ("1", "2") else found[1:]
        found.append(word)
    return found[1:]


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_each_command_of_a_document_is_one(document: Path) -> None:
    parser = build()
    for command in commands(document.read_text("utf-8")):
        try:
            parser.parse_args(words(command))
        except SystemExit as ended:
            assert ended.code == 0, command


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_each_setting_of_a_document_is_taken(document: Path, tmp_path: Path) -> None:
    for word, body in _FENCE.findall(document.read_text("utf-8")):
        if word != "toml" or any(name in body for name in _OTHERS):
            continue
        shown = tomllib.loads(body)
        if "text" in shown:
            (tmp_path / "prompt.toml").write_text(body)
            check_prompts(PostgresSettings(prompts=str(tmp_path)))
        else:
            settings = msgspec.json.encode(shown).decode()
            if "ship" in shown or "webhook" in shown.get("approvals", {}):  # from a file alone
                (tmp_path / "settings.json").write_text(settings)
                settings = str(tmp_path / "settings.json")
            load(settings)


def test_the_knowledge_file_of_the_guide_is_one(tmp_path: Path) -> None:
    guide = (ROOT / "docs" / "howto" / "ask-questions.md").read_text("utf-8")
    (body,) = [body for word, body in _FENCE.findall(guide) if word == "yaml"]
    path = tmp_path / "shop.yaml"
    path.write_text(body)
    assert read_knowledge(str(path)).table("public", "orders") is not None
