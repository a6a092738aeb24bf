"""How right the guessed joins are, on Defog's databases: `python -m bench.defog_joins`.

The databases are made without their foreign keys, and `core` is asked for every table. What it
shows is compared with two lists of joins that it does not see:

- declared: the foreign keys of the dumps. Few dumps declare any.
- used: columns of two tables that the accepted statements compare with `=`. Two columns that refer
  to one key count as joined through it.

Recall is the share of a list that is shown. Precision is the share of right guesses among those
between tables that some statement joins: of the other guesses the lists say nothing. `by names` is
what is guessed without values.
"""

from __future__ import annotations

import re
import sqlite3
import time
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from bench import defog, peers, servers
from bench.mcp import StdioSpeaker
from bench.process import Process
from tidegate.model.schema import Catalog, ColumnInfo, Table
from tidegate.search.joins import Joins

End = tuple[str, str]
"""A column: its table and its name, folded."""
Pair = frozenset[End]

_GUESS = re.compile(r"^\"?(?P<column>\w+).*?(?P<sign>~\??>)\"?(?P<table>\w+)\"?\.\"?(?P<key>\w+)")
_MOST_LOOKS = 50


class Score(NamedTuple):
    """Of one database: joins in the lists, and how many of them were shown; guesses that were
    shown, those that a list can say anything about, and those of them that are right."""

    declared: int
    declared_shown: int
    used: int
    used_shown: int
    guesses: int
    known: int
    right: int


def measure(folder: Path) -> dict[str, dict[str, Score]]:
    """The scores by database: `by names`, and `with values`, as `core` shows them."""
    scores: dict[str, dict[str, Score]] = {}
    for name in defog.list_databases(folder):
        database = defog.read_database(folder, name)
        path = peers.WORK / f"defog_{name}_no_keys.sqlite"
        defog.make_database(name, path, folder, keys=False)
        declared = {
            frozenset({(_fold(table.name), _fold(column.name)), _target(column.target)})
            for table in database.tables
            for column in table.columns
            if column.target is not None
        }
        used = used_joins(folder, database)
        scores[name] = {
            "by names": score(by_names(path), declared, used),
            "with values": score(by_core(path, database), declared, used),
        }
    return scores


def score(shown: set[Pair], declared: set[Pair], used: set[Pair]) -> Score:
    """The shown joins against the lists."""
    groups = _connected(shown)
    joined_tables = {frozenset(table for table, _ in pair) for pair in declared | used}
    truth = _connected(declared | used)
    known = [pair for pair in shown if frozenset(table for table, _ in pair) in joined_tables]
    return Score(
        len(declared),
        len(declared & shown),
        len(used),
        sum(any(pair <= group for group in groups) for pair in used),
        len(shown),
        len(known),
        sum(any(pair <= group for group in truth) for pair in known),
    )


def used_joins(folder: Path, database: defog.Database) -> set[Pair]:
    """The columns of different tables that accepted statements compare with `=`."""
    import sqlglot
    from sqlglot import exp

    columns = {
        _fold(table.name): {_fold(column.name) for column in table.columns}
        for table in database.tables
    }
    found: set[Pair] = set()
    for question in defog.read_questions(folder, "sqlite", database.name):
        for sql in question.accepted:
            for query in sqlglot.parse_one(sql, read="sqlite").find_all(exp.Select):
                aliases = {
                    _fold(table.alias_or_name): _fold(table.name)
                    for table in query.find_all(exp.Table)
                }
                for equal in query.find_all(exp.EQ):
                    ends = {
                        (aliases.get(_fold(side.table), ""), _fold(side.name))
                        for side in (equal.left, equal.right)
                        if isinstance(side, exp.Column)
                    }
                    known = all(name in columns.get(table, ()) for table, name in ends)
                    if len({table for table, _ in ends}) == 2 and known:
                        found.add(frozenset(ends))
    return found


def by_names(path: Path) -> set[Pair]:
    """What names and types suggest."""
    catalog = _read_catalog(path)
    joins = Joins(catalog.tables)
    return {
        frozenset({(_fold(table.name), _fold(name)), (_fold(join.table), _fold(join.key))})
        for table in catalog.tables
        for name, join in joins.of(table).items()
    }


def by_core(path: Path, database: defog.Database) -> set[Pair]:
    """What `core` shows when it has compared the values."""
    log = peers.WORK / "logs" / f"{path.stem}.log"
    log.parent.mkdir(exist_ok=True)
    tables = [table.name for table in database.tables]
    with Process(servers.core().stdio(path), log, pipes=True) as process:
        speaker = StdioSpeaker(process)
        speaker.open()
        last = ""
        for _ in range(_MOST_LOOKS):
            shown = speaker.ask("describe", {"tables": tables})
            if shown == last:
                break
            last = shown
            time.sleep(0.3)  # what is compared in the background
    return set(read_guesses(last))


def read_guesses(shown: str) -> Iterable[Pair]:
    """The guessed joins in the lines of tables."""
    for line in shown.splitlines():
        table, _, rest = line.partition("(")
        for part in re.split(r", (?=\"?\w+\"? )", rest):
            guess = _GUESS.match(part)
            if guess is not None:
                own = table.rpartition(" ")[2].strip('"'), guess["column"]
                ends = own, (guess["table"], guess["key"])
                yield frozenset((_fold(one), _fold(other)) for one, other in ends)


def _read_catalog(path: Path) -> Catalog:
    """The tables as a schema without foreign keys shows them."""
    connection = sqlite3.connect(path)
    names = [
        name for (name,) in connection.execute("SELECT name FROM sqlite_schema WHERE sql > ''")
    ]
    tables: list[Table] = []
    for name in names:
        infos = connection.execute("SELECT name, type, pk FROM pragma_table_info(?)", (name,))
        columns = tuple(ColumnInfo(column, kind, key=key) for column, kind, key in infos)
        tables.append(Table("main", name, "table", columns))
    connection.close()
    return Catalog("d", "main", ("main",), tuple(tables), "1")


def _connected(pairs: Iterable[Pair]) -> list[set[End]]:
    groups: list[set[End]] = []
    for pair in pairs:
        near = [group for group in groups if group & pair]
        groups = [group for group in groups if not group & pair]
        groups.append(set(pair).union(*near))
    return groups


def _target(target: tuple[str, str]) -> End:
    return _fold(target[0]), _fold(target[1])


def _fold(name: str) -> str:
    return name.casefold()


def main() -> None:
    peers.WORK.mkdir(exist_ok=True)
    scores = measure(defog.find_folder())
    print("| database | way | declared, shown | used, shown | guesses | of known tables, right |")
    print("|---|---|---|---|---|---|")
    for name, ways in scores.items():
        for way, one in ways.items():
            print(
                f"| {name} | {way} | {one.declared}, {one.declared_shown} | {one.used},"
                f" {one.used_shown} | {one.guesses} | {one.known}, {one.right} |"
            )


if __name__ == "__main__":
    main()
