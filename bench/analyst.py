"""An analyst without a model: 16 questions on an unknown database of 220 tables, asked of each
server in the way that its tools suggest. Counts calls, and the bytes that a model reads and writes.

All of it is written for this bench: the questions, the rows, the statements and the order of the
calls. It is no recording of an agent's conversation, and an agent may need more calls.

Eight tables hold rows, and what makes a question hard: codes of unknown spelling, months with
blanks behind them, amounts kept as text, no declared foreign keys. The statements are the same for
all servers, and every answer is checked. What differs is how a caller finds out what to write:

- Tidegate core: a search with a topic for each question, which shows columns, joins and values,
  then all statements in one call.
- DBHub: the names of all tables, the columns of each table that is needed, one call that looks at
  values and one with all statements, separated by semicolons.
- MCP Toolbox: the names, the columns of the tables, a call for each look and each statement.
"""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path
from typing import Any, NamedTuple

from bench import data, peers

Step = tuple[str, dict[str, Any]]

DATABASE = peers.WORK / "analyst.sqlite"


class Question(NamedTuple):
    """What is asked, in words to search for and as a statement, and a text of the answer."""

    words: str
    sql: str
    answer: str


TABLES = (
    "shop_customer", "shop_order", "shop_order_item", "shop_product", "shop_store", "shop_refund",
    "shop_campaign", "shop_visit",
)  # fmt: skip

_SCHEMA = """
CREATE TABLE shop_customer (customer_id INTEGER, full_name TEXT, segment TEXT, newsletter TEXT,
  country TEXT, joined TEXT);
CREATE TABLE shop_order (order_id INTEGER, customer_id INTEGER, store_id INTEGER,
  campaign_id INTEGER, status TEXT, channel TEXT, placed_on TEXT, amount TEXT);
CREATE TABLE shop_order_item (item_id INTEGER, order_id INTEGER, product_id INTEGER,
  quantity INTEGER, price REAL);
CREATE TABLE shop_product (product_id INTEGER, title TEXT, category TEXT, active TEXT);
CREATE TABLE shop_store (store_id INTEGER, city TEXT, kind TEXT, opened TEXT);
CREATE TABLE shop_refund (refund_id INTEGER, order_id INTEGER, reason TEXT, paid_back REAL);
CREATE TABLE shop_campaign (campaign_id INTEGER, name TEXT, month TEXT, budget REAL);
CREATE TABLE shop_visit (visit_id INTEGER, customer_id INTEGER, device TEXT, seconds INTEGER);
"""

QUESTIONS = (
    Question("customers by segment", "SELECT segment, count(*) FROM shop_customer"
             " GROUP BY segment ORDER BY segment", "Retail (hardware)"),
    Question("newsletter", "SELECT count(*) FROM shop_customer WHERE newsletter = 'Yes'", "60"),
    Question("customers country", "SELECT country, count(*) FROM shop_customer"
             " GROUP BY country ORDER BY country", "Norway"),
    Question("customers joined", "SELECT count(*) FROM shop_customer"
             " WHERE joined >= '2025-06-01'", "70"),
    Question("orders status", "SELECT count(*) FROM shop_order WHERE status = 'shipped'", "200"),
    Question("orders channel amount", "SELECT channel, sum(CAST(amount AS REAL)) FROM shop_order"
             " GROUP BY channel ORDER BY channel", "web"),
    Question("orders per store city", "SELECT s.city, count(*) FROM shop_order o"
             " JOIN shop_store s ON s.store_id = o.store_id GROUP BY s.city ORDER BY 1", "Oslo"),
    Question("orders of a segment", "SELECT count(*) FROM shop_order o JOIN shop_customer c"
             " ON c.customer_id = o.customer_id WHERE c.segment = 'Wholesale'", "150"),
    Question("products category", "SELECT category, count(*) FROM shop_product"
             " GROUP BY category ORDER BY category", "garden"),
    Question("active products", "SELECT count(*) FROM shop_product WHERE active = 'Y'", "30"),
    Question("items quantity product", "SELECT p.category, sum(i.quantity) FROM shop_order_item i"
             " JOIN shop_product p ON p.product_id = i.product_id GROUP BY p.category"
             " ORDER BY p.category", "tools"),
    Question("refund reason", "SELECT reason, count(*), sum(paid_back) FROM shop_refund"
             " GROUP BY reason ORDER BY reason", "damaged"),
    Question("refunds of orders by channel", "SELECT o.channel, count(*) FROM shop_refund r"
             " JOIN shop_order o ON o.order_id = r.order_id GROUP BY o.channel ORDER BY o.channel",
             "phone"),
    Question("campaign month budget", "SELECT sum(budget) FROM shop_campaign"
             " WHERE trim(month) = 'May'", "500"),
    Question("campaign orders", "SELECT c.name, count(*) FROM shop_campaign c JOIN shop_order o"
             " ON o.campaign_id = c.campaign_id GROUP BY c.name ORDER BY 1 LIMIT 3", "Campaign 2"),
    Question("visits device seconds", "SELECT device, avg(seconds) FROM shop_visit"
             " GROUP BY device ORDER BY device", "mobile"),
)  # fmt: skip

LOOKS = (
    "SELECT DISTINCT segment, newsletter FROM shop_customer",
    "SELECT DISTINCT status, channel FROM shop_order",
    "SELECT DISTINCT kind, city FROM shop_store",
    "SELECT DISTINCT category, active FROM shop_product",
    "SELECT DISTINCT reason FROM shop_refund",
    "SELECT DISTINCT month FROM shop_campaign",
    "SELECT DISTINCT device FROM shop_visit",
    "SELECT amount, placed_on FROM shop_order LIMIT 5",
)
"""What has to be asked where the tools show no values."""


def make_database() -> Path:
    """Write the file: the company's 212 tables and the shop's eight."""
    if DATABASE.exists():
        return DATABASE
    draft = DATABASE.with_suffix(".draft")
    draft.unlink(missing_ok=True)
    data.make_company(draft)
    connection = sqlite3.connect(draft)
    connection.executescript(_SCHEMA)
    with connection:
        for table, rows in _rows().items():
            marks = ", ".join("?" * len(rows[0]))
            connection.executemany(f"INSERT INTO {table} VALUES ({marks})", rows)
    connection.close()
    draft.rename(DATABASE)
    return DATABASE


def _rows() -> dict[str, list[tuple[Any, ...]]]:
    segments = ("Retail (hardware)", "Wholesale", "Private", "Public")
    months = ("January  ", "May      ", "July     ", "October  ")
    return {
        "shop_customer": [
            (n, f"Customer {n}", segments[n % 4], ("Yes", "No")[n % 2],
             ("Norway", "Chile", "Japan")[n % 3], f"2025-{n % 12 + 1:02d}-15")
            for n in range(120)
        ],
        "shop_order": [
            (n, n % 120, n % 5, n % 8, ("shipped", "open", "Cancelled")[n % 3],
             ("web", "phone", "shop")[n % 3], f"2026-{n % 6 + 1:02d}-{n % 28 + 1:02d}",
             f"{n % 90}.50")
            for n in range(600)
        ],
        "shop_order_item": [(n, n % 600, n % 40, n % 4 + 1, 2.5) for n in range(1200)],
        "shop_product": [
            (n, f"Product {n}", ("garden", "kitchen", "tools")[n % 3], "YYYN"[n % 4])
            for n in range(40)
        ],
        "shop_store": [
            (n, ("Oslo", "Bergen", "Lima", "Osaka", "Nairobi")[n], ("own", "franchise")[n % 2],
             f"201{n}-03-01")
            for n in range(5)
        ],
        "shop_refund": [
            (n, n * 7, ("damaged", "late", "other")[n % 3], n + 0.25) for n in range(60)
        ],
        "shop_campaign": [(n, f"Campaign {n}", months[n % 4], 250.0) for n in range(8)],
        "shop_visit": [
            (n, n % 120, ("mobile", "desktop")[n % 2], n % 300) for n in range(400)
        ],
    }  # fmt: skip


def steps_of_core() -> list[Step]:
    """One search for all questions, then every statement in one call."""
    search: Step = ("search", {"words": [question.words for question in QUESTIONS]})
    return [search, ("query", {"sql": [question.sql for question in QUESTIONS]})]


def steps_of_dbhub() -> list[Step]:
    """Names, columns of each table, one look at values, one call with every statement."""
    columns: list[Step] = [
        ("search_objects", {"object_type": "table", "pattern": "shop_%", "detail_level": "full"})
    ]
    return [
        ("search_objects", {"object_type": "table", "pattern": "%"}),
        *columns,
        ("execute_sql", {"sql": "; ".join(LOOKS)}),
        ("execute_sql", {"sql": "; ".join(question.sql for question in QUESTIONS)}),
    ]


def steps_of_toolbox() -> list[Step]:
    """Names, columns, and a call for each look and each statement."""
    return [
        ("list_tables", {"output_format": "simple"}),
        ("list_tables", {"table_names": ",".join(TABLES)}),
        *(("execute_sql", {"sql": sql}) for sql in LOOKS),
        *(("execute_sql", {"sql": question.sql}) for question in QUESTIONS),
    ]


def check(answers: list[str]) -> None:
    """Raises: RuntimeError unless the answers hold what every question asks for."""
    said = json.dumps(answers, ensure_ascii=False)
    for question in QUESTIONS:
        if question.answer not in said:
            raise RuntimeError(f"no answer to {question.words!r}: {question.answer!r} is missing")
