"""`${COMMAND:[...]}`: a secret that a program prints, and nothing of it anywhere else."""

from __future__ import annotations

import json
import sys
import threading
from pathlib import Path

import pytest

import tidegate.secrets.command as secret_command
from tidegate.config.kept_secrets import read_option, secrets_of
from tidegate.config.loading import load
from tidegate.config.sources import SourceSettings
from tidegate.engines.registry import open_engine
from tidegate.errors import Code, TidegateError
from tidegate.model.sources import Source
from tidegate.secrets.references import check_references, is_reference, resolve, resolve_option
from tidegate.secrets.url_logins import refuse_literal


def command(script: str, *arguments: str) -> str:
    """A reference to what a script of Python prints."""
    words = json.dumps([sys.executable, "-c", script, *arguments]).replace("}", "\\u007d")
    return f"${{COMMAND:{words}}}"


def failure(reference: str) -> TidegateError:
    with pytest.raises(TidegateError) as caught:
        resolve_option(reference)
    return caught.value


def test_a_program_prints_the_secret_and_no_shell_reads_its_arguments() -> None:
    script = "import sys; print('|'.join(sys.argv[1:]), sys.stdin.read() == '')"
    odd = "$HOME; echo `id` 'x' \"y\" * {z}"
    assert resolve_option(command(script, odd, "")) == f"{odd}| True"
    url = f"postgresql://u:{command('print(chr(64))')}@db:5432/shop?sslmode=require"
    refuse_literal(url)
    assert resolve(url) == "postgresql://u:%40@db:5432/shop?sslmode=require"


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("${COMMAND:pass show 'my db'}", '${COMMAND:["pass","show","my db"]}'),
        ('${COMMAND:"pass"}', '${COMMAND:["PROGRAM","ARGUMENT"]}'),
        ("${COMMAND:[]}", '${COMMAND:["PROGRAM","ARGUMENT"]}'),
        ("${COMMAND:['pass']}", '${COMMAND:["PROGRAM","ARGUMENT"]}'),
        ('${COMMAND:["pass",7]}', '${COMMAND:["PROGRAM","ARGUMENT"]}'),
        ("${COMMAND:}", '${COMMAND:["PROGRAM","ARGUMENT"]}'),
        ('${COMAND:["pass"]}', '${COMMAND:["PROGRAM","ARGUMENT"]}'),
        ('${command:["pass"]}', '${COMMAND:["PROGRAM","ARGUMENT"]}'),
    ],
)
def test_a_wrong_form_is_an_error_that_says_the_right_one(written: str, meant: str) -> None:
    for settings in (
        {"sources": [{"name": "a", "url": f"postgresql://u:{written}@db/x"}]},
        {"sources": [{"name": "a", "url": "sqlite:///a.db", "options": {"timeout": written}}]},
    ):
        with pytest.raises(TidegateError) as caught:
            load(json.dumps(settings))
        assert meant in (caught.value.hint or ""), caught.value


@pytest.mark.needs("metrics")
def test_other_settings_take_it_where_they_take_a_file() -> None:
    reference = command("print(1)")
    check_references(reference, ("ENV", "FILE"))
    assert is_reference(reference, ("ENV", "FILE"))
    config = load(json.dumps({"metrics": {"token": reference}}))
    assert "metrics" in config.sections
    with pytest.raises(TidegateError) as caught:
        load('{"metrics": {"token": "${COMMAND:pass show x}"}}')
    assert '${COMMAND:["pass","show","x"]}' in (caught.value.hint or "")


def test_a_failure_names_the_program_and_its_status_and_nothing_it_printed() -> None:
    says = "import sys; print('hunter2'); print('hunter3', file=sys.stderr); sys.exit(3)"
    error = failure(command(says, "hunter4"))
    assert error.code is Code.SECRET_UNAVAILABLE
    assert "ended with status 3" in error.message and sys.executable in error.message
    assert "hunter" not in f"{error.message}{error.hint}{error.details}"
    killed = "import os, signal; os.kill(os.getpid(), signal.SIGTERM)"
    assert "signal 15" in failure(command(killed)).message


@pytest.mark.parametrize(
    ("script", "why"),
    [
        ("pass", "printed nothing"),
        ("print('x' * 70_000)", "more than 64 KiB"),
        ("import sys; sys.stdout.buffer.write(bytes([255]))", "not UTF-8"),
    ],
)
def test_output_that_is_no_secret_is_an_error(script: str, why: str) -> None:
    assert why in failure(command(script)).message


def test_a_program_that_is_not_there_is_an_error() -> None:
    assert "cannot be started (No such file" in failure('${COMMAND:["/no/such"]}').message


@pytest.mark.parametrize("start", ["run", "Popen"])
def test_a_program_that_goes_on_is_ended_with_what_it_started(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, start: str
) -> None:
    monkeypatch.setattr(secret_command, "LIMIT_S", 2.0)
    pipe = tmp_path / "held"
    child = (
        f"import os, time; os.mkfifo({str(pipe)!r}); a = open({str(pipe)!r}, 'w'); time.sleep(600)"
    )
    script = f"import subprocess, sys; subprocess.{start}([sys.executable, '-c', {child!r}])"
    ended = threading.Event()

    def read_until_all_writers_end() -> None:
        while not pipe.exists():
            pass
        pipe.read_bytes()
        ended.set()

    threading.Thread(target=read_until_all_writers_end, daemon=True).start()
    assert "did not end within 2 s" in failure(command(script)).message
    assert ended.wait(60), "the child of the program goes on"


async def test_it_is_never_waited_for_on_the_event_loop() -> None:
    reference = command("import threading; print('read')")
    assert failure(reference).code is Code.INTERNAL
    assert await read_option(reference) == "read"
    async with secrets_of(reference, "${ENV:PATH}"):
        assert resolve(f"x://u:{reference}@h") == "x://u:read@h"


async def test_what_a_caller_opens_refers_to_no_secret(tmp_path: Path) -> None:
    ran = tmp_path / "ran"
    reference = command(f"open({str(ran)!r}, 'w'); print(1)")
    given = Source("t", "t", "sqlite://", "sqlite", "sqlite", options=(("timeout", reference),))
    engine = await open_engine(given)
    await engine.close()
    assert ran.exists()
    ran.unlink()
    temporary = Source(
        *("t", "t", "sqlite://", "sqlite", "sqlite"),
        options=(("timeout", reference),), temporary=True,
    )  # fmt: skip
    with pytest.raises(TidegateError) as caught:
        await open_engine(temporary)
    assert caught.value.code is Code.POLICY_DENIED and not ran.exists()


def test_settings_hold_the_reference_and_not_the_secret() -> None:
    reference = command("print('hunter2')")
    settings = SourceSettings("shop", f"postgresql://u:{reference}@db/x")
    assert reference in settings.url and "hunter2" not in str(resolve_option(settings.name))
