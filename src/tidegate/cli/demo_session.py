"""The calls of the demo: an agent's work with the shop, shown and checked.

It lists, describes and queries, tries a DELETE that must be refused, and counts the rows again.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from tidegate.cli.demo_mcp_client import DemoMcpClient
from tidegate.cli.terminal import color, show
from tidegate.config.installation import as_typed
from tidegate.errors import Code, TidegateError
from tidegate.product import DemoSource

_BY_COUNTRY = """
SELECT n.name AS country, count(*) AS orders, sum(o.total_cents) / 100 AS revenue
FROM orders o JOIN customers c ON c.id = o.customer_id JOIN countries n ON n.code = c.country_code
WHERE o.currency = 'EUR' AND o.status <> 'cancelled'
GROUP BY n.name ORDER BY revenue DESC LIMIT 5"""
_SCRIPTS = """
SELECT name, language, born_on FROM customers
WHERE language IN ('el', 'uk', 'ar', 'he', 'hi', 'zh', 'ja', 'ko') GROUP BY language LIMIT 8"""
_COUNT = "SELECT count(*) AS reviews FROM reviews"
_DELETE = "DELETE FROM reviews WHERE rating = 1"

_WIDEST = 96
_MOST_LINES = 10


class DemoSession:
    """The demo's calls with `client`; an unexpected answer is a TidegateError. `others`
    are the names of further sources with a query: with several sources each call names one."""

    def __init__(
        self, client: DemoMcpClient, others: Sequence[tuple[str, DemoSource]] = ()
    ) -> None:
        self._client = client
        self._others = others

    def hold(self) -> None:
        """Make and show all calls. Raises: TidegateError INTERNAL, SOURCE_UNREACHABLE."""
        names = self._client.tool_names()
        self._show("tools/list", ", ".join(names))
        self._expect("shop", self._ask("sources", {}))
        self._expect("orders", self._ask("search", {"words": "customer orders"}))
        self._expect("customer_id", self._ask("describe", {"tables": ["orders", "customers"]}))
        self._expect("Germany", self._ask("query", {"sql": _BY_COUNTRY}))
        self._expect('"ja"', self._ask("query", {"sql": _SCRIPTS}))
        before = self._ask("query", {"sql": _COUNT})
        self._ask("query", {"sql": _DELETE}, refused=True)
        after = self._ask("query", {"sql": _COUNT})
        if before != after:
            raise _fault(f"The refused DELETE changed the table: {before} became {after}")
        for name, other in self._others:
            self._expect(other.answer, self._ask("query", {"sql": other.query}, source=name))
        show(color("✓ the DELETE was refused and not a row is missing", "32"))
        show(f"Next, with a database of yours: {as_typed('tidegate setup')}")

    def _ask(
        self,
        tool: str,
        arguments: dict[str, Any],
        *,
        source: str = "shop",
        refused: bool = False,
    ) -> str:
        named = {"source": source} if self._others and tool != "sources" else {}
        text, is_error = self._client.call(tool, arguments | named)
        words = " ".join(
            value if isinstance(value, str) else json.dumps(value) for value in arguments.values()
        )
        self._show(f"{tool} {words}", text, "33" if is_error else "0")
        if is_error is not refused:
            raise _fault(f"{tool} was {'refused' if is_error else 'not refused'}: {text[:200]}")
        return text

    def _expect(self, word: str, text: str) -> None:
        if word not in text:
            raise _fault(f"{word!r} is missing in the answer: {text[:200]}")

    def _show(self, request: str, answer: str, code: str = "0") -> None:
        show(color("→ ", "36") + color(" ".join(request.split()), "1"))
        lines = [line for row in answer.splitlines() for line in _rows_apart(row)]
        for line in lines[:_MOST_LINES]:
            show("  " + color(line if len(line) <= _WIDEST else line[: _WIDEST - 1] + "…", code))
        if len(lines) > _MOST_LINES:
            show(color(f"  … {len(lines) - _MOST_LINES} more lines", "2"))
        show()


def _rows_apart(line: str) -> list[str]:
    """A result's JSON with one row on each line; any other line as it is."""
    if not line.startswith('{"columns":'):
        return [line]
    result: dict[str, list[Any]] = json.loads(line)
    return [json.dumps(row, ensure_ascii=False) for row in (result["columns"], *result["rows"])]


def _fault(message: str) -> TidegateError:
    return TidegateError(Code.INTERNAL, message, hint="Please report this.")
