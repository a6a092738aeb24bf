"""The local model, with its real weights, and the process that it lives in."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from tidegate.config.embeddings import ModelSettings
from tidegate.errors import Code, TidegateError
from tidegate.search.embeddings.local import BATCH, LocalProvider
from tidegate.search.embeddings.local_worker import MEMORY_BYTES


@asynccontextmanager
async def local(**settings: Any) -> AsyncIterator[LocalProvider]:
    provider = LocalProvider(ModelSettings(**settings))
    try:
        yield provider
    finally:
        await provider.close()


async def test_it_knows_which_texts_are_alike_whatever_the_texts_are():
    long = "snow " * 200_000
    texts = [
        *("warm winter boots", "shoes for snow and ice", "corporate income tax"),
        *(
            "\udc80",
            "👩‍👩‍👧 ❄️",
            "أحذية شتوية دافئة",
            "日本語の靴",
            "\x00\x01",
            "x" * 1_000_000,
            long,
        ),
    ]
    async with local() as made:
        found = await made.embed(texts, "query")
        again = await made.embed(texts[:1], "query")
    assert len(texts) > BATCH
    for vector in found:
        assert len(vector) == made.dimensions == 384
        assert sum(value * value for value in vector) == pytest.approx(1, abs=1e-5)
    boots, shoes, law = found[:3]
    assert again[0] == pytest.approx(boots, abs=1e-5)
    alike, unlike = (sum(a * b for a, b in zip(boots, each, strict=True)) for each in (shoes, law))
    assert alike > 0.4 > 0.2 > unlike


async def test_a_process_that_dies_is_replaced_and_one_that_dies_again_is_an_error():
    async with local(timeout_s=120) as made:
        assert made.pid is None
        await made.embed(["boots"], "query")
        first = made.pid
        assert first is not None
        os.kill(first, signal.SIGSTOP)
        asked = asyncio.ensure_future(made.embed(["boots"], "query"))
        await asyncio.sleep(0)  # it is sent
        os.kill(first, signal.SIGKILL)
        assert len(await asked) == 1
        assert made.pid not in (first, None)
        asked = asyncio.ensure_future(made.embed(["boots"], "query"))
        while not asked.done():
            if made.pid is not None:
                with suppress(ProcessLookupError):
                    os.kill(made.pid, signal.SIGKILL)
            await asyncio.sleep(0)
        with pytest.raises(TidegateError) as died:
            await asked
        assert died.value.code is Code.PROVIDER_FAILED
        assert len(await made.embed(["boots"], "query")) == 1


async def test_a_process_that_hangs_is_ended_and_the_next_call_starts_another():
    async with local(timeout_s=120) as made:
        await made.embed(["boots"], "query")
        hanging = made.pid
        assert hanging is not None
        os.kill(hanging, signal.SIGSTOP)
        made._timeout_s = 0.05
        with pytest.raises(TidegateError) as hung:
            await made.embed(["boots"], "query")
        assert hung.value.code is Code.PROVIDER_TIMEOUT
        made._timeout_s = 120
        await made.embed(["boots"], "query")
        assert made.pid not in (hanging, None)
        with pytest.raises(ProcessLookupError):
            os.kill(hanging, 0)


async def test_a_caller_that_leaves_does_not_disturb_the_next():
    async with local() as made:
        await made.embed(["boots"], "query")
        leaving = asyncio.ensure_future(made.embed(["snow " * 200] * BATCH, "query"))
        await asyncio.sleep(0)
        leaving.cancel()
        assert len((await made.embed(["boots"], "query"))[0]) == 384
        with pytest.raises(asyncio.CancelledError):
            await leaving


async def test_closing_it_while_it_computes_or_starts_ends_and_starts_no_other_process():
    async with local() as made:
        await made.embed(["boots"], "query")
        asked = asyncio.ensure_future(made.embed(["snow " * 200] * BATCH, "query"))
        await asyncio.sleep(0)  # it is sent
        await made.close()
        with pytest.raises(TidegateError) as closed:
            await asked
        assert closed.value.code is Code.PROVIDER_FAILED
        assert made.pid is None
    # A start that is cancelled at any of its steps.
    for steps in range(12):
        async with local() as made:
            asked = asyncio.ensure_future(made.embed(["boots"], "query"))
            for _ in range(steps):
                await asyncio.sleep(0)
            for task in asyncio.all_tasks() - {asyncio.current_task()}:
                if "LocalProvider" in repr(task.get_coro()):
                    task.cancel()
            asked.cancel()
            with pytest.raises(asyncio.CancelledError):
                await asked


@pytest.mark.skipif(sys.platform != "linux", reason="needs /proc")
async def test_its_memory_is_bounded_and_this_process_loads_none_of_its_libraries():
    program = (
        "import asyncio, sys\n"
        "from tidegate.config.embeddings import ModelSettings\n"
        "from tidegate.search.embeddings.local import LocalProvider\n"
        "async def main():\n"
        "    made = LocalProvider(ModelSettings())\n"
        "    await made.embed(['boots'], 'query')\n"
        "    print(open(f'/proc/{made.pid}/limits').read())\n"
        "    await made.close()\n"
        "asyncio.run(main())\n"
        "print('loaded', sorted({'onnxruntime', 'numpy', 'tokenizers'} & set(sys.modules)))\n"
    )
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    (line,) = [line for line in ran.stdout.splitlines() if line.startswith("Max data size")]
    assert line.split()[3:5] == [str(MEMORY_BYTES)] * 2
    assert "loaded []" in ran.stdout


async def test_a_model_file_that_is_another_one_is_refused(tmp_path: Path):
    (tmp_path / "model.onnx").write_bytes(b"not the model")
    async with local(model_path=str(tmp_path / "model.onnx")) as made:
        with pytest.raises(TidegateError) as caught:
            await made.embed(["text"], "query")
    assert caught.value.code is Code.EMBEDDING_MODEL
