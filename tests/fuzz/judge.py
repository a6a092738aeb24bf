"""Coverage-guided fuzzing of the judge: `./dev fuzz judge [--seconds N]`, for as long as you like.

`check` is what must hold of any bytes whatever; `test_fuzz_judge.py` runs it a few thousand times
with every run of the tests. Inputs that broke it are left in `.cache/fuzz`.
"""

from __future__ import annotations

import argparse
import re
import sys
from functools import cache
from pathlib import Path

import apsw
import apsw.ext

sys.path.insert(0, str(Path(__file__).parents[1]))

import support.pg_grammar as pg_grammar
from support.judge_cases import load
from tidegate.errors import Code
from tidegate.model.statements import Effect, Judgement
from tidegate.sql.judge import judge, judge_uncached

DIALECTS = ("sqlite", "postgres", "mysql", "duckdb", "oracle")
KEPT = Path(__file__).parents[2] / ".cache" / "fuzz"
_QUOTED = re.compile(r"'[^']*'|\"[^\"]*\"|/\*.*?\*/|--[^\n]*", re.DOTALL)
_UNCERTAIN = re.compile(r"[\\$`\[#]|/\*.*/\*|--[^ ]|\r")
_WRITES = re.compile(
    r"[\s;(]*(?:INSERT|UPDATE|DELETE|MERGE|REPLACE|TRUNCATE|DROP|CREATE|ALTER|GRANT|REVOKE|COPY|CALL"
    r"|DO|SET|VACUUM|ATTACH|LOAD)\b",
    re.IGNORECASE,
)


def check(data: bytes) -> None:
    """Judge the bytes: the first picks the dialect, the rest is the text. Raises: AssertionError
    if the judge fails, answers twice differently, or calls a read what is none."""
    dialect = DIALECTS[data[0] % len(DIALECTS)] if data else DIALECTS[0]
    try:
        text = data[1:].decode("utf-8", "surrogatepass")
    except UnicodeDecodeError:
        text = data[1:].decode("utf-8", "surrogateescape")
    judgement = judge_uncached(text, dialect)
    assert isinstance(judgement, Judgement)
    assert judgement.rule != "judge.failed", text
    assert judge_uncached(text, dialect) == judgement, text
    assert judge(text, dialect).effect is judgement.effect, text
    if judgement.effect is Effect.READ:
        assert not _is_change(text, dialect), text
    else:
        assert Code(judgement.code) and judgement.rule and judgement.hint, text


def seeds() -> list[bytes]:
    """The cases, as `check` takes them."""
    place = {name: bytes([at]) for at, name in enumerate(DIALECTS)}
    return [
        place.get(case.dialect, b"\4") + case.sql.encode("utf-8", "surrogatepass")
        for case in load()
    ]


def _is_change(text: str, dialect: str) -> bool:
    """What someone else says: a bare look at the first word, and the database's own opinion."""
    if not _UNCERTAIN.search(text):
        statements = [part for part in _QUOTED.sub(" ", text).split(";") if part.strip()]
        if len(statements) > 1 or any(_WRITES.match(part) for part in statements):
            return True
    if dialect == "postgres":
        opinion = pg_grammar.opinion(text)
        return opinion is not None and not opinion.reads
    return dialect == "sqlite" and _writes_sqlite(text)


def _writes_sqlite(text: str) -> bool:
    try:
        info = apsw.ext.query_info(_memory(), text)
    except (apsw.Error, ValueError, UnicodeError):
        return False
    return not (info.is_readonly or info.is_explain or "journal_mode" in text.lower())


@cache
def _memory() -> apsw.Connection:
    connection = apsw.Connection(":memory:")
    connection.execute(
        "CREATE TABLE t(a, b, c, x); CREATE TABLE u(id, b); CREATE VIEW v AS SELECT 1"
    )
    return connection


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--seconds", type=int, default=60)
    options.add_argument("--runs", type=int, default=-1)
    options.add_argument("input", nargs="*", type=Path, help="inputs to try again, and no others")
    chosen = options.parse_args()
    if chosen.input:
        for path in chosen.input:
            check(path.read_bytes())
        return
    import atheris

    found = KEPT / "judge"
    found.mkdir(parents=True, exist_ok=True)
    for number, seed in enumerate(seeds()):
        (found / f"case-{number}").write_bytes(seed)
    atheris.Setup(
        [
            *("judge", str(found), f"-artifact_prefix={KEPT}/", "-timeout=5", "-max_len=2000"),
            *(f"-max_total_time={chosen.seconds}", f"-runs={chosen.runs}", "-print_final_stats=1"),
        ],
        check,
    )
    atheris.instrument_all()
    atheris.Fuzz()


if __name__ == "__main__":
    main()
