"""A JDBC driver is foreign code: whatever it does, the server lives and says what happened."""

from __future__ import annotations

import os
import signal
import tempfile
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from support import jdbc_drivers
from support.eventually import until
from support.permits import permit_for
from tidegate.engines.registry import engine_of, open_engine
from tidegate.errors import Code, TidegateError
from tidegate.model.cancellation import NEVER
from tidegate.model.requests import Query
from tidegate.model.results import Limits
from tidegate.model.sources import Source
from tidegate.model.statements import Statement


def source_of(jar: Path, **more: str) -> Source:
    url = "jdbc:hostile:x"
    options = {
        "driver_path": str(jar),
        "driver": "HostileDriver",
        "heap": "64m",
        "jvm_options": jdbc_drivers.QUICK,
        "password": "correct horse",
        **more,
    }
    return Source("s1", "hostile", url, *engine_of(url), options=tuple(options.items()))


@asynccontextmanager
async def opened(source: Source):
    engine: Any = await open_engine(source)
    try:
        yield engine
    finally:
        await engine.close()


async def run(engine, source: Source, text: str, timeout_s: float = 60.0) -> None:
    limits = Limits(timeout_s=timeout_s)
    request = Query(Statement(text), limits=limits)
    cursor = await engine.run(permit_for(source, request, limits=limits), NEVER)
    assert await cursor.fetch(1) == []
    await cursor.close()


async def failure(engine, source: Source, text: str, timeout_s: float = 60.0) -> TidegateError:
    with pytest.raises(TidegateError) as caught:
        await run(engine, source, text, timeout_s)
    return caught.value


@pytest.mark.parametrize(
    ("what", "code"),
    [
        ("exit", Code.SOURCE_UNREACHABLE),
        ("fill", Code.LIMIT_BYTES),
        ("forge", Code.SOURCE_UNREACHABLE),
    ],
)
async def test_a_driver_that_ends_its_process_loses_its_statement_and_no_other(jar, what, code):
    source = source_of(jar)
    async with opened(source) as engine:
        error = await failure(engine, source, f"SELECT '{what}'")
        assert error.code is code
        assert "driver" in error.message
        await run(engine, source, "SELECT 'fine'")


async def test_what_a_driver_prints_is_no_answer(jar):
    source = source_of(jar)
    async with opened(source) as engine:
        await run(engine, source, "SELECT 'print'")
        await run(engine, source, "SELECT 'fine'")


@pytest.mark.parametrize("what", ["throw", "deep"])
async def test_a_driver_that_throws_anything_fails_its_statement_alone(jar, what):
    source = source_of(jar)
    async with opened(source) as engine:
        before = engine.process.pid
        error = await failure(engine, source, f"SELECT '{what}'")
        assert error.code is Code.SQL_FAILED
        assert "/home" not in error.message
        await run(engine, source, "SELECT 'fine'")
        assert engine.process.pid == before


async def test_a_driver_that_ignores_the_end_of_its_time_loses_its_process(jar):
    source = source_of(jar)
    async with opened(source) as engine:
        error = await failure(engine, source, "SELECT 'hang'", timeout_s=0.2)
        assert error.code is Code.LIMIT_TIME
        await run(engine, source, "SELECT 'fine'")


async def test_a_process_that_is_killed_is_started_again(jar):
    source = source_of(jar)
    async with opened(source) as engine:
        os.kill(engine.process.pid, signal.SIGKILL)
        await engine.process.closed()
        await run(engine, source, "SELECT 'fine'")


async def test_a_class_that_is_no_driver_is_refused_and_runs_nothing(jar, tmp_path):
    trace = tmp_path / "trace"
    options = f"{jdbc_drivers.QUICK} -Dtrace={trace}"
    with pytest.raises(TidegateError) as caught:
        await open_engine(source_of(jar, driver="Innocent", jvm_options=options))
    assert caught.value.code is Code.ENGINE_MISSING
    assert "Innocent" in caught.value.message
    assert not trace.exists()


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("driver", "com.example.Absent"),
        ("driver_path", "/nowhere/driver.jar"),
    ],
)
async def test_a_driver_that_is_not_there_is_named(jar, option, value):
    with pytest.raises(TidegateError) as caught:
        await open_engine(source_of(jar, **{option: value}))
    assert caught.value.code is Code.ENGINE_MISSING
    assert value in caught.value.message
    assert "driver" in caught.value.hint


@pytest.mark.parametrize("beside", [[], ["derby"]])
async def test_a_driver_of_another_class_than_usual_is_found(jar, beside):
    """Derby's driver for servers is another than its usual one, and versions have moved that."""
    path = os.pathsep.join([*map(jdbc_drivers.driver_path, beside), str(jar)])
    url = "jdbc:derby://127.0.0.1:1/x"
    options = {"driver_path": path, "jvm_options": f"{jdbc_drivers.QUICK} -Dalso=jdbc:derby://"}
    source = Source("s1", "moved", url, *engine_of(url), options=tuple(options.items()))
    async with opened(source) as engine:
        assert engine.driver_class == "HostileDriver"


async def test_a_usual_class_that_the_jars_lack_is_named(jar):
    url = "jdbc:derby://127.0.0.1:1/x"
    source = Source("s1", "other", url, *engine_of(url), options=(("driver_path", str(jar)),))
    with pytest.raises(TidegateError, match="EmbeddedDriver") as caught:
        await open_engine(source)
    assert caught.value.code is Code.ENGINE_MISSING


async def test_a_variable_that_is_not_set_is_named(jar):
    with pytest.raises(TidegateError) as caught:
        await open_engine(source_of(jar, variables="TIDEGATE_TEST_ABSENT"))
    assert caught.value.code is Code.CONFIG_INVALID
    assert "TIDEGATE_TEST_ABSENT" in caught.value.message


async def test_a_file_that_is_no_jar_is_a_driver_without_classes(tmp_path):
    page = tmp_path / "driver.jar"
    page.write_text("<html>not found</html>")
    jdbc_drivers.driver_path("h2")
    with pytest.raises(TidegateError) as caught:
        await open_engine(source_of(page))
    assert caught.value.code is Code.ENGINE_MISSING


async def test_the_process_shows_no_secret_and_leaves_no_file(jar, monkeypatch):
    monkeypatch.setenv("TIDEGATE_TEST_SECRET", "battery staple")
    monkeypatch.setenv("TIDEGATE_TEST_PLACE", "/etc/drivers")
    source = source_of(jar, variables="TIDEGATE_TEST_PLACE")
    async with opened(source) as engine:
        process = engine.process
        environment = Path(f"/proc/{process.pid}/environ").read_bytes()
        assert b"TIDEGATE_TEST_PLACE=/etc/drivers" in environment
        directory = process._directory
        assert directory.is_dir()
        for name in ("environ", "cmdline"):
            said = Path(f"/proc/{process.pid}/{name}").read_bytes()
            assert b"battery staple" not in said
            assert b"correct horse" not in said
    assert process.gone
    await until(lambda: not directory.exists(), "the end of the private directory")


async def test_a_place_for_temporary_files_that_cannot_be_used_is_named(jar, tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "gone"))
    with pytest.raises(TidegateError) as caught:
        await open_engine(source_of(jar))
    assert caught.value.code is Code.SOURCE_UNREACHABLE
    assert "TMPDIR" in caught.value.hint
