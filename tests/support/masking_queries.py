"""Writes queries over the shop as reporting tools do: joins, subqueries, CTEs, views, windows."""

from __future__ import annotations

from random import Random

TABLES = {
    "customers": {"id": "i", "name": "t", "email": "t", "phone": "t", "spent": "i"},
    "orders": {
        "id": "i", "customer_id": "i", "tenant_id": "i", "total": "i", "notes": "t", "memo": "t",
    },
    "products": {"id": "i", "title": "t", "price": "i"},
    "vip": {"id": "i", "contact": "t", "phone": "t"},
    "vip_orders": {"id": "i", "contact": "t", "notes": "t", "total": "i"},
    "cheap": {"id": "i", "title": "t", "price": "i"},
}  # fmt: skip
_TEXTS = ("'Customer 3'", "'secret1@mail.example'", "'secretmemo'", "'x***@x.io'", "''")
_LIKES = ("'C%'", "'secret%'", "'%a%'", "'%***%'", "'_1%'")


class Writer:
    """Writes one query; every choice is random."""

    def __init__(self, rng: Random, engine: str) -> None:
        self._rng = rng
        self._engine = engine
        self._names = 0
        self._ctes: dict[str, dict[str, str]] = {}

    def query(self) -> str:
        lead = self._with() if self._chance(0.4) else ""
        kind = self._rng.choice(("all", "list", "list", "group", "window", "set", "page"))
        if kind == "set":
            word = self._rng.choice(("UNION", "UNION ALL", "EXCEPT", "INTERSECT"))
            return f"{lead}{self._pair()} {word} {self._pair()}"
        if kind == "page":
            return f"{lead}{self._pair()} ORDER BY 1, 2 LIMIT {self._rng.randint(1, 9)}"
        if kind == "group":
            sources, columns = self._sources(2)
            name = self._column(columns)
            number = self._column(columns, "i")
            text = (
                f"SELECT {name} AS g, count(*) AS n, sum({number}) AS s,"
                f" max({self._column(columns)}) AS m FROM {sources}"
                f"{self._where(columns, 2)} GROUP BY {name}"
            )
            return f"{lead}{text} HAVING count(*) > 1" if self._chance(0.3) else lead + text
        if kind == "window":
            sources, columns = self._sources(1)
            over = f"PARTITION BY {self._column(columns)}"
            return (
                f"{lead}SELECT {self._column(columns)} AS a, count(*) OVER ({over}) AS n,"
                f" rank() OVER (ORDER BY {self._column(columns, 'i')}) AS r FROM {sources}"
            )
        sources, columns = self._sources(3)
        if kind == "all":
            return f"{lead}SELECT * FROM {sources}{self._where(columns, 2)}"
        items = ", ".join(f"{self._value(columns)} AS v{n}" for n in range(self._rng.randint(1, 4)))
        distinct = "DISTINCT " if self._chance(0.2) else ""
        return f"{lead}SELECT {distinct}{items} FROM {sources}{self._where(columns, 2)}"

    def _chance(self, share: float) -> bool:
        return self._rng.random() < share

    def _fresh(self, start: str = "t") -> str:
        self._names += 1
        return f"{start}{self._names}"

    def _with(self) -> str:
        parts: list[str] = []
        for _ in range(self._rng.randint(1, 2)):
            name = self._fresh("cte")
            if self._engine != "sqlite" and self._chance(0.3):
                name = self._rng.choice(("orders", "customers", "products"))
                if name in self._ctes:
                    continue
            table, columns = self._rng.choice(list(TABLES.items()))
            if table in self._ctes:
                table, columns = "cheap", TABLES["cheap"]
            body = f"SELECT * FROM {table}"
            if self._chance(0.4):
                body += f" WHERE {self._predicate({f'{table}.{c}': k for c, k in columns.items()})}"
            parts.append(f"{name} AS ({body})")
            self._ctes[name] = columns
        return f"WITH {', '.join(parts)} " if parts else ""

    def _relation(self) -> tuple[str, str, dict[str, str]]:
        """A FROM item, what its columns are called by, its columns."""
        known = {**TABLES, **self._ctes}
        name, columns = self._rng.choice(list(known.items()))
        if self._chance(0.25):
            alias = self._fresh("d")
            inner = {f"{name}.{column}": kind for column, kind in columns.items()}
            where = f" WHERE {self._predicate(inner)}" if self._chance(0.5) else ""
            return f"(SELECT * FROM {name}{where}) AS {alias}", alias, columns
        alias = self._fresh()
        between = self._rng.choice((" ", " AS "))
        return f"{name}{between}{alias}", alias, columns

    def _sources(self, most: int) -> tuple[str, dict[str, str]]:
        if self._chance(0.2):
            name = self._rng.choice(list(TABLES))
            columns = {**TABLES, **self._ctes}[name]
            return name, {f"{name}.{column}": kind for column, kind in columns.items()}
        text, alias, columns = self._relation()
        seen = {f"{alias}.{column}": kind for column, kind in columns.items()}
        for _ in range(self._rng.randint(0, most - 1)):
            other, alias, columns = self._relation()
            new = {f"{alias}.{column}": kind for column, kind in columns.items()}
            kind = self._rng.choice(("t", "i", "i"))
            on = f"{self._column(seen, kind)} = {self._column(new, kind)}"
            text += f" {self._rng.choice(('JOIN', 'LEFT JOIN', 'INNER JOIN'))} {other} ON {on}"
            seen |= new
        return text, seen

    def _column(self, columns: dict[str, str], kind: str | None = None) -> str:
        return self._rng.choice([name for name, of in columns.items() if kind in (None, of)])

    def _where(self, columns: dict[str, str], most: int) -> str:
        parts = [self._predicate(columns) for _ in range(self._rng.randint(0, most))]
        return f" WHERE {self._rng.choice((' AND ', ' OR ')).join(parts)}" if parts else ""

    def _predicate(self, columns: dict[str, str]) -> str:
        number, text = self._column(columns, "i"), self._column(columns, "t")
        limit = self._rng.randint(0, 60)
        table, inner = self._rng.choice(list(TABLES.items()))
        alias = self._fresh("s")
        own = {f"{alias}.{column}": kind for column, kind in inner.items()}
        table = f"cheap AS {alias}" if table in self._ctes else f"{table} {alias}"
        if table.startswith("cheap AS"):
            own = {f"{alias}.{column}": kind for column, kind in TABLES["cheap"].items()}
        return self._rng.choice(
            (
                f"{number} {self._rng.choice(('<', '>=', '=', '<>'))} {limit}",
                f"{text} = {self._rng.choice(_TEXTS)}",
                f"{text} LIKE {self._rng.choice(_LIKES)}",
                f"{text} IS {self._rng.choice(('', 'NOT '))}NULL",
                f"{number} IN (SELECT {self._column(own, 'i')} FROM {table})",
                f"EXISTS (SELECT 1 FROM {table} WHERE {self._column(own, 'i')} = {number})",
                f"{number} < (SELECT max({self._column(own, 'i')}) FROM {table})",
                f"NOT ({number} BETWEEN 3 AND {limit})",
            )
        )

    def _value(self, columns: dict[str, str]) -> str:
        number, text = self._column(columns, "i"), self._column(columns, "t")
        name = self._rng.choice(list(TABLES))
        own = {**TABLES, **self._ctes}[name]
        return self._rng.choice(
            (
                self._column(columns),
                text,
                f"upper({text})",
                f"coalesce({text}, 'none')",
                f"CASE WHEN {number} > 10 THEN {text} ELSE 'low' END",
                f"(SELECT max({self._rng.choice(list(own))}) FROM {name})",
                f"{number} + 1",
            )
        )

    def _pair(self) -> str:
        sources, columns = self._sources(2)
        return (
            f"SELECT {self._column(columns, 't')} AS a, {self._column(columns, 'i')} AS b"
            f" FROM {sources}{self._where(columns, 1)}"
        )
