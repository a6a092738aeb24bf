"""A table that is put into a TOML text and taken out of it: all else stays byte for byte."""

from __future__ import annotations

import json
import re
import tomllib
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tidegate.cli.jsonc import Unreadable
from tidegate.cli.toml_tables import put, read, take

OURS = ("mcp_servers", "tidegate")
ENTRY = {
    "command": "/a b/x",
    "args": ["bridge", '"q"', "\\", "é\x7f"],
    "env": {"A": "1", "b c": ""},
}

WRITTEN = '''\
# Settings of mine
model = "x"   # why
notice = """
[mcp_servers.tidegate]
# no comment
"""
rows = [
  ["a", "]"], # one
  [ '[x]' ],
]

[mcp_servers."other.one"]   # about the other
command = "x"
env = { A = "{" }

# about the profile
[profiles.b]
when = 2026-01-01T00:00:00Z
share = nan
'''


@pytest.mark.parametrize("break_", ["\n", "\r\n"])
def test_a_table_is_added_after_all_else_and_taken_out_again(break_: str) -> None:
    text = WRITTEN.replace("\n", break_)
    filled = put(text, OURS, ENTRY)
    assert filled.startswith(text)
    assert read(filled)["mcp_servers"]["tidegate"] == ENTRY
    assert filled.count(break_) == filled.count("\n")
    assert take(filled, OURS) == text


def test_a_table_is_replaced_where_it_is_and_comments_about_others_stay() -> None:
    ours = put("", OURS, ENTRY)
    text = f"{WRITTEN}\n{ours}\n# about z\n[z]\nk = 1\n"
    changed = put(text, OURS, {"url": "http://x"})
    new = '[mcp_servers.tidegate]\nurl = "http://x"\n'
    assert changed == f"{WRITTEN}\n{new}\n# about z\n[z]\nk = 1\n"
    assert take(text, OURS) == f"{WRITTEN}\n# about z\n[z]\nk = 1\n"


def test_tables_of_one_entry_may_be_apart() -> None:
    text = (
        "[mcp_servers.tidegate]\ncommand = 'x' # ours\n[a]\nk = 1\n# about ours\n"
        "[mcp_servers.tidegate.env]\nA = '1'\n# the end\n"
    )
    assert take(text, OURS) == "[a]\nk = 1\n# about ours\n# the end\n"


@pytest.mark.parametrize(
    "text",
    [
        'mcp_servers = { tidegate = { command = "x" } }\n',
        'mcp_servers.tidegate.command = "x"\n',
        '[mcp_servers]\ntidegate = { command = "x" }\n',
        '[[mcp_servers]]\nname = "tidegate"\n',
        "mcp_servers = 1\n",
        "a = 1\na = 2\n",
        "a = [\n",
        "[a\n",
    ],
)
def test_a_text_in_which_it_cannot_be_replaced_alone_is_refused(text: str) -> None:
    with pytest.raises(Unreadable):
        put(text, OURS, ENTRY)
    with pytest.raises(Unreadable):
        take(text, OURS)


def literal(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007F")


texts = st.text(st.characters(exclude_categories=("Cs",), exclude_characters="\r"), max_size=8)
names = st.from_regex(r"[a-z]{1,3}", fullmatch=True)
comments = st.sampled_from(["", "  # c", " # [x]", ' # "', " # '''"])
blanks = st.lists(
    st.sampled_from(["\n", "  \n", "# about what follows\n", "\t# [z]\n"]), max_size=3
)
values = st.one_of(
    texts.map(literal),
    st.integers(-9, 9).map(str),
    st.sampled_from(["nan", "1.50", "2026-01-01", "{ a = '[' }", "'[b]'", '"""a""""']),
    st.sampled_from(
        [
            "[\n[1],\n# in it\n[2, ]\n]",
            '"""\n[mcp_servers.tidegate]\n"x"\n"""',
            "'''\n[y]\n''a'''",
        ]
    ),
)


@st.composite
def documents(draw: st.DrawFn) -> str:
    """Texts of TOML with tables, comments and blanks anywhere, and all kinds of values."""
    headers = draw(st.lists(st.sampled_from(["mcp_servers", "a", "b.c"]), max_size=4))
    parts = ["".join(draw(blanks))]
    for number, header in enumerate(["", *headers]):
        if header:
            name = draw(st.sampled_from(["", '"x.y"', "tidegates"]))
            parts.append(f"[ {header}.t{number}{name and '.'}{name} ]{draw(comments)}\n")
        for name in draw(st.lists(names, max_size=3, unique=True)):
            parts.append(f"{name} = {draw(values)}{draw(comments)}\n")
            parts += draw(blanks)
    return "".join(parts).removesuffix(draw(st.sampled_from(["", "\n"])))


@settings(max_examples=400, deadline=None)
@given(documents(), st.dictionaries(texts.filter(bool), texts, max_size=2))
def test_whatever_else_a_text_has_stays_byte_for_byte(text: str, env: dict[str, str]) -> None:
    try:
        tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        return
    entry = {"command": "x", "args": ["y"], "env": env}
    ended = text if not text or text.endswith("\n") else f"{text}\n"
    filled = put(text, OURS, entry)
    assert filled.startswith(ended)
    assert tomllib.loads(filled)["mcp_servers"]["tidegate"] == entry
    assert take(filled, OURS) == ended
    # Above other tables, too: what follows it stays, with the comments about it.
    if re.match(r"(\s|#[^\n]*\n)*(\[|\Z)", text):
        above = put("", OURS, entry) + "\n"
        assert take(above + text, OURS) == "\n" + text
        assert put(above + text, OURS, {"url": "u"}) == put("", OURS, {"url": "u"}) + "\n" + text
