"""Measures an export's memory, in a process that does nothing else: `python -m bench.streaming
URL ROWS` prints what was resident before, at the peak, and what it took, as JSON.

The rows go through the whole gate to a writer of CSV, as `export_data` sends them, and from there
nowhere.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
import tempfile
import time

from bench import data
from bench.engines import LIMITS, call, collecting
from bench.process import cpu_here, peak, resident, tree
from tidegate.app import App
from tidegate.config.model import Config
from tidegate.config.sources import SourceSettings
from tidegate.model.requests import Query
from tidegate.model.results import Page
from tidegate.model.statements import Statement
from tidegate.results.formats import CsvWriter
from tidegate.results.row_stream import WriterSink


async def streamed(url: str, rows: int) -> dict[str, float]:
    """Bytes resident, seconds, and bytes written; processes that work for us are counted in."""
    written = 0

    def put(piece: bytes) -> None:
        nonlocal written
        written += len(piece)

    async def export(count: int) -> None:
        query = Query(Statement(data.many(count)), limits=LIMITS, sink=WriterSink(CsvWriter(put)))
        page = (await app.gateway.handle(call(query, "shop"))).payload
        assert isinstance(page, Page) and page.row_count == count and not page.truncations

    with tempfile.TemporaryDirectory() as state:
        app = App.open(Config(sources=(SourceSettings("shop", url),), state=state))
        try:
            await export(1_000)
            written = 0
            pids = tree(os.getpid())
            before, cpu, started = sum(map(resident, pids)), cpu_here(), time.perf_counter()
            await export(rows)
            wall = time.perf_counter() - started
            # Each process had its peak at a time of its own: the sum is a bound.
            most = sum(map(peak, pids))
            return {
                "before": before,
                "peak": most,
                "written": written,
                "wall": wall,
                "cpu": cpu_here() - cpu,
            }
        finally:
            await app.close()


if __name__ == "__main__":
    with collecting():
        print(json.dumps(asyncio.run(streamed(sys.argv[1], int(sys.argv[2])))))
