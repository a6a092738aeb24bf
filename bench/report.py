"""Renders the results of a run for a reader: the aims first, then a table for each workload.

It judges whether each aim is met. Pure: results in, Markdown out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

from bench.engines import CONTESTANTS
from bench.figures import Spread, increments, paired, spread
from bench.layers import CHANGE_BARE, CHANGE_UNSYNCED, MASK_FRESH, STAGES
from bench.path import FIGURES
from bench.points import ENGINES
from bench.servers import BEFORE, FLOOR, GATE, TOOLBOX

Results = dict[str, Any]
Rows = dict[str, list[dict[str, float]]]

_POINT_KINDS = {
    "repeated": "one text repeated, 32 clients (caches warm)",
    "fresh": "a new literal each call, 32 clients (caches by text cold)",
}
POINT_TITLES = {f"point-{kind}": f"Point query, {how}" for kind, how in _POINT_KINDS.items()} | {
    f"point-{engine.lower()}-{kind}": f"Point query on {engine}, {how}"
    for engine in ENGINES
    for kind, how in _POINT_KINDS.items()
}
LATENCY_TITLES = {
    "latency-point": "Point query, one text repeated",
    "latency-1000": "1,000 rows x 8",
    "latency-10000": "10,000 rows x 8",
    "latency-tools-list": "tools/list",
}


CLOCKS = ("cpu", "wall")
_SHORT = {FLOOR: "floor", TOOLBOX: "Toolbox", BEFORE: "before"}
"""The servers that others are compared with."""


class Aim(NamedTuple):
    """A figure that a measurement must not exceed: what it is and its limit."""

    what: str
    limit: float
    digits: int
    find: Callable[[Results], float]


def _median(workload: str, key: str, unit: float = 1.0) -> Callable[[Results], float]:
    return lambda workloads: spread(_series(workloads[workload], GATE, key)).median / unit


def _ratio(
    workload: str, key: str, to: str, *, inverse: bool = False
) -> Callable[[Results], float]:
    def find(workloads: Results) -> float:
        of, other = (_series(workloads[workload], name, key) for name in (GATE, to))
        return (paired(other, of) if inverse else paired(of, other)).median

    return find


def _for_a_question(key: str, unit: float = 1.0) -> Callable[[Results], float]:
    def find(workloads: Results) -> float:
        row = workloads["defog"][GATE][0]
        return row[key] / row["questions"] / unit

    return find


def _growth(workloads: Results) -> float:
    row = workloads["memory"][GATE][0]
    at_last = [value for key, value in row.items() if key.endswith(" calls")][-1]
    return (at_last - row["30000 calls"]) / 1e6


def _beside_driver(question: str) -> Callable[[Results], float]:
    """The worst engine's CPU over its driver's."""

    def find(workloads: Results) -> float:
        rows: Rows = workloads["engines"]
        return max(
            paired(_series(rows, name, "engine cpu"), _series(rows, name, "driver cpu")).median
            for name in rows
            if rows[name] and name.endswith(f", {question}")
        )

    return find


def _engine(name: str, key: str, unit: float) -> Callable[[Results], float]:
    return lambda workloads: spread(_series(workloads["engines"], name, key)).median / unit


def _engine_to_driver(name: str, what: str) -> Callable[[Results], float]:
    def find(workloads: Results) -> float:
        rows: Rows = workloads["engines"]
        return paired(
            _series(rows, name, f"engine {what}"), _series(rows, name, f"driver {what}")
        ).median

    return find


def _layer(of: str, less: str = "") -> Callable[[Results], float]:
    """Milliseconds of CPU of a call in process, over those of another one; the worst engine's."""

    def find(workloads: Results) -> float:
        found = [rounds for rounds in workloads["layers"].values() if rounds]
        return max(
            spread([row[f"{of} cpu"] - row.get(f"{less} cpu", 0) for row in rounds]).median * 1e3
            for rounds in found
        )

    return find


AIMS = (
    Aim("CPU per point query, ms", 0.28, 3, _median("point-repeated", "cpu_per_call", 1e-3)),
    Aim(
        "the same over the floor (0.28 to 0.14 where the aim was set)",
        2.0,
        2,
        _ratio("point-repeated", "cpu_per_call", FLOOR),
    ),
    Aim(
        "calls/s: Toolbox over Tidegate",
        1.0,
        2,
        _ratio("point-repeated", "calls_per_s", TOOLBOX, inverse=True),
    ),
    Aim(
        "a new literal each call: CPU over the Toolbox",
        1.0,
        2,
        _ratio("point-fresh", "cpu_per_call", TOOLBOX),
    ),
    *(
        Aim(
            f"point query on PostgreSQL, {kind}: CPU over the Toolbox",
            1.0,
            2,
            _ratio(f"point-postgresql-{kind}", "cpu_per_call", TOOLBOX),
        )
        for kind in ("repeated", "fresh")
    ),
    Aim(
        "the same, repeated, calls/s: Toolbox over Tidegate",
        1.0,
        2,
        _ratio("point-postgresql-repeated", "calls_per_s", TOOLBOX, inverse=True),
    ),
    Aim("10,000 rows: CPU over the floor", 1.2, 2, _ratio("latency-10000", "cpu_per_call", FLOOR)),
    *(
        Aim(
            f"{rows} rows, worst engine: CPU over its driver",
            1.2,
            2,
            _beside_driver(f"{rows} rows"),
        )
        for rows in ("10,000", "100,000")
    ),
    Aim(
        "schema of 212 tables on PostgreSQL, ms",
        50,
        1,
        _engine("PostgreSQL, schema of 212 tables", "engine wall", 1e-3),
    ),
    *(
        Aim(
            f"schema of 1,000 tables on PostgreSQL, {what} over the driver",
            limit,
            2,
            _engine_to_driver("PostgreSQL, schema of 1,000 tables", what),
        )
        for what, limit in (("wall", 1.5), ("cpu", 3))
    ),
    Aim("a masked statement with a new literal, in process, CPU ms", 0.2, 2, _layer(MASK_FRESH)),
    Aim(
        "a change, in process, without the syncs, CPU ms over the engine",
        0.2,
        2,
        _layer(CHANGE_UNSYNCED, CHANGE_BARE),
    ),
    Aim(
        "the gate on a point query of SQLite, in process, CPU µs more",
        120,
        1,
        lambda workloads: sum(
            share * spread(_series(workloads["layers"], "SQLite", f"{stage} cpu")).median * 1e6
            for stage, share in (("HTTP edge", 1), ("engine", -1))
        ),
    ),
    Aim("10,000 rows: MB of answer", 1.3, 2, _median("latency-10000", "answer_bytes", 1e6)),
    Aim("cold start, s of CPU to the first answer", 0.15, 3, _median("cold-start", "cpu")),
    Aim("find-and-query conversation, bytes", 2300, 0, _median("tokens", "total")),
    Aim("16 questions on an unknown database, calls", 10, 0, _median("analyst", "calls")),
    Aim("16 questions on an unknown database, kB", 16, 1, _median("analyst", "total", 1e3)),
    Aim("the same on PostgreSQL, calls", 10, 0, _median("analyst-postgresql", "calls")),
    Aim("the same on PostgreSQL, kB", 16, 1, _median("analyst-postgresql", "total", 1e3)),
    Aim("a question on Defog's databases, calls", 2.05, 2, _for_a_question("calls")),
    Aim("a question on Defog's databases, kB", 2.0, 1, _for_a_question("conversations", 1e3)),
    Aim(
        "hybrid search of 50,000 rows, median ms",
        50,
        1,
        lambda workloads: _only(workloads["hybrid"])["hybrid_median_ms"],
    ),
    Aim(
        "the ten nearest rows of 50,000 that its index misses, %",
        5,
        1,
        lambda workloads: 100 * (1 - _only(workloads["hybrid"])["recall_at_10"]),
    ),
    Aim("MB resident after start", 60, 1, _median("memory", "listening", 1e6)),
    Aim("MB resident after the first answer", 60, 1, _median("memory", "first answer", 1e6)),
    Aim("MB more from 30,000 to 100,000 calls", 2.0, 1, _growth),
)


def render(results: Results) -> str:
    """The whole report as Markdown."""
    workloads = results["workloads"]
    aims = _aims(workloads, partial=results.get("partial", False))
    parts = [_head(results), *([aims] if aims else [])]
    if results["failures"]:
        lines = [f"- {name}: {reason}\n" for name, reason in results["failures"].items()]
        parts.append("## Ended by a wrong answer\n\n" + "".join(lines))
    parts += [_point(title, workloads[name]) for name, title in POINT_TITLES.items()
              if name in workloads]  # fmt: skip
    if any(name in workloads for name in LATENCY_TITLES):
        parts.append("## Latency over HTTP, one client\n")
        parts += [_latency(title, workloads[name]) for name, title in LATENCY_TITLES.items()
                  if name in workloads]  # fmt: skip
    for name, table in (
        ("cold-start", _cold_start),
        ("memory", _memory),
        ("tokens", _tokens),
        ("analyst", _analyst),
        ("analyst-postgresql", _analyst_on_postgresql),
        ("defog", _defog),
        ("engines", _engines),
        ("export", _export),
        ("layers", _layers),
        ("path", _path),
        ("judge", _judge),
        ("hybrid", _hybrid),
    ):
        if name in workloads:
            parts.append(table(workloads[name]))
    return "\n".join(parts)


def _only(rows: Rows) -> dict[str, float]:
    """The one row of a workload that has one."""
    (rounds,) = rows.values()
    return rounds[0]


def _head(results: Results) -> str:
    versions = ", ".join(f"{name} {version}" for name, version in results["versions"].items())
    loads = "; ".join(
        f"{name} {before:.1f} to {after:.1f}" for name, (before, after) in results["loads"].items()
    )
    return f"""# Speed and size

{results["date"]}, {results["machine"]}.
{versions}.
Load average before and after each workload: {loads}.

Medians over {results["rounds"]} interleaved rounds, with the least and the greatest in brackets;
a ratio is the median of the ratios of each round. CPU is the server's, children included. Client
and server share the machine, and other work ran beside them: trust ratios before milliseconds.
How it is measured: [README.md](README.md).
"""


def _aims(workloads: Results, *, partial: bool) -> str:
    """Of a partial run those alone that were measured."""
    lines: list[tuple[str, ...]] = []
    for aim in AIMS:
        try:
            value = aim.find(workloads)
        except (KeyError, IndexError):
            if not partial:
                lines.append((aim.what, f"{aim.limit:,g}", "not measured", ""))
            continue
        met = "met" if value <= aim.limit else "**not met**"
        lines.append((aim.what, f"{aim.limit:,g}", f"{value:,.{aim.digits}f}", met))
    if not lines:
        return ""
    return "## Aims\n\n" + _table(("aim (Tidegate core)", "at most", "measured", ""), lines)


def _point(title: str, rows: Rows) -> str:
    others = [name for name in _SHORT if name in rows]
    header = (
        "server", "calls/s", "CPU ms/call",
        *(f"calls/s to {_SHORT[other]}" for other in others),
        *(f"CPU to {_SHORT[other]}" for other in others),
        "p50 / p99 ms", "client CPU ms/call", "RSS MB",
    )  # fmt: skip
    lines = [
        (
            name,
            _spread(rows, name, "calls_per_s").show(0),
            _spread(rows, name, "cpu_per_call").show(3, 1e-3),
            *(_to(rows, name, other, "calls_per_s") for other in others),
            *(_to(rows, name, other, "cpu_per_call") for other in others),
            _latencies(rows, name),
            f"{_spread(rows, name, 'client_cpu_per_call').median * 1e3:.3f}",
            f"{_spread(rows, name, 'rss').high / 1e6:.0f}",
        )
        if rounds
        else (name, *("",) * (len(header) - 1))
        for name, rounds in rows.items()
    ]
    return f"## {title}\n\n{_table(header, lines)}"


def _latency(title: str, rows: Rows) -> str:
    header = (
        "server", "p50 ms", "p99 ms", "p50 to floor", "CPU ms/call", "CPU to floor",
        "answer bytes",
    )  # fmt: skip
    lines = [
        (
            name,
            _spread(rows, name, "p50").show(2, 1e-3),
            f"{_spread(rows, name, 'p99').median * 1e3:.2f}",
            _to(rows, name, FLOOR, "p50"),
            _spread(rows, name, "cpu_per_call").show(2, 1e-3),
            _to(rows, name, FLOOR, "cpu_per_call"),
            f"{rows[name][0]['answer_bytes']:,.0f}",
        )
        for name in rows
    ]
    return f"### {title}\n\n{_table(header, lines)}"


def _cold_start(rows: Rows) -> str:
    others = [name for name in (FLOOR, BEFORE) if name in rows]
    header = (
        "server", "first answer s", "CPU s to it", *(f"CPU to {_SHORT[other]}" for other in others),
        "CPU s with its end", "RSS MB",
    )  # fmt: skip
    lines = [
        (
            name,
            _spread(rows, name, "first_answer").show(3),
            _spread(rows, name, "cpu").show(3),
            *(_to(rows, name, other, "cpu") for other in others),
            _spread(rows, name, "cpu_whole_life").show(3),
            _spread(rows, name, "rss").show(0, 1e6),
        )
        for name in rows
    ]
    return f"## Cold start over stdio: start to the first answered query\n\n{_table(header, lines)}"


def _memory(rows: Rows) -> str:
    lines = [
        (name, ", ".join(f"{key}: {value / 1e6:.1f}" for key, value in one[0].items()))
        for name, one in rows.items()
    ]
    title = "Memory over HTTP, MB resident, point queries with new texts"
    return f"## {title}\n\n{_table(('server', 'after'), lines)}"


def _tokens(rows: Rows) -> str:
    keys = ("tools", "definitions", "conversation", "total")
    lines = [(name, *(f"{one[0][key]:,.0f}" for key in keys)) for name, one in rows.items()]
    title = "Bytes a model reads and writes to find two of 212 tables and join them"
    return f"## {title}\n\n{_table(('server', *keys), lines)}"


def _analyst(rows: Rows) -> str:
    return _questions(rows, "an unknown database of 220 tables")


def _analyst_on_postgresql(rows: Rows) -> str:
    return _questions(rows, "an unknown PostgreSQL of 74 tables in six schemas")


def _questions(rows: Rows, database: str) -> str:
    keys = ("calls", "definitions", "conversation", "total")
    lines = [
        (name, *(f"{one[0][key]:,.0f}" for key in keys)) if one else (name, *("",) * len(keys))
        for name, one in rows.items()
    ]
    title = f"Calls and bytes for 16 questions on {database}"
    return f"## {title}\n\n{_table(('server', *keys), lines)}"


def _defog(rows: Rows) -> str:
    keys = ("questions", "calls", "most calls", "definitions", "conversations")
    lines = [
        (name, *(f"{one[0][key]:,.0f}" for key in keys)) if one else (name, *("",) * len(keys))
        for name, one in rows.items()
    ]
    title = "Calls and bytes for the questions on Defog's databases"
    return f"## {title}\n\n{_table(('server', *keys), lines)}"


def _engines(rows: Rows) -> str:
    queries = (
        "engine, question", "driver CPU ms", "engine to driver", "gate to driver",
        "driver wall ms", "engine to driver", "gate to driver",
    )  # fmt: skip
    schemas = (
        "engine, schema", "driver wall ms", "engine wall ms", "CPU to driver", "wall to driver",
        "gate, kept: wall ms",
    )  # fmt: skip
    asked: list[tuple[str, ...]] = []
    read: list[tuple[str, ...]] = []
    for name, rounds in rows.items():
        if not rounds:
            asked.append((name, *("",) * 6))
        elif "schema" in name:
            read.append(
                (
                    name,
                    *(_spread(rows, name, f"{who} wall").show(1, 1e-3) for who in CONTESTANTS[:2]),
                    *(_over(rows, name, f"engine {what}", f"driver {what}") for what in CLOCKS),
                    _spread(rows, name, "gate wall").show(3, 1e-3),
                )
            )
        else:
            line = [name]
            for what in CLOCKS:
                digits = 3 if "point" in name else 1
                line.append(_spread(rows, name, f"driver {what}").show(digits, 1e-3))
                line += [
                    _over(rows, name, f"{who} {what}", f"driver {what}") for who in CONTESTANTS[1:]
                ]
            asked.append(tuple(line))
    return (
        f"## The engines and their bare drivers, in process\n\n{_table(queries, asked)}\n"
        f"### A whole schema, twenty columns a table\n\n{_table(schemas, read)}"
    )


def _export(rows: Rows) -> str:
    header = ("engine", "MB before", "MB more at the peak", "MB written", "seconds", "CPU s")
    lines = [
        (
            name,
            _spread(rows, name, "before").show(0, 1e6),
            spread([row["peak"] - row["before"] for row in rounds]).show(1, 1e6),
            f"{rounds[0]['written'] / 1e6:.1f}",
            *(_spread(rows, name, key).show() for key in ("wall", "cpu")),
        )
        if rounds
        else (name, *("",) * 5)
        for name, rounds in rows.items()
    ]
    return f"## Memory of an export of 100,000 rows as CSV\n\n{_table(header, lines)}"


def _layers(rows: Rows) -> str:
    parts = ["## What each layer of the gate adds to a point query, in process\n"]
    for engine, rounds in rows.items():
        if not rounds:
            parts.append(f"{engine}.\n")
            continue
        cpu = {name: spread([row[f"{name} cpu"] for row in rounds]) for name in _names(rounds)}
        wall = {name: spread([row[f"{name} wall"] for row in rounds]) for name in _names(rounds)}
        header = ("layer", "adds CPU µs", "of the whole", "CPU µs with it", "wall µs with it")
        lines = [
            (
                name,
                f"{more * 1e6:.1f}",
                f"{share:.0%}",
                cpu[name].show(1, 1e-6),
                wall[name].show(1, 1e-6),
            )
            for name, more, share in increments([(name, cpu[name].median) for name in STAGES])
        ]
        parts.append(f"### {engine}\n\n{_table(header, lines)}")
        header = ("a call that is no ordinary one", "CPU µs", "wall µs")
        others = [name for name in cpu if name not in STAGES]
        lines = [(name, cpu[name].show(0, 1e-6), wall[name].show(0, 1e-6)) for name in others]
        parts.append(_table(header, lines))
    return "\n".join(parts)


def _names(rounds: list[dict[str, float]]) -> list[str]:
    return [key.removesuffix(" cpu") for key in rounds[0] if key.endswith(" cpu")]


def _path(rows: Rows) -> str:
    lines = [
        (name, *(f"{rounds[0][figure]:.0f}" if rounds else "" for figure in FIGURES))
        for name, rounds in rows.items()
    ]
    title = "What a call crosses inside of the package, from the request to the reply"
    return f"## {title}\n\n{_table(('engine, statement', *FIGURES), lines)}"


def _judge(rows: Rows) -> str:
    header = (
        "dialect, statement",
        "bytes",
        "cached µs",
        "new literal µs",
        "in full µs",
        "sqlglot.parse µs",
        "in full to parse",
    )  # fmt: skip
    lines = [
        (
            name,
            f"{rows[name][0]['bytes']:,.0f}",
            *(_spread(rows, name, key).show(1, 1e-6) for key in ("cached", "new literal")),
            *(_spread(rows, name, key).show(0, 1e-6) for key in ("in full", "parse")),
            paired(_series(rows, name, "in full"), _series(rows, name, "parse")).show(),
        )
        for name in rows
    ]
    title = "Judging a statement, CPU in process"
    return f"## {title}\n\n{_table(header, lines)}"


def _series(rows: Rows, name: str, key: str) -> list[float]:
    return [row[key] for row in rows[name]]


def _spread(rows: Rows, name: str, key: str) -> Spread:
    return spread(_series(rows, name, key))


def _to(rows: Rows, name: str, other: str, key: str) -> str:
    if other not in rows or name == other:
        return ""
    return paired(_series(rows, name, key), _series(rows, other, key)).show()


def _over(rows: Rows, name: str, key: str, other: str) -> str:
    return paired(_series(rows, name, key), _series(rows, name, other)).show()


def _latencies(rows: Rows, name: str) -> str:
    return " / ".join(f"{_spread(rows, name, key).median * 1e3:.2f}" for key in ("p50", "p99"))


def _table(header: tuple[str, ...], lines: Iterable[tuple[str, ...]]) -> str:
    rule = ("---",) * len(header)
    return "".join(f"| {' | '.join(line)} |\n" for line in (header, rule, *lines))


def _hybrid(rows: Rows) -> str:
    kinds = {
        "hybrid": "by vectors and words",
        "vector": "by vectors alone",
        "filter_10%": "both, a filter of 10 % of the rows",
        "filter_1%": "both, 1 %",
        "filter_0.01%": "both, 0.01 %",
    }
    parts: list[str] = []
    for name, (row, *_) in rows.items():
        lines = [
            (what, f"{row[f'{kind}_median_ms']:.1f}", f"{row[f'{kind}_p99_ms']:.1f}")
            for kind, what in kinds.items()
        ]
        parts.append(
            f"## Hybrid search\n\n{name}: recall@10 {row['recall_at_10']:.3f} against exact search;"
            f" the process grew by {row['memory_mb_grown']:.0f} MB.\n\n"
            + _table(("search", "median ms", "p99 ms"), lines)
        )
    return "\n".join(parts)
