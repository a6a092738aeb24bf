"""Checks a table's columns of vectors: the model, missing and stale vectors, the index, its recall.

The recall is measured with the table's own vectors: for some of them, how many of the ten nearest
rows the index finds of those that comparing every vector finds.
"""

from __future__ import annotations

from math import sqrt
from typing import Any, Literal

import msgspec

from tidegate.errors import Code, TidegateError
from tidegate.model.requests import Browse
from tidegate.model.results import Page
from tidegate.model.schema import Catalog
from tidegate.search.embedding_job import DIGEST, Stale, count, find_stale, plan
from tidegate.search.hybrid import LEAST_CANDIDATES
from tidegate.search.model import SimilaritySearch
from tidegate.search.ranking import Handle, Search
from tidegate.search.requests import Embeddings, EmbedTexts
from tidegate.search.statements import Sql, rows_of
from tidegate.search.target import Target, VectorColumn, find_table, target_of
from tidegate.sql.dialects import find

PROBES = 20
NEAREST = 10
RECALL = 0.95
ALIKE = 0.9
SAMPLED = 3
SPREAD = 20_000
"""Rows of a large table of which those to measure with are chosen."""
TIE = 1e-6
"""Relative difference up to which two distances are the same: an index keeps them rounded."""
COMPARED = 50_000
"""Rows whose texts are compared with what their vectors were made of."""
LARGE = 10_000
"""Rows from which on a search without an index takes long."""

Level = Literal["ok", "note", "fault"]


class Finding(msgspec.Struct, frozen=True):
    """One thing that was found out about a column; `hint` says what to do."""

    level: Level
    column: str
    text: str
    hint: str = ""


async def check_table(handle: Handle, table: str) -> list[Finding]:
    """What was found out. Raises: TidegateError TABLE_UNKNOWN, UNSUPPORTED, and what the gate
    raises."""
    catalog = await handle(Browse("catalog"), Catalog)
    target = target_of(catalog, find_table(catalog, table))
    findings: list[Finding] = []
    if not target.vectors:
        text = target.texts[0] if target.texts else "COLUMN"
        findings.append(
            Finding(
                *("note", target.table.name, "there is no column of vectors"),
                f"Fill one: `tidegate embed SOURCE {target.table.name} {text}`",
            )
        )
    for column in target.vectors:
        findings += await _check_column(handle, catalog, target, column)
    return findings


async def _check_column(
    handle: Handle, catalog: Catalog, target: Target, column: VectorColumn
) -> list[Finding]:
    findings = await _check_model(handle, target, column)
    findings += await _check_rows(handle, target, column)
    if find(target.dialect).vectors == "typed":
        wanted = SimilaritySearch(target.table.name, "recall", NEAREST)
        # With as many candidates as a search has: the index is searched as hard.
        search = Search(handle, catalog, target, wanted, LEAST_CANDIDATES)
        findings += await _check_index(search, column)
    return findings


async def _check_model(handle: Handle, target: Target, column: VectorColumn) -> list[Finding]:
    """Whether the model has the column's dimensions, and makes its vectors of its texts."""
    name = column.name
    place = f"{target.table.schema}.{target.table.name}"
    texts, vectors = await _sample(handle, target, column, SAMPLED)
    shown = tuple(texts) if texts and all(text.strip() for text in texts) else ("model",)
    try:
        made = await handle(EmbedTexts(shown, "document", place, name), Embeddings)
    except TidegateError as error:
        if not error.code.value.startswith(("provider.", "embedding.")):
            raise
        return [Finding("fault", name, f"the model cannot be asked: {error.message}", error.hint)]
    dimensions = column.dimensions or (len(vectors[0]) if vectors else 0)
    if dimensions and dimensions != made.dimensions:
        return [
            Finding(
                *("fault", name),
                f"its vectors have {dimensions} dimensions, and those of {made.model} have"
                f" {made.dimensions}",
                "Configure the model that made them (`embeddings.columns`), or embed again with"
                " `tidegate embed --replace`.",
            )
        ]
    if column.text is None or not vectors or shown == ("model",) or column.kind == "bit":
        return [
            Finding(
                "note",
                name,
                "which texts its vectors are of is not known, so the model was not compared",
                "Name the column of texts in `embeddings.columns`.",
            )
        ]
    likeness = [_cosine(a, b) for a, b in zip(made.vectors, vectors, strict=True)]
    lowest = min(likeness)
    if lowest < ALIKE:
        return [
            Finding(
                *("fault", name),
                f"{made.model} makes other vectors of its texts (cosine {lowest:.2f} for one of"
                f" {len(likeness)})",
                "The vectors are of another model, or the texts have changed: configure the model"
                " that made them, or run `tidegate embed`.",
            )
        ]
    return [Finding("ok", name, f"{made.model} made its vectors (cosine {lowest:.2f} or more)")]


async def _sample(
    handle: Handle, target: Target, column: VectorColumn, most: int, *, spread: float | None = None
) -> tuple[list[str], list[list[float]]]:
    """Some texts of the column with their stored vectors: of its first rows, or from all over the
    table with `spread`, about how many rows it has."""
    sql = Sql(target)
    text = sql.prefix(column.text) if column.text is not None else "''"
    others = f" AND {sql.name(column.text)} <> ''" if column.text is not None else ""
    vector = sql.name(column.name)
    kept = find(sql.dialect).vectors
    shown = {"typed": f"{vector}::text", "bytes": f"vec_to_json({vector})"}.get(kept, vector)
    where = f"WHERE {vector} IS NOT NULL{others}"
    rows: list[list[Any]] = []
    if spread is not None:
        # The order of digests has nothing to do with the order in which rows were written.
        share = min(100.0, 100.0 * SPREAD / max(spread, 1.0))
        sample = f" TABLESAMPLE BERNOULLI ({share:.6f}) REPEATABLE (1)" if share < 100.0 else ""
        order = f"md5({vector}::text)"
        query = f"SELECT {text}, {shown} FROM {sql.table}{sample} {where} ORDER BY {order}"
        try:
            rows = rows_of(await handle(sql.query(f"{query} LIMIT {most}", most), Page))
        except TidegateError as error:
            # Masks and row filters put a query in the table's place, of which there are no samples.
            if error.code is not Code.SQL_FAILED:
                raise
    if len(rows) < most:
        query = f"SELECT {text}, {shown} FROM {sql.table} {where} LIMIT {most}"
        rows = rows_of(await handle(sql.query(query, most), Page))
    return [str(row[0]) for row in rows], [_parsed(row[1]) for row in rows]


def _parsed(value: Any) -> list[float]:
    """A vector as the database shows it."""
    if isinstance(value, list):
        return [float(each) for each in value]  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType] - JSON
    text = str(value)
    if text.startswith("{"):  # a sparse one
        pairs, _, size = text.partition("}/")
        dense = [0.0] * int(size)
        for pair in pairs.strip("{").split(","):
            at, _, number = pair.partition(":")
            if number:
                dense[int(at) - 1] = float(number)
        return dense
    if text.startswith("["):
        return msgspec.json.decode(text.encode(), type=list[float])
    return [float(bit) for bit in text]


def _cosine(a: Any, b: Any) -> float:
    if len(a) != len(b):
        return 0.0
    lengths = sqrt(sum(x * x for x in a)) * sqrt(sum(y * y for y in b))
    return sum(x * y for x, y in zip(a, b, strict=True)) / lengths if lengths else 0.0


async def _check_rows(handle: Handle, target: Target, column: VectorColumn) -> list[Finding]:
    """Rows whose text has no vector, or one of another model."""
    name, text = column.name, column.text
    if text is None:
        return []
    again = f"tidegate embed SOURCE {target.table.name} {text}"
    if any(each.name == f"{name}{DIGEST}" for each in target.table.columns):
        place = f"{target.table.schema}.{target.table.name}"
        try:
            job = await plan(handle, place, text, name)
        except TidegateError as error:
            if error.code is not Code.EMBEDDING_DIMENSION:
                raise
            return []  # said before
        counts = await count(handle, job)
        findings: list[Finding] = []
        if counts.missing:
            shown = f"{counts.missing:,} of {counts.texts:,} texts have no vector"
            findings.append(Finding("fault", name, shown, f"Run {again}"))
        if counts.other_model:
            shown = f"{counts.other_model:,} vectors are of another model"
            findings.append(Finding("fault", name, shown, f"Run {again} --replace"))
        findings += _stale(name, await find_stale(handle, job, COMPARED), again)
        return findings or [Finding("ok", name, f"all {counts.texts:,} texts have their vector")]
    sql = Sql(target)
    where = f"{sql.name(text)} <> '' AND {sql.name(name)} IS NULL"
    query = f"SELECT count(*) FROM {sql.table} WHERE {where}"
    missing = int(rows_of(await handle(sql.query(query, 1), Page))[0][0])
    if missing:
        return [Finding("fault", name, f"{missing:,} texts have no vector", f"Run {again}")]
    return [
        Finding(
            "note",
            name,
            "whether its vectors are stale is not known: there are no digests",
            f"{again} keeps digests; use it from now on.",
        )
    ]


def _stale(name: str, stale: Stale | None, again: str) -> list[Finding]:
    if stale is None:
        return []
    of = f" of the first {stale.read:,} rows" if stale.read >= COMPARED else ""
    shown = {
        f"{stale.changed:,} vectors{of} are of texts that have changed since": stale.changed,
        f"{stale.gone:,} vectors{of} are of texts that have gone": stale.gone,
    }
    return [Finding("fault", name, text, f"Run {again}") for text, count in shown.items() if count]


async def _check_index(search: Search, column: VectorColumn) -> list[Finding]:
    from tidegate.search.postgres_vectors import (
        by_index,
        choose_index,
        exact,
        indexes_of,
        metric_of,
    )

    target, name = search.target, column.name
    findings: list[Finding] = []
    usable = indexes_of(target, column, Sql(target))
    for index in target.table.indexes:
        over = any(name in each for each in index.columns)
        if not over or index.kind not in ("hnsw", "ivfflat") or index in [u.index for u in usable]:
            continue
        why = (
            "it is partial, or was never finished"
            if not index.usable
            else f"its operator class {', '.join(index.operators)} serves no search"
        )
        findings.append(
            Finding(
                "fault",
                name,
                f"the index {index.name} cannot be used: {why}",
                f"DROP INDEX {index.name}, and create a new one.",
            )
        )
    chosen, notes = choose_index(usable, search.wanted.distance_metric)
    rows = target.table.approximate_rows or 0
    if chosen is None:
        level: Level = "fault" if rows >= LARGE else "note"
        operators = f"{column.kind}_cosine_ops"
        findings.append(
            Finding(
                level,
                name,
                f"there is no index{f' for about {rows:,.0f} rows' if rows else ''}: all rows are"
                " compared",
                f"CREATE INDEX ON {Sql(target).table} USING hnsw ({name} {operators});",
            )
        )
        return findings
    findings += [Finding("note", name, note) for note in notes]
    if chosen.word == "l1":
        return findings  # no search compares by it, so there is nothing to measure against
    # By the metric of the index: another ranks other rows first.
    metric = metric_of(chosen) or search.wanted.distance_metric
    search = search._replace(wanted=msgspec.structs.replace(search.wanted, distance_metric=metric))
    _, vectors = await _sample(search.handle, target, column, PROBES, spread=rows)
    hits = wanted = 0
    used: str | None = None
    for vector in vectors:
        near = await by_index(search, column, vector, chosen)
        truth = (await exact(search, column, vector, ())).rows[:NEAREST]
        used = near.index
        # A row as near as the last of the nearest is no miss: which of them comes first is chance.
        farthest = truth[-1][1] if truth else 0.0
        reach = farthest + TIE * max(1.0, abs(farthest))
        found = [distance for _, distance in near.rows[: len(truth)] if distance <= reach]
        hits += len(found)
        wanted += len(truth)
    if not wanted:
        return findings
    recall = hits / wanted
    shown = (
        f"the index {chosen.index.name} finds {recall:.0%} of the nearest {NEAREST}"
        f" ({len(vectors)} vectors of the table)"
    )
    if used is None:
        shown += "; the planner did not use it"
    if recall < RECALL:
        hint = "Create a new one with a higher ef_construction (hnsw) or more lists (ivfflat)."
        findings.append(Finding("fault", name, shown, hint))
    else:
        findings.append(Finding("ok", name, shown))
    return findings
