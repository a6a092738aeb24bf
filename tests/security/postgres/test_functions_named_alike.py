"""Functions of users with the names of PostgreSQL's own leave masked tables readable."""

from __future__ import annotations

from pathlib import Path

import msgspec

from support.postgres_surface import PostgresShop
from support.surface_client import Peer
from support.surface_gateway import SqliteGate
from tidegate.model.source_settings import Mask
from tidegate.model.sources import Source
from tidegate.surfaces import core

SCRIPT = """
CREATE TABLE p (id int, ssn text);
INSERT INTO p VALUES (1, '123-45-678');
CREATE TYPE mytype AS (a int);
CREATE FUNCTION public.length(mytype) RETURNS int LANGUAGE sql AS 'SELECT 1';
CREATE FUNCTION public.substr(text, int, int) RETURNS text LANGUAGE sql AS 'SELECT $1';
CREATE FUNCTION public.sha256(text) RETURNS text LANGUAGE sql AS 'SELECT $1';
"""


async def test_every_mask_is_read_and_its_words_are_not_the_callers(tmp_path: Path) -> None:
    shop = PostgresShop.lasting(SCRIPT)
    try:
        for show in ("partial", "hash", "nothing"):
            masks = (Mask("p.ssn", show=show),)
            place = tmp_path / show
            place.mkdir()
            source = Source("s1", "shop", shop.url, "postgres", "postgres", masks=masks)
            gate = SqliteGate(place, source)
            async with gate.opened():
                peer = Peer(core.surface(gate))
                await peer.open()
                found = msgspec.json.decode(await peer.text("query", sql="SELECT ssn FROM p"))
                ((value,),) = found["rows"]
                assert "123-45-678" not in str(value)
                refused = await peer.text("query", sql="SELECT length(ssn) FROM p")
                assert "user wrote" in refused
    finally:
        shop.drop()
