"""`tidegate install`: the entry is there, and all else in a client's settings is as it was."""

from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from support.command_line import Ended, environment, tidegate
from support.eventually import HANG_S
from support.terminal import terminal
from tidegate.cli.jsonc import Text, Unreadable, put, take

Install = Callable[..., Ended]

WRITTEN = """\
// Servers of this project
{
    "inputs": [], // asked once
    "servers": {
        // the files, "quoted" // twice
        "files": { "type": "stdio", "command": "files", "args": ["a,b", "}"], }, /* keep */
    },
}
"""


@pytest.fixture
def home(tmp_path: Path) -> Path:
    path = tmp_path / "home"
    path.mkdir()
    return path


@pytest.fixture
def project(tmp_path: Path) -> Path:
    path = tmp_path / "project"
    path.mkdir()
    return path


@pytest.fixture
def install(home: Path, project: Path, state: Path) -> Install:
    """Run `tidegate install` as a person with this home, in this project."""

    def run(*words: str) -> Ended:
        ours = ("CONFIG", "CODEX_HOME", "COPILOT_HOME")
        kept = {
            name: value
            for name, value in environment(state).items()
            if not any(word in name for word in ours)
        }
        return tidegate("install", *words, cwd=project, variables={**kept, "HOME": str(home)})

    return run


def entry_in(path: Path, key: str = "mcpServers", name: str = "tidegate") -> dict[str, Any]:
    return json.loads(path.read_text("utf-8"))[key][name]


@pytest.mark.skipif(sys.platform != "linux", reason="paths of Linux")
@pytest.mark.parametrize(
    ("words", "place", "key"),
    [
        (["claude-code"], "home/.claude.json", "mcpServers"),
        (["claude-code", "--scope", "project"], "project/.mcp.json", "mcpServers"),
        (["claude-desktop"], "home/.config/Claude/claude_desktop_config.json", "mcpServers"),
        (["cursor"], "home/.cursor/mcp.json", "mcpServers"),
        (["cursor", "--scope", "project"], "project/.cursor/mcp.json", "mcpServers"),
        (["vscode"], "project/.vscode/mcp.json", "servers"),
        (["vscode", "--scope", "user"], "home/.config/Code/User/mcp.json", "servers"),
        (["gemini"], "home/.gemini/settings.json", "mcpServers"),
        (["gemini", "--scope", "project"], "project/.gemini/settings.json", "mcpServers"),
        (["copilot"], "home/.copilot/mcp-config.json", "mcpServers"),
        (["copilot", "--scope", "project"], "project/.github/mcp.json", "mcpServers"),
        (["windsurf"], "home/.codeium/windsurf/mcp_config.json", "mcpServers"),
        (["zed"], "home/.config/zed/settings.json", "context_servers"),
        (["junie"], "home/.junie/mcp/mcp.json", "mcpServers"),
        (["junie", "--scope", "project"], "project/.junie/mcp/mcp.json", "mcpServers"),
    ],
    ids=lambda value: "-".join(value) if isinstance(value, list) else None,
)
def test_the_entry_is_where_the_client_looks_and_starts_the_bridge(
    install: Install, tmp_path: Path, words: list[str], place: str, key: str
) -> None:
    assert install(*words).status == 0
    entry = entry_in(tmp_path / place, key)
    assert Path(entry["command"]).is_absolute()
    assert os.access(entry["command"], os.X_OK)
    assert entry["args"] == ["bridge", "--state", str(tmp_path / "state")]


@pytest.mark.parametrize(
    ("words", "place"),
    [
        (["codex"], "home/.codex/config.toml"),
        (["codex", "--scope", "project"], "project/.codex/config.toml"),
    ],
)
def test_the_entry_of_codex_is_a_table_of_toml(
    install: Install, tmp_path: Path, words: list[str], place: str
) -> None:
    path = tmp_path / place
    path.parent.mkdir()
    path.write_text('model = "x" # mine\n\n[mcp_servers.other]\ncommand = "y"\n# the end\n')
    before = path.read_text()
    assert install(*words).status == 0
    assert path.read_text().startswith(before)
    entry = tomllib.loads(path.read_text())["mcp_servers"]["tidegate"]
    assert os.access(entry["command"], os.X_OK)
    assert entry["args"] == ["bridge", "--state", str(tmp_path / "state")]
    assert install(*words, "--http", "https://g.example/mcp", "--force").status == 0
    entry = tomllib.loads(path.read_text())["mcp_servers"]["tidegate"]
    assert entry == {"url": "https://g.example/mcp"}
    assert install(*words, "--remove").status == 0
    assert path.read_text() == before


@pytest.mark.parametrize(
    ("file", "text", "key"),
    [
        ("opencode.json", None, ["mcp"]),
        ("opencode.jsonc", '{ "mcp": {} /* mine */ }', ["mcp"]),
        ("opencode.jsonc", '{ "mcp": { "servers": {} } /* mine */ }', ["mcp", "servers"]),
    ],
)
def test_the_entry_of_opencode_is_in_the_file_and_form_that_it_has(
    install: Install, home: Path, file: str, text: str | None, key: list[str]
) -> None:
    path = home / ".config" / "opencode" / file
    if text is not None:
        path.parent.mkdir(parents=True)
        path.write_text(text)
    assert install("opencode").status == 0
    (there,) = [each for each in path.parent.iterdir() if not each.name.endswith(".bak")]
    read = Text(there.read_text())
    entries = read.value(read.begin)
    for name in key:
        entries = entries[name]
    entry = entries["tidegate"]
    assert (there.name, entry["type"], entry["command"][1]) == (file, "local", "bridge")
    assert install("opencode", "--remove").status == 0
    assert text is None or path.read_text() == text


def test_what_the_entry_starts_answers(install: Install, home: Path, state: Path) -> None:
    assert install("claude-code", "--stdio", "--surface", "core").status == 0
    entry = entry_in(home / ".claude.json")
    ping = '{"jsonrpc":"2.0","id":1,"method":"ping"}\n'
    ended = subprocess.run(
        [entry["command"], *entry["args"]],
        input=ping, capture_output=True, text=True, env=environment(state), timeout=HANG_S,
        check=False,
    )  # fmt: skip
    assert json.loads(ended.stdout)["id"] == 1


def test_a_second_time_changes_nothing(install: Install, home: Path) -> None:
    install("cursor")
    path = home / ".cursor" / "mcp.json"
    before = (path.read_bytes(), path.stat().st_ino)
    ended = install("cursor")
    assert ended.status == 0
    assert "already" in ended.out
    assert (path.read_bytes(), path.stat().st_ino) == before


def test_comments_and_commas_stay_where_they_are(install: Install, project: Path) -> None:
    path = project / ".vscode" / "mcp.json"
    path.parent.mkdir()
    path.write_text(WRITTEN)
    assert install("vscode").status == 0
    text = path.read_text()
    same = next(at for at, (new, old) in enumerate(zip(text, WRITTEN, strict=False)) if new != old)
    assert text.endswith(WRITTEN[same:]), "something other than one insertion"
    servers = Text(text).value(text.index("{"))["servers"]
    assert list(servers) == ["files", "tidegate"]
    assert install("vscode", "--remove").status == 0
    assert path.read_text() == WRITTEN


def test_the_file_as_it_was_is_kept_beside_it(install: Install, home: Path) -> None:
    path = home / ".claude.json"
    path.write_text('{"numStartups": 7, "mcpServers": {"other": {"command": "x"}}}')
    before = path.read_bytes()
    assert install("claude-code").status == 0
    assert path.with_name(".claude.json.tidegate.bak").read_bytes() == before
    after = json.loads(path.read_text())
    assert after.pop("numStartups") == 7
    assert after["mcpServers"]["other"] == {"command": "x"}
    assert set(after["mcpServers"]) == {"other", "tidegate"}


def test_the_file_keeps_its_mode(install: Install, home: Path) -> None:
    path = home / ".claude.json"
    path.write_text("{}")
    path.chmod(0o640)
    install("claude-code")
    modes = {stat.S_IMODE(p.stat().st_mode) for p in (path, home / ".claude.json.tidegate.bak")}
    assert modes == {0o640}


def test_a_symbolic_link_stays_one(install: Install, home: Path, tmp_path: Path) -> None:
    real = tmp_path / "dotfiles.json"
    real.write_text("{}")
    (home / ".claude.json").symlink_to(real)
    assert install("claude-code").status == 0
    assert (home / ".claude.json").is_symlink()
    assert entry_in(real)["args"][0] == "bridge"


@pytest.mark.parametrize(
    "text",
    [
        '{"mcpServers": {}',
        '{"mcpServers": []}',
        "[]",
        "{'mcpServers': {}}",
        '{"mcpServers": {}, "mcpServers": {}}',
        '{"a": 1 "b": 2}',
        '{"a": /* {}',
        "{} {}",
        '{"a": 01}',
        "[" * 5_000,
    ],
)
def test_a_file_that_is_not_understood_is_left_as_it_is(
    install: Install, home: Path, text: str
) -> None:
    path = home / ".claude.json"
    path.write_text(text)
    for words in ([], ["--remove"], ["--force"]):
        ended = install("claude-code", *words)
        assert (ended.status, ended.out) == (65, "")
        assert ended.err.count("\n") == 1
        assert "nothing was changed" in ended.err
    assert path.read_text() == text
    assert [p.name for p in home.iterdir()] == [".claude.json"]


@pytest.mark.parametrize(
    ("text", "words", "why"),
    [
        ("mcp_servers = {a = {command = 'x'}}\n", [], "`mcp_servers` has no header"),
        ("mcp_servers.tidegate.command = 'x'\n", ["--force"], "`tidegate` has no header"),
        ("mcp_servers.tidegate.command = 'x'\n", ["--remove"], "`tidegate` has no header"),
    ],
)
def test_a_file_in_which_the_entry_cannot_be_changed_alone_is_not_called_wrong(
    install: Install, home: Path, text: str, words: list[str], why: str
) -> None:
    path = home / ".codex" / "config.toml"
    path.parent.mkdir()
    path.write_text(text)
    ended = install("codex", *words)
    assert (ended.status, path.read_text()) == (65, text)
    assert why in ended.err and "nothing was changed" in ended.err
    assert "parsed" not in ended.err and "Correct" not in ended.err


def test_another_entry_of_that_name_needs_force(install: Install, home: Path) -> None:
    path = home / ".claude.json"
    path.write_text('{"mcpServers": {"tidegate": {"command": "mine"}}}')
    ended = install("claude-code")
    assert ended.status == 2
    assert "--force" in ended.err
    assert entry_in(path) == {"command": "mine"}
    assert install("claude-code", "--force").status == 0
    assert entry_in(path)["args"][0] == "bridge"


def test_printing_writes_nothing(install: Install, home: Path, project: Path) -> None:
    ended = install("vscode", "--print", "--name", "shop")
    assert ended.json["servers"]["shop"]["args"][0] == "bridge"
    assert [*home.iterdir(), *project.iterdir()] == []


@pytest.mark.parametrize(
    ("client", "reference"),
    [
        ("claude-code", "${SHOP_TOKEN}"),
        ("copilot", "${SHOP_TOKEN}"),
        ("cursor", "${env:SHOP_TOKEN}"),
        ("gemini", "${SHOP_TOKEN}"),
        ("opencode", "{env:SHOP_TOKEN}"),
        ("vscode", "${env:SHOP_TOKEN}"),
        ("windsurf", "${env:SHOP_TOKEN}"),
    ],
)
def test_over_http_the_token_is_a_reference(install: Install, client: str, reference: str) -> None:
    url = "http://127.0.0.1:7878/mcp"
    ended = install(client, "--http", url, "--token-env", "SHOP_TOKEN", "--print")
    (entries,) = ended.json.values()
    assert url in entries["tidegate"].values()
    assert entries["tidegate"]["headers"] == {"Authorization": f"Bearer {reference}"}


ADDRESS = "https://gate.example/mcp"
SIGNED_IN = {
    "claude-code": {"type": "http", "url": ADDRESS},
    "copilot": {"type": "http", "url": ADDRESS, "tools": ["*"]},
    "cursor": {"url": ADDRESS},
    "gemini": {"httpUrl": ADDRESS},
    "opencode": {"type": "remote", "url": ADDRESS},
    "vscode": {"type": "http", "url": ADDRESS},
    "windsurf": {"serverUrl": ADDRESS},
    "zed": {"url": ADDRESS},
}


@pytest.mark.parametrize("client", SIGNED_IN)
def test_over_http_without_a_token_the_address_is_all(install: Install, client: str) -> None:
    (entries,) = install(client, "--http", ADDRESS, "--print").json.values()
    assert entries["tidegate"] == SIGNED_IN[client]


@pytest.mark.parametrize("client", ["claude-desktop", "junie"])
def test_a_client_that_only_starts_programs_gets_one_that_signs_in(
    install: Install, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, client: str
) -> None:
    npx = tmp_path / "node" / "npx"
    npx.parent.mkdir()
    npx.write_text("#!/bin/sh\n")
    npx.chmod(0o755)
    monkeypatch.setenv("PATH", f"/usr/bin:{npx.parent}")
    with_npx = install(client, "--http", ADDRESS, "--print")
    entry = with_npx.json["mcpServers"]["tidegate"]
    assert entry["args"][-2:] == ["mcp-remote@0.15.1", ADDRESS]
    assert Path(entry["command"]).is_absolute()
    assert str(Path(entry["command"]).parent) in entry["env"]["PATH"].split(":")
    monkeypatch.setenv("PATH", str(tmp_path))
    without = install(client, "--http", ADDRESS, "--print")
    assert (without.status, without.out, without.err.count("\n")) == (65, "", 1)
    assert "Install Node.js, or leave out --http" in without.err


def test_a_variable_of_a_project_is_passed_by_name(install: Install, project: Path) -> None:
    words = ("--scope", "project", "--env", "SHOP_PW")
    assert install("codex", *words).status == 0
    entry = tomllib.loads((project / ".codex/config.toml").read_text())["mcp_servers"]["tidegate"]
    assert entry["env_vars"] == ["SHOP_PW"] and "env" not in entry
    assert install("gemini", *words).status == 0
    entry = entry_in(project / ".gemini/settings.json")
    assert entry["env"] == {"SHOP_PW": "${SHOP_PW}"}
    ended = install("junie", *words)
    assert ended.status == 2 and "cannot refer to a variable" in ended.err
    assert not (project / ".junie").exists()


# Without a client, and for every client


def use(home: Path, *folders: str) -> None:
    for folder in folders:
        (home / folder).mkdir(parents=True)


def test_without_a_client_those_that_are_here_are_listed(install: Install, home: Path) -> None:
    use(home, ".cursor", ".codex", ".claude")
    assert install("codex").status == 0
    (home / ".cursor/mcp.json").write_text("{")
    before = sorted(home.rglob("*"))
    ended = install()
    assert ended.status == 0
    lines = [line.split(maxsplit=2) for line in ended.out.splitlines()]
    assert [line[0] for line in lines] == ["claude-code", "cursor", "codex"]
    states = [line[2] for line in lines]
    assert states[0] == "no entry" and "cannot be parsed" in states[1]
    assert states[2] == "has the entry tidegate"
    assert "tidegate install CLIENT" in ended.err and "windsurf" in ended.err
    assert sorted(home.rglob("*")) == before


def test_where_no_client_is_found_it_says_so(install: Install) -> None:
    ended = install()
    assert (ended.status, ended.out) == (0, "")
    assert "no client is found here" in ended.err
    assert install("--all").status == 2
    ended = install("--print")
    assert ended.status == 2 and "Name one of claude-code" in ended.err


def test_all_asks_once_and_writes_for_those_that_are_here(
    home: Path, project: Path, state: Path
) -> None:
    use(home, ".cursor", ".codex", ".config/Code/User")
    (home / ".cursor/mcp.json").write_text("{")
    variables = {"HOME": str(home)}
    with terminal(("install", "--all"), state, project, variables) as screen:
        screen.until("Go on? (y/n)")
        screen.type("n")
        assert screen.end() == 0
    assert not (home / ".codex/config.toml").exists()
    with terminal(("install", "--all"), state, project, variables) as screen:
        screen.until("Go on? (y/n)")
        screen.type("y")
        assert screen.end() == 65, screen.said
        assert "cursor: The settings file" in screen.said
    entry = tomllib.loads((home / ".codex/config.toml").read_text())["mcp_servers"]["tidegate"]
    assert entry["args"][0] == "bridge"
    assert entry_in(home / ".config/Code/User/mcp.json", "servers")["args"][0] == "bridge"
    assert (home / ".cursor/mcp.json").read_text() == "{"
    assert not (home / ".gemini").exists() and [*project.iterdir()] == []


def test_all_writes_nothing_without_a_terminal_and_asks_nothing_for_nothing(
    install: Install, home: Path
) -> None:
    use(home, ".gemini")
    ended = install("--all")
    assert ended.status == 2 and "no terminal to ask on" in ended.err
    assert [*(home / ".gemini").iterdir()] == []
    install("gemini")
    ended = install("--all")
    assert ended.status == 0 and "already has the entry" in ended.out
    ended = install("--all", "--http", ADDRESS)  # of what cannot be done nothing is asked or said
    assert ended.status == 2 and "has another entry `tidegate`" in ended.err
    assert "signs in" not in ended.err
    for words in (["--scope", "project"], ["--print"], ["cursor"]):
        assert install("--all", *words).status == 2


def test_for_another_client_it_shows_what_to_paste(install: Install, home: Path) -> None:
    ended = install("emacs")
    assert ended.status == 2
    assert ended.json["mcpServers"]["tidegate"]["args"][0] == "bridge"
    assert "put what is shown into its settings" in ended.err
    ended = install("cursr", "--http", ADDRESS)
    assert ended.json["mcpServers"]["tidegate"] == {"type": "http", "url": ADDRESS}
    assert "Did you mean cursor?" in ended.err
    assert [*home.iterdir()] == []


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (
            ["claude-desktop", "--http", "http://127.0.0.1:1/mcp", "--token-env", "A"],
            "Leave out --token-env",
        ),
        (["zed", "--http", "http://127.0.0.1:1/mcp", "--token-env", "A"], "Leave out --token-env"),
        (["windsurf", "--scope", "project"], "no settings per project"),
        (["claude-desktop", "--scope", "project"], "no settings per project"),
        (["cursor", "--http", "http://example.com/mcp"], "trusted"),
        (["cursor", "--http", "http://127.0.0.1:1/mcp", "--token-env", "tg_a b"], "variable"),
        (["cursor", "--name", "a b"], "cannot name an entry"),
    ],
)
def test_what_a_client_cannot_have_is_refused(
    install: Install, home: Path, words: list[str], said: str
) -> None:
    ended = install(*words)
    assert ended.status in (2, 78)
    assert said in ended.err
    assert [*home.iterdir()] == []


def test_removing_what_is_not_there_changes_nothing(install: Install, home: Path) -> None:
    path = home / ".claude.json"
    path.write_text(' {"mcpServers":{}}')
    assert install("claude-code", "--remove").status == 0
    assert path.read_text() == ' {"mcpServers":{}}'


# The editor itself

values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner),
    max_leaves=8,
)
entries = st.dictionaries(st.text(max_size=4), values, max_size=4)


@settings(max_examples=200, deadline=None)
@given(entries, entries, st.sampled_from([None, 2, "\t"]))
def test_an_entry_put_in_and_taken_out_leaves_what_was_there(
    around: dict[str, Any], there: dict[str, Any], indent: Any
) -> None:
    there.pop("ours", None)
    before = {**around, "servers": there}
    text = json.dumps(before, indent=indent)
    filled = put(text, ("servers", "ours"), {"command": "x", "args": ["y"]})
    ours = {"ours": {"command": "x", "args": ["y"]}}
    assert json.loads(filled) == {**before, "servers": {**there, **ours}}
    assert json.loads(take(filled, ("servers", "ours"))) == before


@settings(max_examples=300, deadline=None)
@given(st.text(alphabet='{}[]",:/*\\ \n1atrue-', max_size=30))
def test_what_json_reads_is_read_alike(text: str) -> None:
    try:
        expected = json.loads(text)
    except ValueError:
        return
    try:
        read = Text(text)
    except Unreadable:
        assert "{" in text, text  # a name given twice is refused
        return
    assert read.value(read.begin) == expected


def test_a_comment_stays_with_what_it_is_about() -> None:
    text = '{\n  "servers": {\n    "a": 1 // about a\n    // the end\n  }\n}\n'
    filled = put(text, ("servers", "b"), 2)
    assert '"a": 1, // about a\n    "b": 2\n    // the end' in filled
    assert take(filled, ("servers", "b")) == text
    assert "the end" in take(filled, ("servers", "a"))


def test_the_bridge_of_an_entry_may_be_given_less(
    install: Install, home: Path, state: Path, run: Callable[..., Ended], towns: Path
) -> None:
    words = ("--bridge-scope", "readOnly", "--source", "towns", "--table", "visits")
    assert install("cursor", *words).status == 0
    entry = entry_in(home / ".cursor" / "mcp.json")
    assert entry["args"] == [
        "bridge", "--scope", "readOnly", "--source", "towns", "--table", "visits",
        "--state", str(state),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("words", "status"),
    [
        (("--source", "town"), 66),
        (("--table", "visit"), 66),
        (("--stdio", "--table", "visits"), 2),
        (("--http", "http://127.0.0.1:1/mcp", "--bridge-scope", "readOnly"), 2),
    ],
)
def test_an_entry_for_what_is_not_there_is_not_written(
    install: Install, home: Path, towns: Path, words: tuple[str, ...], status: int
) -> None:
    ended = install("cursor", *words)
    assert (ended.status, ended.out, ended.err.count("\n")) == (status, "", 1)
    assert not (home / ".cursor").exists()


@pytest.mark.parametrize(
    ("words", "status", "said"),
    [
        (
            ["--surface", "cor"],
            78,
            "'cor'. Did you mean core? Choose from core, cloud, datalog, jdbc, postgres,",
        ),
        (
            ["--stdio", "--surface", "nothing"],
            78,
            "'nothing'. Choose from core, cloud, datalog, jdbc, postgres,",
        ),
        (["--http", "http://127.0.0.1:8765/mcp/cor"], 78, "Did you mean core?"),
        (["--http", "localhost:8765"], 2, "Use a form such as http://127.0.0.1:8765/mcp."),
        (["--http", "http://127.0.0.1:1/mcp", "--surface", "core"], 2, "let it end in /mcp/core"),
    ],
)
def test_an_entry_that_would_lead_nowhere_is_not_written(
    install: Install, home: Path, words: list[str], status: int, said: str
) -> None:
    for more in ([], ["--print"]):
        ended = install("cursor", *words, *more)
        assert (ended.status, ended.out) == (status, ""), ended.err
        assert said in ended.err and ended.err.count("\n") == 1
    assert list(home.rglob("*")) == []


def test_an_address_without_a_path_is_noted(install: Install) -> None:
    ended = install("cursor", "--http", "https://gate.example.com", "--print")
    assert ended.status == 0 and json.loads(ended.out)
    assert "note: the path of a server is https://gate.example.com/mcp" in ended.err
