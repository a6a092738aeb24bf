"""The provider `local`: all-MiniLM-L6-v2 with int8 weights, on this machine, without torch.

Needs the extra `embeddings`. The model is native code and lives in a process of its own, which is
started at the first text and then kept: if it crashes, hangs or takes too much memory, that process
ends and the next text starts another.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from tidegate.config.embeddings import ModelSettings
from tidegate.engines.worker.framed_process import lost, retrieve
from tidegate.engines.worker.process import WorkerProcess
from tidegate.errors import Code, TidegateError
from tidegate.search.embeddings.api import Vector
from tidegate.search.requests import Purpose

WORKER = "tidegate.search.embeddings.local_worker"
BATCH = 8
"""Texts that are computed at once: 256 tokens of each take 150 MB and a second of CPU."""


class LocalProvider:
    """`local`. Callers take turns after each batch."""

    name = "local"
    model = "all-MiniLM-L6-v2-int8"
    dimensions = 384
    host = ""
    batch = BATCH

    def __init__(self, settings: ModelSettings) -> None:
        if settings.dimensions not in (None, self.dimensions) or settings.model not in (
            None,
            self.model,
        ):
            raise TidegateError(
                Code.CONFIG_INVALID,
                f"The provider `local` has the model {self.model}, with {self.dimensions}"
                " dimensions, and no other.",
                hint="Leave out `model` and `dimensions`, or use the provider `ollama`.",
            )
        self._path = settings.model_path
        self._timeout_s = settings.timeout_s
        self._worker: WorkerProcess | None = None
        self._turn = asyncio.Lock()
        self._batches: set[asyncio.Task[list[Vector]]] = set()
        self._closed = False

    async def embed(self, texts: Sequence[str], purpose: Purpose) -> list[Vector]:
        vectors: list[Vector] = []
        for start in range(0, len(texts), self.batch):
            part = list(texts[start : start + self.batch])
            # A batch goes on if its caller leaves: the process answers one at a time.
            batch = asyncio.create_task(self._batch(part))
            self._batches.add(batch)
            batch.add_done_callback(self._batches.discard)
            batch.add_done_callback(retrieve)
            vectors += await asyncio.shield(batch)
        return vectors

    async def close(self) -> None:
        """End the process. What it computes fails, and none is started any more."""
        self._closed = True
        await self._end()
        if self._batches:
            await asyncio.wait(self._batches)

    async def _end(self) -> None:
        worker, self._worker = self._worker, None
        if worker is not None:
            worker.close()
            await worker.closed()

    @property
    def pid(self) -> int | None:
        """The process of the model; None while there is none."""
        return None if self._worker is None else self._worker.pid

    async def _batch(self, texts: list[str]) -> list[Vector]:
        """Raises: TidegateError PROVIDER_TIMEOUT, PROVIDER_FAILED, EMBEDDING_MISSING,
        EMBEDDING_MODEL."""
        clean = [text.encode("utf-8", "replace").decode() for text in texts]
        async with self._turn:
            for again in (True, False):
                worker = await self._started()
                try:
                    async with asyncio.timeout(self._timeout_s):
                        found = await worker.ask("embed", clean, list[list[float]])
                    return [tuple(vector) for vector in found]
                except TimeoutError:
                    worker.close()
                    raise TidegateError(
                        Code.PROVIDER_TIMEOUT,
                        f"The local model did not answer within {self._timeout_s:g} s, and its"
                        " process was ended",
                        hint="Retry, or raise `embeddings.timeout_s`.",
                    ) from None
                except TidegateError as error:
                    if error.code is not Code.SOURCE_UNREACHABLE:
                        raise
                    worker.close()
                    if again and not self._closed:
                        continue  # it computes and changes nothing
                    raise TidegateError(
                        Code.PROVIDER_FAILED,
                        "The process of the local model ended while it computed, twice",
                        hint="Look whether this machine has memory left, then retry.",
                    ) from None
        raise AssertionError("the second attempt returns or raises")

    async def _started(self) -> WorkerProcess:
        """The process, started if there is none. Raises: TidegateError PROVIDER_FAILED."""
        worker = self._worker
        if worker is not None and worker.check():
            return worker
        await self._end()
        try:
            if self._closed:
                raise lost()
            self._worker = await WorkerProcess.start(WORKER, [self._path])
        except TidegateError as error:
            raise TidegateError(
                Code.PROVIDER_FAILED,
                "The process of the local model did not start",
                hint=f"Run `python -m {WORKER}` to see why.",
            ) from error
        return self._worker
