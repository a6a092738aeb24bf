"""Accounts without a home directory, such as those of containers, and a directory that is gone."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from support.command_line import Ended, environment
from support.eventually import HANG_S
from tidegate.errors import Code, TidegateError
from tidegate.paths import expand

TESTS = Path(__file__).parents[1]
SOURCE = TESTS.parent / "src" / "tidegate"

# What a container gives a process: an account that no list of accounts names, and no HOME. All is
# loaded before, as that account may not read this checkout.
HOMELESS = """
import os, sys
from support.loaded_commands import load
import encodings.ascii, platformdirs.unix
load()
from tidegate.cli.main import main
os.environ.pop("HOME", None)
os.setgroups([])
os.setgid(12345)
os.setuid(12345)
for words in (
    ["source", "list"],
    ["status"],
    ["doctor"],
    ["source", "list", "--state", "~/state"],
    ["setup", "--url", "~/shop.db", "--state", "state"],
    ["install", "cursor", "--state", "state"],
    ["source", "list", "--state", "state"],
):
    print(f"status {main(words)}", file=sys.stderr, flush=True)
"""


def gone(*words: str, directory: Path) -> Ended:
    """A command in a directory that was removed."""
    program = f"import os; os.chdir({str(directory)!r}); os.rmdir({str(directory)!r})"
    command = [sys.executable, "-c", f"{program}; from tidegate.cli.main import main; exit(main())"]
    ended = subprocess.run(
        [*command, *words], env=environment(directory.parent / "state"), stdin=subprocess.DEVNULL,
        capture_output=True, text=True, timeout=HANG_S, check=False,
    )  # fmt: skip
    return Ended(ended.returncode, ended.stdout, ended.stderr)


@pytest.mark.skipif(
    not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root can be another account"
)
def test_an_account_without_a_home_directory_reads_what_to_name() -> None:
    with TemporaryDirectory() as work:  # the account may not enter the directories of tests
        Path(work).chmod(0o777)
        ended = subprocess.run(
            [sys.executable, "-c", HOMELESS], cwd=work,
            env=environment() | {"PYTHONPATH": str(TESTS)}, stdin=subprocess.DEVNULL,
            capture_output=True, text=True, timeout=HANG_S, check=False,
        )  # fmt: skip
        assert os.listdir(work) == ["state"]
    assert ended.returncode == 0, ended.stderr
    assert "Internal error" not in ended.stderr
    said = re.split(r"status (\d+)\n", ended.stderr)
    statuses = [int(each) for each in said[1::2]]
    assert statuses == [2, 2, 2, 2, 2, 2, 0], ended.stderr
    for text in said[:4:2]:
        assert "no home directory" in text and "--state" in text
    for text in said[6:12:2]:
        assert "no home directory for `~" in text and "set HOME" in text


def test_the_home_directory_of_nobody_is_no_internal_error(tmp_path: Path) -> None:
    with pytest.raises(TidegateError) as caught:
        expand("~no-such-account/shop.db")
    assert caught.value.code is Code.ARGUMENT_INVALID
    assert "`~no-such-account/shop.db`" in caught.value.message


def test_paths_are_expanded_in_one_place() -> None:
    """Elsewhere an account without a home directory would be an internal error."""
    ways = re.compile(r"\.expanduser\(|Path\.home\(|(?<!of_platform\()\buser_\w+_path\(")
    found = {
        path.relative_to(SOURCE).as_posix()
        for path in SOURCE.rglob("*.py")
        if ways.search(path.read_text(encoding="utf-8"))
    }
    # Of a tunnel's URL, an unknown account is left as it is written.
    assert found == {"paths.py", "engines/ssh/url.py"}


def test_a_current_directory_that_was_removed_is_named_as_such(tmp_path: Path) -> None:
    (tmp_path / "gone").mkdir()
    ended = gone("setup", "--url", "shop.db", directory=tmp_path / "gone")
    assert ended.status == 74
    assert ended.err == "tidegate: The current directory was removed: go to another one.\n"
