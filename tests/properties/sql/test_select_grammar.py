"""What the small grammar accepts, the general parser reads in the same way."""

from __future__ import annotations

import random
import re
import sys
from subprocess import run

import pytest

from support.judge_cases import load
from support.judge_splices import splice
from support.masking_queries import Writer
from tidegate.model.statements import Effect
from tidegate.sql import query_statement
from tidegate.sql.dialects import find
from tidegate.sql.finding import Refusal, most_severe
from tidegate.sql.judge import judge_uncached
from tidegate.sql.query_statement import StatementEffects
from tidegate.sql.scan import scan
from tidegate.sql.token_checks import check_tokens

DIALECTS = ("sqlite", "postgres", "mysql", "duckdb")
PIECES = re.compile(r"'[^']*'|\"[^\"]*\"|`[^`]*`|\w+|\s+|[^\w\s]+|.", re.DOTALL)
COMMON = [
    *[
        "SELECT",
        "FROM",
        "(",
        ")",
        ",",
        "WHERE",
        "UNION",
        "AS",
        "IN",
        "x",
        "t",
        "JOIN",
        "ON",
        ".",
        "*",
        "WITH",
        "CASE",
        "WHEN",
        "END",
        "INTO",
        ";",
        "1",
    ]
]
COMMON += [
    *[
        "LATERAL",
        "VALUES",
        "TABLE",
        "EXISTS",
        "NOT",
        "NULL",
        "DISTINCT",
        "LIMIT",
        "GROUP",
        "BY",
        "ORDER",
        "OVER",
        "USING",
    ]
]


def accepted(text: str, dialect: str) -> StatementEffects | None:
    """What the small grammar finds, and before that whether the general parser agrees."""
    rules = find(dialect)
    try:
        tokens = scan(text, rules)
        if rules.roots.get(tokens[0].key) != "query":
            return None
        found = check_tokens(tokens, rules, reading=True)
    except (Refusal, IndexError):
        return None
    if found.opinions or found.unlisted:
        return None
    plain = query_statement._plain_select(tokens, found, rules)
    if plain is None:
        return None
    try:
        whole = query_statement._by_tree(tokens, found, rules)
    except Refusal as refusal:
        # What has no syntax for the one may have some for the other: both know the same words.
        assert refusal.finding.rule == "parser.syntax", (dialect, text, refusal.finding)
        return plain
    assert most_severe(whole.opinions).effect is Effect.READ, (dialect, text)
    assert set(whole.tables) == set(plain.tables), (dialect, text)
    assert list(whole.functions) == list(plain.functions), (dialect, text)
    return plain


@pytest.fixture(scope="module")
def pool() -> list[tuple[str, str]]:
    """Every case in every dialect that the small grammar accepts."""
    return [
        (case.sql, dialect)
        for case in load()
        for dialect in DIALECTS
        if accepted(case.sql, dialect)
    ]


def test_every_case_that_is_accepted_is_read_alike(pool: list[tuple[str, str]]) -> None:
    assert len(pool) > 1_000


def test_changed_statements_are_read_alike(pool: list[tuple[str, str]]) -> None:
    chance = random.Random(7)
    pieces_to_add = [
        *COMMON,
        *sorted({piece for text, _ in pool for piece in PIECES.findall(text)}),
    ]
    found = 0
    for _ in range(6_000):
        text, dialect = chance.choice(pool)
        pieces = PIECES.findall(text)
        for _ in range(chance.choice((1, 1, 2, 3))):
            at, how = chance.randrange(len(pieces)), chance.random()
            if how < 0.4:
                pieces[at] = chance.choice(pieces_to_add)
            elif how < 0.6:
                pieces[at] = " "
            elif how < 0.8:
                pieces.insert(at, f" {chance.choice(pieces_to_add)} ")
            else:
                other = chance.randrange(len(pieces))
                pieces[at], pieces[other] = pieces[other], pieces[at]
        found += accepted("".join(pieces), dialect) is not None
    assert found > 500


def test_spliced_statements_are_read_alike() -> None:
    chance = random.Random(7)
    for _ in range(3_000):
        accepted(splice(chance), chance.choice(DIALECTS))


@pytest.mark.parametrize("dialect", DIALECTS)
def test_queries_of_reporting_tools_are_read_alike(dialect: str) -> None:
    writer = Writer(random.Random(7), dialect)
    assert sum(accepted(writer.query(), dialect) is not None for _ in range(500)) > 50


@pytest.mark.parametrize(
    ("text", "tables"),
    [
        ("WITH c AS (SELECT * FROM a) SELECT * FROM c JOIN b USING (id)", {"a", "b"}),
        ("WITH c AS (SELECT * FROM c) SELECT * FROM c", {"c"}),
        ("SELECT (WITH c AS (SELECT 1) SELECT * FROM c), x FROM c", {"c"}),
        ("SELECT x FROM main.c WHERE x IN (SELECT y FROM d) ORDER BY 1 LIMIT 5", {"main.c", "d"}),
    ],
)
def test_a_common_table_is_no_table_where_it_is_in_scope(text: str, tables: set[str]) -> None:
    assert set(judge_uncached(text, "postgres").tables) == tables
    assert accepted(text, "postgres") is not None


@pytest.mark.parametrize(
    "text",
    [
        "SELECT * FROM pg_shadow",
        "SELECT * FROM (SELECT passwd FROM pg_catalog.pg_shadow) s",
        "SELECT x INTO y FROM t",
        "SELECT * FROM t FOR UPDATE",
        "WITH d AS (DELETE FROM t RETURNING *) SELECT * FROM d",
        "SELECT pg_sleep(1), pg_terminate_backend(1)",
        "SELECT 1; DELETE FROM t",
    ],
)
def test_what_does_more_than_read_is_not_accepted(text: str) -> None:
    assert accepted(text, "postgres") is None
    assert judge_uncached(text, "postgres").effect is not Effect.READ


def test_a_plain_query_does_not_load_the_general_parser() -> None:
    script = (
        "import sys\n"
        "from tidegate.sql.judge import judge\n"
        "judgement = judge('SELECT a.x, count(*) FROM a JOIN b ON a.id = b.id WHERE b.y > 3"
        " GROUP BY a.x ORDER BY 2 DESC LIMIT 10', 'postgres')\n"
        "print(judgement.effect.name, 'sqlglot' in sys.modules)\n"
    )
    ended = run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert ended.stdout.split() == ["READ", "False"]
