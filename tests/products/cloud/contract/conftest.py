"""One API and one registry for all tests of the cloud engine, and a source on them."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, cast

import pytest

from support.cloud_api import Farm, write_farm
from support.permits import permit_for
from tidegate.cli.main import main
from tidegate.engines.registry import engine_of, language_of, open_engine
from tidegate.errors import TidegateError
from tidegate.model.cancellation import Cancellation
from tidegate.model.requests import Browse, Prepare, Query
from tidegate.model.results import Limits
from tidegate.model.schema import Catalog
from tidegate.model.sources import Source
from tidegate.model.statements import Statement

DOCUMENTS = Path(__file__).with_name("documents")


@pytest.fixture(scope="session")
def registry(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_farm(tmp_path_factory.mktemp("registry"))


def copy_documents(factory: pytest.TempPathFactory) -> Path:
    """A folder of a registry with the documents beside these tests, and the one that is imported
    from OpenAPI."""
    folder = factory.mktemp("registry")
    shutil.copytree(DOCUMENTS / "src", folder / "src")
    openapi, state = str(DOCUMENTS / "openapi" / "prometheus.yaml"), str(factory.mktemp("state"))
    words = ("--provider", "prom", "--folder", str(folder), "--state", state)
    assert main(["cloud", "import", openapi, *words]) == 0
    return folder


@pytest.fixture(scope="session")
def one_farm() -> Iterator[Farm]:
    farm = Farm()
    yield farm
    farm.close()


@pytest.fixture
def farm(one_farm: Farm) -> Farm:
    one_farm.reset()
    return one_farm


class Ask:
    """Runs statements, each in a source opened for it; keeps the cursor of the last one."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self.cursor: Any = None

    async def __call__(
        self,
        text: str,
        *params: Any,
        timeout_s: float = 20,
        cancellation: Cancellation | None = None,
    ) -> list[tuple[Any, ...]]:
        query = Query(Statement(text, params or None))
        effect = language_of(self.source).classify(query, self.source).effect
        permit = permit_for(self.source, query, effect, limits=Limits(timeout_s=timeout_s))
        engine = await open_engine(self.source)
        try:
            self.cursor = cursor = cast(
                "Any", await engine.run(permit, cancellation or Cancellation())
            )
            try:
                rows: list[Any] = []
                while some := await cursor.fetch(1_000):
                    rows += some
                return [tuple(row) for row in rows]
            finally:
                await cursor.close()
        finally:
            await engine.close()

    async def prepared(self, text: str) -> list[tuple[str, str]]:
        """Names and kinds of the columns of a query that is not run."""
        permit = permit_for(self.source, Prepare(Statement(text)))
        engine = await open_engine(self.source)
        try:
            described = await cast("Any", engine).prepare(permit, Cancellation())
            return [(each.name, each.kind) for each in described.columns]
        finally:
            await engine.close()

    async def tables(self, schema: str) -> Catalog:
        """The catalog with the resources of a service."""
        permit = permit_for(self.source, Browse("catalog", schema=schema))
        engine = await open_engine(self.source)
        try:
            return cast("Catalog", await engine.describe(permit, Cancellation()))
        finally:
            await engine.close()

    async def refusal(self, text: str, *params: Any, timeout_s: float = 20) -> TidegateError:
        with pytest.raises(TidegateError) as caught:
            await self(text, *params, timeout_s=timeout_s)
        return caught.value


Open = Callable[..., Ask]


@pytest.fixture
def opened(registry: Path, farm: Farm) -> Open:
    """Makes a source with options of its own."""

    def make(**options: str) -> Ask:
        url = f"cloud://{registry}"
        given = (*[each for each in farm.options if each[0] not in options], *options.items())
        return Ask(Source("c", "c", url, *engine_of(url), access="write", options=given))

    return make


@pytest.fixture
def ask(opened: Open) -> Ask:
    return opened()
