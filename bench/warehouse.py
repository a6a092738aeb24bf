"""A company's database as companies have them: 74 tables in six schemas of PostgreSQL without a
foreign key, with codes in several spellings, month names with blanks behind them, numbers and
dates kept as text; and 16 questions about it.

Ten tables are what the questions are about. The others are there to make these hard to find. The
database, the questions and the statements are written by us, after what an issue says of a
conversation that was not kept.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from bench.defog import Column, Database, Table

NAME = "warehouse"


class Question(NamedTuple):
    """What is asked, and a statement that answers it. `formats` are the columns of text of which a
    value has to be seen to know how to calculate with them."""

    words: str
    sql: str
    formats: tuple[tuple[str, str], ...] = ()


_SCHEMAS = {
    "sales": "customers orders order_lines quotes quote_lines price_lists contracts commissions"
    " territories targets leads discounts",
    "stock": "products stores suppliers deliveries delivery_lines bins counts transfers reorders"
    " units shelves recalls",
    "finance": "refunds campaigns ledgers journals accounts taxes payments dunnings budgets assets"
    " rates closings",
    "people": "staff shifts absences contracts_of_work payslips trainings skills reviews candidates"
    " teams badges expenses",
    "support": "tickets calls surveys answers escalations articles macros queues agents_online"
    " callbacks sla_breaches handovers tags",
    "web": "visits pages clicks carts wishlists experiments vouchers newsletters bounces redirects"
    " cookies consents searches",
}
_DESCRIBED: dict[tuple[str, str], str] = {
    ("sales", "customers"): "customer_no int, full_name text, segment text, newsletter text,"
    " country text, joined text, credit_limit numeric(20,10)",
    ("sales", "orders"): "order_no bigint, customer_no int, store_code text, campaign_no int,"
    " status text, channel text, placed_on text, amount text",
    ("sales", "order_lines"): "line_no bigint, order_no bigint, sku text, quantity text,"
    " price numeric(12,2)",
    ("stock", "products"): "sku text, title text, category text, active char(1)",
    ("stock", "stores"): "store_code text, city text, kind text, opened text",
    ("finance", "refunds"): "refund_no int, order_no bigint, reason text, paid_back numeric(20,10)",
    ("finance", "campaigns"): "campaign_no int, name text, month text, budget numeric",
    ("people", "staff"): "emp_no int, store_code text, role text, hired text, full_time text",
    ("support", "tickets"): "ticket_no int, customer_no int, priority text, opened date,"
    ' "Closed By" int',
    ("web", "visits"): "visit_no bigint, customer_no int, device text, seconds text",
}
_OTHER = "{one}_no int, ref_no int, state text, created text, remark text, value numeric(10,2)"
_COUNTS = {"orders": 3000, "order_lines": 6000, "customers": 400, "visits": 2000}
_MONTHS = ("January  ", "May      ", "July     ", "October  ")


def tables() -> Iterator[tuple[str, str, str]]:
    """Schema, name and columns of each table."""
    for schema, names in _SCHEMAS.items():
        for name in names.split():
            yield schema, name, _DESCRIBED.get((schema, name), _OTHER.format(one=name.rstrip("s")))


def statements() -> Iterator[str]:
    """What makes and fills the database."""
    for schema in _SCHEMAS:
        yield f"CREATE SCHEMA {schema}"
    for schema, name, columns in tables():
        yield f"CREATE TABLE {schema}.{name} ({columns})"
        rows = [_row(name, number) for number in range(_COUNTS.get(name, 60))]
        yield f"INSERT INTO {schema}.{name} VALUES {', '.join(map(_written, rows))}"


def _written(row: tuple[Any, ...]) -> str:
    said = ["'" + each.replace("'", "''") + "'" if isinstance(each, str) else str(each)
            for each in row]  # fmt: skip
    return f"({', '.join(said)})"


def _row(table: str, n: int) -> tuple[Any, ...]:
    day, month = n % 28 + 1, n % 12 + 1
    made: dict[str, tuple[Any, ...]] = {
        "customers": (
            n, f"Customer {n}", ("Retail", "retail (hardware)", "Wholesale", "PUBLIC")[n % 4],
            ("Yes ", "No", "No")[n % 3], ("NO", "CL", "JP")[n % 3], f"2025-{month:02d}-{day:02d}",
            n * 10,
        ),
        "orders": (
            n, n % 400, f"S{n % 5}", n % 8, ("shipped", "open", "Cancelled ")[n % 3],
            ("web", "Phone", "shop")[n % 3], f"{day:02d}/{month:02d}/2026",
            f"{n % 9 + 1},{n % 1000:03d}.50",
        ),
        "order_lines": (n, n % 3000, f"P-{n % 60:03d}", str(n % 4 + 1), n % 90 + 0.25),
        "products": (
            f"P-{n:03d}", f"Product {n}", ("Garden", "garden ", "Tools", "Kitchen")[n % 4],
            "YYYN"[n % 4],
        ),
        "stores": (
            f"S{n}", ("Oslo", "Bergen", "Lima", "Osaka", "Nairobi")[n % 5],
            ("own", "franchise")[n % 2], f"201{n % 10}-03-01",
        ),
        "refunds": (n, n * 7, ("damaged", "late", "other")[n % 3], n + 0.25),
        "campaigns": (n, f"Campaign {n}", _MONTHS[n % 4], 250 + n),
        "staff": (
            n, f"S{n % 5}", ("Clerk", "clerk", "Manager")[n % 3], f"{2010 + n % 9}{month:02d}01",
            ("J", "N")[n % 2],
        ),
        "tickets": (n, n % 400, ("P1", "P2", "P3")[n % 3], f"2026-{month:02d}-15", n % 60),
        "visits": (n, n % 400, ("mobile", "desktop", "Tablet")[n % 3], f"{n % 300}"),
    }  # fmt: skip
    other = (n, n % 40, ("new", "done", "void")[n % 3], f"2026-{month:02d}-{day:02d}", f"r {n}", n)
    return made.get(table, other)


def as_defog() -> Database:
    """The tables as the analyst reads them, without rows."""
    found: list[Table] = []
    for _, name, columns in tables():
        parts = [each.strip().rpartition(" ") for each in columns.replace("(20,10)", "").replace(
            "(12,2)", "").replace("(10,2)", "").split(",")]  # fmt: skip
        found.append(
            Table(name, tuple(Column(place.strip('"'), kind) for place, _, kind in parts), ())
        )
    return Database(NAME, tuple(found))


_AMOUNT = (("orders", "amount"),)

QUESTIONS = (
    Question(
        "How many customers are there in each segment?",
        "SELECT segment, count(*) FROM sales.customers GROUP BY segment ORDER BY segment",
    ),
    Question(
        "How many customers get the newsletter?",
        "SELECT count(*) FROM sales.customers WHERE newsletter = 'Yes '",
    ),
    Question(
        "How much credit limit have the hardware retail customers in Norway?",
        "SELECT sum(credit_limit) FROM sales.customers WHERE segment = 'retail (hardware)'"
        " AND country = 'NO'",
    ),
    Question(
        "How many customers joined in the second half of 2025?",
        "SELECT count(*) FROM sales.customers WHERE joined >= '2025-07-01'",
        (("customers", "joined"),),
    ),
    Question(
        "How many orders were cancelled?",
        "SELECT count(*) FROM sales.orders WHERE status = 'Cancelled '",
    ),
    Question(
        "What is the sum of order amounts per channel?",
        "SELECT channel, sum(replace(amount, ',', '')::numeric) FROM sales.orders"
        " GROUP BY channel ORDER BY channel",
        _AMOUNT,
    ),
    Question(
        "How many orders were placed in March 2026?",
        "SELECT count(*) FROM sales.orders WHERE to_date(placed_on, 'DD/MM/YYYY')"
        " BETWEEN '2026-03-01' AND '2026-03-31'",
        (("orders", "placed_on"),),
    ),
    Question(
        "How many orders has the store in each city?",
        "SELECT s.city, count(*) FROM sales.orders o JOIN stock.stores s"
        " ON s.store_code = o.store_code GROUP BY s.city ORDER BY s.city",
    ),
    Question(
        "How many products are active in garden, whichever way it is written?",
        "SELECT count(*) FROM stock.products WHERE category IN ('Garden', 'garden ')"
        " AND active = 'Y'",
    ),
    Question(
        "How many items of each product category were ordered?",
        "SELECT trim(lower(p.category)), sum(l.quantity::int) FROM sales.order_lines l"
        " JOIN stock.products p ON p.sku = l.sku GROUP BY 1 ORDER BY 1",
        (("order_lines", "quantity"),),
    ),
    Question(
        "What was paid back in refunds of damaged goods?",
        "SELECT sum(paid_back) FROM finance.refunds WHERE reason = 'damaged'",
    ),
    Question(
        "How many refunds are there by channel of the order?",
        "SELECT o.channel, count(*) FROM finance.refunds r JOIN sales.orders o"
        " ON o.order_no = r.order_no GROUP BY o.channel ORDER BY o.channel",
    ),
    Question(
        "What is the budget of the campaigns in May?",
        "SELECT sum(budget) FROM finance.campaigns WHERE month = 'May      '",
    ),
    Question(
        "How many clerks among the staff work full time?",
        "SELECT count(*) FROM people.staff WHERE role IN ('Clerk', 'clerk') AND full_time = 'J'",
    ),
    Question(
        "How many tickets of priority P1 were opened by wholesale customers?",
        "SELECT count(*) FROM support.tickets t JOIN sales.customers c"
        " ON c.customer_no = t.customer_no WHERE t.priority = 'P1' AND c.segment = 'Wholesale'",
    ),
    Question(
        "How many seconds did visits take on average by device?",
        "SELECT device, avg(seconds::int) FROM web.visits GROUP BY device ORDER BY device",
        (("visits", "seconds"),),
    ),
)
