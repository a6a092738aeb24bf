"""A worker process answers on each event loop that a server may run on."""

from __future__ import annotations

import asyncio

import pytest
import uvloop

from support import jdbc_drivers
from tidegate.products.jdbc.engine.jvm.process import JvmProcess
from tidegate.products.jdbc.engine.jvm.runtime import find_runtime
from tidegate.products.jdbc.engine.messages import Loaded


@pytest.mark.parametrize("loop", [asyncio.new_event_loop, uvloop.new_event_loop])
def test_a_process_answers_on_this_loop(loop) -> None:
    jar = jdbc_drivers.driver_path("h2")

    async def set_up() -> Loaded:
        process = await JvmProcess.start(find_runtime(), "64m", "UTC", (jdbc_drivers.QUICK,))
        try:
            return await process.set_up({"jars": [jar], "url": "jdbc:h2:mem:x"}, Loaded)
        finally:
            process.close()
            await process.closed()

    with asyncio.Runner(loop_factory=loop) as runner:
        assert runner.run(set_up()).driver == "org.h2.Driver"
