"""The extras that an entry of a runner names are read, and stay when it is written again."""

from __future__ import annotations

from typing import Any

import pytest

from tidegate.cli.requirement_extras import keep_extras, named_extras


@pytest.mark.parametrize(
    ("words", "named"),
    [
        (["/bin/uvx", "--from", "tidegate[postgres]", "tidegate", "bridge"], {"postgres"}),
        (["/bin/uvx", "--from", "tidegate", "tidegate", "bridge"], set()),
        (["uvx", "tidegate", "bridge"], set()),
        (["uvx", "--with", "tidegate[duckdb, mysql]==0.1.0", "tidegate"], {"duckdb", "mysql"}),
        (["pipx", "run", "--spec", "tidegate[jdbc] @ file:///src", "tidegate"], {"jdbc"}),
        (["/home/a/.venv/bin/tidegate", "bridge"], None),
        ([], None),
    ],
)
def test_extras_are_read(words: list[str], named: set[str] | None) -> None:
    assert named_extras(words) == named


def entry(requirement: str, *more: str, **fields: Any) -> dict[str, Any]:
    words = ["--from", requirement, "tidegate", "bridge", *more]
    return {"type": "stdio", "command": "/bin/uvx", "args": words, **fields}


def test_an_entry_that_differs_in_extras_alone_keeps_those_that_it_had() -> None:
    kept = keep_extras(entry("tidegate[mysql]"), entry("tidegate[postgres]"))
    assert kept == entry("tidegate[mysql,postgres]")
    assert keep_extras(entry("tidegate"), entry("tidegate[mysql]")) == entry("tidegate[mysql]")
    assert keep_extras(entry("tidegate[mysql]"), entry("tidegate==1")) is None


def test_the_program_of_that_name_gets_no_extras() -> None:
    kept = keep_extras(entry("tidegate[mysql]"), entry("tidegate"))
    assert kept is not None and kept["args"][2:] == ["tidegate", "bridge"]


@pytest.mark.parametrize(
    "other",
    [entry("tidegate", "--scope", "readOnly"), entry("tidegate", env={"A": "b"}), None, "text"],
)
def test_an_entry_that_differs_in_more_is_another(other: Any) -> None:
    assert keep_extras(other, entry("tidegate[mysql]")) is None


def test_the_command_may_be_one_array() -> None:
    def array(requirement: str) -> dict[str, Any]:
        return {"command": ["/bin/uvx", "--from", requirement, "tidegate", "bridge"]}

    kept = keep_extras(array("tidegate[a]"), array("tidegate[b]"))
    assert kept == array("tidegate[a,b]")
