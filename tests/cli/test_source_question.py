"""`source test` sends each database a trivial statement that it knows."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from support.jdbc_drivers import USERS, driver_path, template, url_of
from tidegate.app import App
from tidegate.cli.source_report import report_of
from tidegate.config.model import Config
from tidegate.config.sources import SourceSettings

SCRIPT = ("CREATE TABLE kept (id int)",)


@pytest.mark.parametrize("product", ["h2", "hsqldb", "derby"])
async def test_source_test_asks_what_the_database_knows(tmp_path: Path, product: str) -> None:
    jars = driver_path(product)
    folder = tmp_path / "database"
    shutil.copytree(template(product, SCRIPT), folder)
    options = {"driver_path": jars, "user": USERS[product]}
    source = SourceSettings("shop", url_of(product, folder), options=options)
    app = App.open(Config(state=str(tmp_path / "state"), sources=(source,)))
    try:
        report = await report_of(app, "shop")
    finally:
        await app.close()
    assert report["tables"] == 1 and report["latency_ms"] > 0
