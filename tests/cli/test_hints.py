"""What an error advises can be followed at the command line, and names what is meant."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from support.command_line import Ended
from tidegate.secrets.redaction import redact

Run = Callable[..., Ended]


def test_a_table_that_is_not_there_is_answered_with_those_that_are(run: Run, towns: Path) -> None:
    refused = run("query", "towns", "SELECT * FROM twons")
    assert refused.status != 0
    assert "Tables there: " in refused.err and "visits" in refused.err
    assert "Search or list" not in refused.err


def test_who_has_no_source_yet_reads_how_to_add_one(run: Run) -> None:
    for words in (("query", "hr", "SELECT 1"), ("tables", "hr"), ("source", "test", "hr")):
        refused = run(*words)
        assert refused.status == 66 and "`tidegate source add NAME URL` adds one." in refused.err


@pytest.mark.parametrize("action", ["show", "edit", "revoke"])
def test_a_token_that_is_not_there_is_answered_with_the_command_that_lists_them(
    run: Run, action: str
) -> None:
    refused = run("token", action, "nobody")
    assert refused.status != 0 and "`tidegate token list` shows their names." in refused.err


def test_a_statement_that_takes_too_long_is_answered_with_an_option_that_exists(
    run: Run, towns: Path
) -> None:
    endless = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT sum(i) FROM n"
    refused = run("query", "towns", endless, "--timeout", "0.2")
    assert refused.status == 75 and "--timeout" in refused.err
    assert run("query", "towns", "SELECT 1", "--timeout", "0").status == 2


def test_a_word_that_takes_something_away_is_no_guess(run: Run) -> None:
    refused = run("source", "remake", "towns", "cities")
    assert refused.status == 2 and "Did you mean rename?" in refused.err
    assert "remove" not in refused.err
    assert "Did you mean remove?" in run("source", "remov", "towns").err


def test_an_option_that_no_command_has_is_not_sent_behind_one(run: Run) -> None:
    assert "There is no option --verbose" in run("--verbose", "source", "list").err
    assert "Write the option --json after the command" in run("--json", "source", "list").err


def test_sources_of_the_settings_are_listed_and_said_where_to_change(
    run: Run, towns: Path, tmp_path: Path
) -> None:
    settings = tmp_path / "tidegate.toml"
    settings.write_text(f'[[sources]]\nname = "more"\nurl = "sqlite:///{towns}"\n')
    settings.chmod(0o600)
    words = ("--config", str(settings))
    listed = run("source", "list", "--json", *words).json["sources"]
    assert [(entry["name"], entry["from"]) for entry in listed] == [
        ("more", "settings"),
        ("towns", "state"),
    ]
    assert "settings" in run("source", "list", *words).out
    refused = run("source", "update", "more", "--tag", "x", *words)
    assert refused.status == 2 and str(settings) in refused.err


@pytest.mark.parametrize(
    "text",
    ["http://127.0.0.1:8765", "on http://127.0.0.1:8765/mcp now", "http://[::1]:8765/mcp/core"],
)
def test_a_port_is_no_password(text: str) -> None:
    assert redact(text) == text


@pytest.mark.parametrize(
    "text",
    [
        "postgresql://me:12345@db/x", "postgresql://me:123/45@db/x", "mysql://me:1?x@db",
        "x://[::1:pw@h", "http://me:8765/x@db", "postgresql://me:123", "postgresql://me:pw@db",
    ],
)  # fmt: skip
def test_a_password_of_digits_is_still_one(text: str) -> None:
    password = text.partition("//")[2].rpartition(":")[2].partition("@")[0]
    assert f":{password}" not in redact(text)
