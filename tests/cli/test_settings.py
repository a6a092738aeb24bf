"""The settings of `serve` bind the person at the command line as well."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from support.command_line import Ended, environment, serving
from support.eventually import HANG_S

Run = Callable[..., Ended]
NAMES = "SELECT name FROM towns ORDER BY id"
MASKED = {"masks": [{"column": "towns.name"}]}


@pytest.fixture
def settings(tmp_path: Path) -> Callable[..., str]:
    """Write the settings and give their path."""

    def write(**given: Any) -> str:
        path = tmp_path / "tidegate.json"
        path.write_text(json.dumps(given))
        return str(path)

    return write


def test_masks_of_the_settings_bind_a_query(run: Run, towns: Path, settings: Any) -> None:
    path = settings(**MASKED)
    words = ("query", "towns", NAMES, "--json")
    assert run(*words).json["rows"] == [["Köln"], ["京都"], ["Львів"]]
    assert run(*words, "--config", path).json["rows"] == [[None], [None], [None]]


def test_the_settings_of_the_environment_bind_as_well(
    towns: Path, state: Path, settings: Any
) -> None:
    ended = subprocess.run(
        [sys.executable, "-m", "tidegate", "query", "towns", NAMES, "--json"],
        capture_output=True, text=True, encoding="utf-8", timeout=HANG_S, check=False,
        env={**environment(state), "TIDEGATE_CONFIG": settings(**MASKED)},
    )  # fmt: skip
    assert json.loads(ended.stdout)["rows"] == [[None], [None], [None]]


def test_filters_bind_by_the_tag_of_a_saved_source(run: Run, towns: Path, settings: Any) -> None:
    path = settings(filters=[{"table": "towns", "where": "id = 1", "tag": "eu"}])
    words = ("query", "towns", NAMES, "--json", "--config", path)
    assert run(*words).json["row_count"] == 3
    assert run("source", "update", "towns", "--tag", "eu").status == 0
    assert run(*words).json["rows"] == [["Köln"]]


def test_a_source_of_the_settings_is_asked_under_its_own_rules(
    run: Run, database: Path, settings: Any
) -> None:
    there = {"name": "set", "url": f"sqlite:///{database}"}
    path = settings(sources=[{**there, **MASKED}])
    assert run("query", "set", NAMES).status == 66
    assert run("query", "set", NAMES, "--json", "--config", path).json["rows"][0] == [None]
    tested = run("source", "test", "set", "--json", "--config", path)
    assert (tested.status, tested.json["source"]) == (0, "set")
    blocked = settings(sources=[{**there, "access": "none"}])
    for words in (("query", "set", NAMES), ("source", "test", "set")):
        assert run(*words, "--config", blocked).status == 77


def test_the_settings_stand_before_a_saved_source_of_the_name(
    run: Run, towns: Path, settings: Any
) -> None:
    never = {"name": "towns", "url": f"sqlite:///{towns}", "access": "none"}
    assert run("query", "towns", NAMES, "--config", settings(sources=[never])).status == 77


def test_explain_and_judge_look_at_the_same_settings(run: Run, towns: Path, settings: Any) -> None:
    path = settings(**MASKED)
    words = ("explain", "towns", NAMES, "--json", "--config", path)
    assert run(*words).json["masks"] == [["towns.name", "nothing"]]
    safe = {"name": "towns", "url": f"sqlite:///{towns}", "agents": "deny"}
    words = ("judge", "towns", NAMES)
    assert json.loads(run(*words).out)["verdict"] == "allow"
    path = settings(sources=[safe])
    assert json.loads(run(*words, "--config", path).out)["code"] == "policy.blocked"


def test_the_state_is_where_the_settings_say(
    run: Run, towns: Path, state: Path, tmp_path: Path, settings: Any
) -> None:
    path = settings(state=str(tmp_path / "elsewhere"))
    assert run("source", "list", "--json", "--config", path).json["sources"] == []
    words = ("source", "list", "--json", "--config", path, "--state", str(state))
    assert [each["name"] for each in run(*words).json["sources"]] == ["towns"]


@pytest.mark.parametrize(
    "words",
    [
        ("query", "towns", NAMES),
        ("explain", "towns", NAMES),
        ("judge", "towns", NAMES),
        ("source", "test", "towns"),
        ("token", "create", "x", "--scope", "readOnly"),
    ],
)
def test_settings_that_cannot_be_used_let_nothing_through(
    run: Run, towns: Path, settings: Any, words: tuple[str, ...]
) -> None:
    path = settings(maskes=[])
    ended = run(*words, "--config", path)
    assert (ended.status, ended.out) == (78, "")
    assert "`masks`" in ended.err and ended.err.count("\n") == 1
    assert run(*words, "--config", "nowhere.toml").status == 78


def test_a_right_is_taken_away_though_a_source_of_the_settings_is_gone(
    run: Run, settings: Any
) -> None:
    run("token", "create", "laptop", "--scope", "readOnly")
    path = settings(sources=[{"name": "gone", "url": "sqlite:////there/is/none.db"}])
    assert run("token", "revoke", "laptop", "--config", path).status == 0


def test_what_the_person_does_is_on_record_as_the_settings_say(
    run: Run, tmp_path: Path, settings: Any
) -> None:
    anchor = tmp_path / "anchor"
    path = settings(audit={"anchor": str(anchor)})
    assert run("token", "create", "a", "--scope", "readOnly", "--config", path).status == 0
    assert anchor.read_text()


def test_a_server_says_in_its_log_what_holds_only_when_it_starts_again(
    towns: Path, state: Path, settings: Any
) -> None:
    path = settings(surfaces=["core"])
    with serving(("serve", "--config", path), state) as server:
        call = {"name": "query", "arguments": {"sql": NAMES}}
        assert "Köln" in json.dumps(server.ask("tools/call", call), ensure_ascii=False)
        settings(surfaces=["core"], limits={"max_rows": 900}, **MASKED)
        assert "Köln" not in json.dumps(server.ask("tools/call", call), ensure_ascii=False)
        ended = server.ended()
    (line,) = ended.err.splitlines()
    assert "limits.max_rows" in line and "restart" in line


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("sqlite:///{}?mod=ro", "unknown option `mod`. Did you mean `mode`?"),
        ("duckdb:///:memory:?treads=2", "Did you mean `threads`?"),
        ("files://{}?fils=2", "Did you mean `files`?"),
        ("postgresql://me:${{ENV:UNSET}}@db/x?sslmod=require", "Did you mean `sslmode`?"),
        ("postgresql://me@db/x?ssh=me@jump&sslmod=require", "Did you mean `sslmode`?"),
        ("mysql://me@db/x?tls=maybe", "`tls` is one of"),
        ("cloud://{}?page_limt=3", "Did you mean `page_limit`?"),
        ("jdbc:h2:mem:a;FOO=1", "parameter `FOO` is not taken"),
    ],
)
def test_a_check_names_what_an_engine_would_refuse_in_a_url(
    run: Run, database: Path, settings: Any, url: str, said: str
) -> None:
    where = database.parent if url.startswith(("files", "cloud")) else database
    source = {"name": "one", "url": url.format(where)}
    ended = run("config", "check", "--config", settings(sources=[source]))
    assert (ended.status, said in ended.err) == (78, True), ended.err


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://me:${ENV:UNSET}@db:${ENV:PORT}/x?sslmode=require&pool=3",
        "postgresql://me@db/x?ssh=me@jump&sslmode=require",
        "mysql://me@db/x?tls=${ENV:TLS}",
        "mysql://me:${FILE:/absent/pw}@db/x?tls=verify",
    ],
)
def test_a_check_reads_no_secret_and_reaches_no_server(run: Run, settings: Any, url: str) -> None:
    path = settings(sources=[{"name": "one", "url": url}])
    assert run("config", "check", "--config", path).status == 0


def test_a_check_names_limits_of_plans_that_could_not_hold(
    run: Run, database: Path, settings: Any
) -> None:
    for mask in ({"column": "customers.email"}, {"column": "customers.email", "tag": "eu"}):
        for tags, status in (([], 0), (["eu"], 78)):
            source = {"name": "one", "url": f"files://{database.parent}", "max_plan_rows": 9}
            given = {"sources": [{**source, "tags": tags}], "masks": [mask]}
            ended = run("config", "check", "--config", settings(**given))
            expected = status if "tag" in mask else 78
            assert ended.status == expected, ended.err
            assert ("together with masks or filters" in ended.err) == (expected == 78)
    for more, noted in (({}, True), ({"max_plan_rows": 9}, False)):
        source = {"name": "one", "url": "postgresql://db/x", "costly_plans": "ask", **more}
        ended = run("config", "check", "--config", settings(sources=[source]))
        assert (ended.status, "`costly_plans` has no effect" in ended.err) == (0, noted)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"http": "127.0.0.1:0", "tls": {"cert": "a.pem", "key": "a.key"}}, "certificate `a.pem`"),
        ({"token_files": ["absent.txt"]}, "token file `absent.txt`"),
        ({"auth": False, "allow_writes": True}, "(in the settings `auth = false`)"),
        ({"allowed_hosts": ["https://gate.example.com/"]}, "which is no name of a host"),
        ({"allowed_hosts": ["*"]}, "which is no name of a host"),
        ({"allowed_origins": ["*"]}, "which is no origin"),
        ({"allowed_origins": ["https://gate.example.com/app"]}, "which is no origin"),
    ],
)
def test_a_check_names_what_a_server_would_not_start_with_or_never_apply(
    run: Run, settings: Any, given: dict[str, Any], said: str
) -> None:
    ended = run("config", "check", "--config", settings(**given))
    assert (ended.status, said in ended.err) == (78, True), ended.err
    hosts = {"allowed_hosts": ["gate.example.com", "Gate.example.com:8443", "[fd00::7]:80"]}
    origins = {"allowed_origins": ["https://gate.example.com:8443/", "vscode-webview://a1"]}
    assert run("config", "check", "--config", settings(**hosts, **origins)).status == 0


def test_a_console_without_an_address_is_named_when_the_server_starts(
    run: Run, settings: Any
) -> None:
    ended = run("serve", "--config", settings(console={"enabled": True}))
    assert (ended.status, "`console.enabled` has no effect" in ended.err) == (0, True)
