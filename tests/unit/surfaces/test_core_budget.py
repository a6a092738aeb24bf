"""The byte budget of `core`: its definitions and a whole conversation on a schema of 212 tables.

Counted as a model sees it: name, description and input schema of every tool, every arguments
object and every result text, as compact JSON.
"""

from __future__ import annotations

import asyncio
import sqlite3
from pathlib import Path
from typing import Any

import msgspec

from support.surface_client import Peer
from support.surface_gateway import SqliteGate, sqlite_source
from tidegate.surfaces import core

DEFINITIONS = 1_600
BUDGET = 2_600
"""With the line that explains the signs, and what matched in two more tables."""

_SHOP = (
    """CREATE TABLE customers (id INTEGER PRIMARY KEY, email TEXT NOT NULL UNIQUE,
    full_name TEXT NOT NULL, phone TEXT, country TEXT, city TEXT, created_at TEXT NOT NULL,
    loyalty_points INTEGER NOT NULL DEFAULT 0)""",
    """CREATE TABLE invoices (id INTEGER PRIMARY KEY,
    customer_id INTEGER NOT NULL REFERENCES customers(id), number TEXT NOT NULL UNIQUE,
    issued_on TEXT NOT NULL, due_on TEXT NOT NULL, currency TEXT NOT NULL,
    total NUMERIC NOT NULL, tax NUMERIC NOT NULL, status TEXT NOT NULL, paid_at TEXT)""",
)
_AREAS = ("billing", "shipping", "stock", "staff", "ledger", "audit", "crm", "web", "desk", "fleet")
_THINGS = (
    "account", "address", "batch", "campaign", "carrier", "channel", "claim", "contact",
    "contract", "country", "coupon", "delivery", "document", "event", "invoice_line", "journal",
    "member", "note", "order", "order_item", "payment",
)  # fmt: skip


def _build(path: Path) -> None:
    """212 tables: a customer and an invoice table among 210 with like names."""
    connection = sqlite3.connect(path)
    for statement in _SHOP:
        connection.execute(statement)
    for area in _AREAS:
        for thing in _THINGS:
            connection.execute(
                f"CREATE TABLE {area}_{thing} (id INTEGER PRIMARY KEY, code TEXT NOT NULL,"
                f" label TEXT, status TEXT, amount NUMERIC, customer_id INTEGER REFERENCES"
                f" customers(id), created_at TEXT, updated_at TEXT, notes TEXT, created_by TEXT)"
            )
    connection.execute(
        "INSERT INTO customers (email, full_name, country, created_at) VALUES"
        " ('a@example.org', 'Ada', 'UK', '2026-01-01'), ('b@example.org', 'Bo', 'SE', '2026-01-02')"
    )
    connection.executemany(
        "INSERT INTO invoices (customer_id, number, issued_on, due_on, currency, total, tax,"
        " status) VALUES (?, ?, '2026-02-01', '2026-03-01', 'EUR', ?, 0, 'open')",
        [(1, "I-1", 120), (1, "I-2", 80), (2, "I-3", 50)],
    )
    connection.commit()
    assert connection.execute(
        "SELECT count(*) FROM sqlite_schema WHERE type='table'"
    ).fetchone() == (len(_SHOP) + len(_AREAS) * len(_THINGS),)
    connection.close()


async def _converse(path: Path) -> tuple[dict[str, int], list[str]]:
    async with SqliteGate(path.parent, sqlite_source(path)).opened() as gate:
        return await _find_read_and_join(Peer(core.surface(gate)))


async def _find_read_and_join(peer: Peer) -> tuple[dict[str, int], list[str]]:
    """Bytes by step, and the texts that the model reads."""
    await peer.open()
    listed = (await peer.request("tools/list"))["result"]["tools"]
    shown = [{k: tool[k] for k in ("name", "description", "inputSchema")} for tool in listed]
    spent = {"definitions": _size(shown)}
    texts: list[str] = []
    for tool, arguments in (
        ("search", {"words": "customer invoice"}),
        (
            "query",
            {
                "sql": "SELECT c.full_name, count(*) AS invoices, sum(i.total) AS total"
                " FROM customers c JOIN invoices i ON i.customer_id = c.id"
                " GROUP BY c.id ORDER BY total DESC"
            },
        ),
    ):
        text = await peer.text(tool, **arguments)
        spent[tool] = _size(arguments) + len(text.encode())
        texts.append(text)
    return spent, texts


def _size(value: Any) -> int:
    return len(msgspec.json.encode(value))


def test_a_conversation_on_212_tables_stays_within_its_bytes(tmp_path: Path) -> None:
    _build(tmp_path / "big.db")
    spent, (found, answered) = asyncio.run(_converse(tmp_path / "big.db"))
    names = [line.partition("(")[0] for line in found.splitlines()]
    assert set(names[:2]) == {"customers", "invoices"}
    assert "customer_id int>customers.id" in found
    assert spent["definitions"] < DEFINITIONS, spent
    assert msgspec.json.decode(answered) == {
        "columns": ["full_name", "invoices", "total"],
        "rows": [["Ada", 2, 200], ["Bo", 1, 50]],
    }
    assert sum(spent.values()) < BUDGET, spent


def test_the_surface_has_at_most_six_tools(tmp_path: Path) -> None:
    assert len(core.surface(SqliteGate(tmp_path)).tools_by_name) <= 6
