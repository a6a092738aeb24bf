"""Starts the Java process of a source, with its driver loaded."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

from tidegate.engines.jdbc.drivers import find_jars
from tidegate.engines.jdbc.errors import unconnected
from tidegate.engines.jdbc.messages import Loaded, fields
from tidegate.engines.jdbc.url import JdbcUrl
from tidegate.engines.jvm.process import JvmError, JvmProcess
from tidegate.engines.jvm.runtime import find_runtime

HEAP = "256m"


async def start_worker(options: Mapping[str, str], url: JdbcUrl) -> tuple[JvmProcess, Loaded]:
    """A Java process for the source, and the driver that it loaded. Nothing is connected yet.

    Raises: TidegateError ENGINE_MISSING without Java or a driver, SOURCE_UNREACHABLE if the process
    does not start.
    """
    jars = find_jars(options, url.product)
    runtime = await asyncio.to_thread(find_runtime, options.get("java"))
    process = await JvmProcess.start(
        runtime,
        options.get("heap", HEAP),
        options.get("time_zone", "UTC"),
        tuple(options.get("jvm_options", "").split()),
    )
    driver = options.get("driver") or url.product.driver or None
    try:
        body = fields(jars=jars, url=url.text, driver=driver)
        return process, await process.set_up(body, Loaded)
    except BaseException as error:
        process.close()
        await process.closed()
        if isinstance(error, JvmError):
            raise unconnected(error.fault) from error
        raise
