"""Measures questions in plain language on the databases of Defog's evaluation set.

No model takes part: a scripted one on loopback answers with statements that are known to be right,
or with mutations of them. So this measures what Tidegate adds and takes away, and no model.

`python -m bench.questions` runs all of it on SQLite, and on PostgreSQL with `--postgres`. The
thresholds are in `bench/questions.toml`; the exit status is 1 if one is missed.

* `accuracy`: the share of accepted statements that come through every form of reply undamaged, and
  give the rows that they give when they are sent as SQL.
* `judge`: the share of accepted statements, in three dialects, that the judge does not call reads.
* `repair`: accepted statements with one column or table misspelt. `prompts` is the share of repair
  prompts that have the error, the right name and its type; `repaired` the share of questions that
  are then answered; `accepted` the share of mutations that ran although they are wrong.
* `linking`: the share of questions of which all tables are among the first 10 and 40, of Defog's
  tables in one schema with 1,000 decoys, partition families among them, and without foreign keys.
* `prompts`: the share of questions of which all tables stand in the prompt of the default size, of
  Defog's databases as schemas among 5,000 tables, without comments and keys; `linked` without the
  rest of small schemas. Some other schemas have a table of the same name as one that is needed.
* `knowledge`: what the set says of columns (`NAME.json`), its glossary, and the instructions of
  questions, each in the source's knowledge file: the share of prompts that have all instructions of
  their question and the whole glossary, the share of descriptions that are in the prompt with the
  table that they are of, and of prompts that have neither where only names are shared.
* `checks`: the share of accepted statements of which a check says that they may be wrong.
* `mistakes`: plausible mistakes in the accepted statements that go unnoticed (`mistakes.py`).
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import re
import sys
import tempfile
import time
import tomllib
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))

from bench import defog
from bench.mistakes import Tally, mistakes
from products.pgedge.support.asking import GateCaller  # pyright: ignore[reportMissingImports] - of tests
from products.pgedge.support.scripted_model import (  # pyright: ignore[reportMissingImports] - of tests
    Prompt,
    ScriptedModel,
    wrote,
)
from tidegate.app import App
from tidegate.config.loading import convert_settings
from tidegate.model.requests import Query
from tidegate.model.results import Limits, Page
from tidegate.model.schema import Catalog, ColumnInfo, ForeignKey, Table
from tidegate.model.statements import Effect, Statement
from tidegate.products.pgedge.settings import LanguageSettings
from tidegate.products.pgedge.text_to_sql.answering import answer, show_prompt
from tidegate.products.pgedge.text_to_sql.knowledge import Knowledge
from tidegate.products.pgedge.text_to_sql.linking import Linker
from tidegate.products.pgedge.text_to_sql.model import Question
from tidegate.products.pgedge.text_to_sql.prompts import write_schema
from tidegate.products.pgedge.text_to_sql.schema_linking import MOST_LINKED, linked_families
from tidegate.sql.judge import judge

THRESHOLDS = Path(__file__).with_suffix(".toml")
DECOYS = 1_000
_OTHERS = 4_950
_LIMITS = Limits(10_000, timeout_s=60.0)
_FORMS = (
    wrote,
    lambda sql: f"```sql\n{sql}\n```",
    lambda sql: f"Here is the query:\n\n```postgresql\n{sql}\n```\n\nIt joins the tables.",
    lambda sql: "```json\n" + json.dumps({"sql": sql, "assumptions": []}, indent=1) + "\n```",
    lambda sql: sql,
)


class Oracle:
    """The scripted model: knows a statement for each question, and how the first try differs."""

    def __init__(self) -> None:
        self.replies: list[str] = []

    def __call__(self, prompt: Prompt) -> str:
        return self.replies.pop(0) if len(self.replies) > 1 else self.replies[0]


def measure_judge(folder: Path) -> dict[str, Any]:
    """False alarms of the judge on accepted statements."""
    seen = 0
    alarms: list[str] = []
    dialects: tuple[defog.Dialect, ...] = ("postgres", "sqlite", "mysql")
    for dialect in dialects:
        for question in defog.read_questions(folder, dialect):
            for sql in question.accepted:
                seen += 1
                if judge(sql, dialect).effect is not Effect.READ:
                    alarms.append(sql)
    return {"statements": seen, "false_alarms": len(alarms) / seen, "alarms": alarms[:5]}


async def measure_answers(
    folder: Path, urls: dict[str, str], dialect: defog.Dialect, directory: Path, seed: int = 7
) -> dict[str, Any]:
    """`accuracy`, `checks` and `repair` on one engine; `urls` are the databases."""
    oracle = Oracle()
    total, undamaged, same, flagged = 0, 0, 0, Counter[str]()
    repairs: Counter[str] = Counter()
    lost: list[str] = []
    questions = defog.read_questions(folder, dialect)
    databases = {name: defog.read_database(folder, name) for name in urls}
    known = {name: _names(database) for name, database in databases.items()}
    tally = Tally()
    with ScriptedModel(oracle).running() as model:
        settings = {
            "state": str(directory / f"state-{dialect}"),
            "sources": [{"name": name, "url": url} for name, url in urls.items()],
            "language": {
                "model": model.settings(),
                "tokens_per_day": 10**12,
                "seconds_per_day": 10.0**9,
                "calls_per_minute": 10**9,
            },
        }
        app = App.open(convert_settings(settings))
        try:
            caller = GateCaller(app)
            chance = random.Random(seed)
            for question in questions:
                source = question.database
                expected, usual = list[Any](), list[str]()
                for number, sql in enumerate(question.accepted):
                    total += 1
                    oracle.replies = [_FORMS[(total + number) % len(_FORMS)](sql)]
                    query = Query(Statement(sql), limits=_LIMITS)
                    plain = await caller.handle(query, source, Page)
                    found = await answer(
                        caller,
                        Question(text=question.text, source=source, mode="nl", limits=_LIMITS),
                    )
                    undamaged += found.sql == sql.strip()
                    rows = found.page.rows if found.page is not None else b""
                    if not number:
                        expected = _sorted(plain.rows)
                        usual = [check.name for check in found.checks]
                    if _sorted(rows or b"[]") == _sorted(plain.rows):
                        same += found.page is not None
                    else:
                        lost.append(sql)
                    flagged.update({check.name for check in found.checks} or {"none"})
                sql = question.accepted[0]
                names = known[source]
                asked = Question(text=question.text, source=source, mode="nl", limits=_LIMITS)
                for kind, wrong in mistakes(sql, databases[source], dialect, chance):
                    oracle.replies = [wrote(wrong)]
                    got = await answer(caller, asked)
                    if got.page is not None and _sorted(got.page.rows) != expected:
                        tally.add(kind, wrong, [check.name for check in got.checks], usual)
                for kind in ("column", "table"):
                    outcome = await _repaired(
                        caller, oracle, model, question, sql, _mutate(sql, kind, chance, names)
                    )
                    repairs[outcome] += 1
                    repairs[f"{kind}:{outcome}"] += 1
        finally:
            await app.close()
    tried = repairs["repaired"] + repairs["unhelpful"] + repairs["lost"]
    return {
        "accuracy": {
            "statements": total,
            "undamaged": undamaged / total,
            "same_rows": same / total,
            "lost": lost[:5],
        },
        "mistakes": tally.found(),
        "checks": {name: count / total for name, count in flagged.items()},
        "repair": {
            "mutations": tried + repairs["accepted"],
            "prompts": (tried - repairs["unhelpful"]) / max(1, tried),
            "repaired": repairs["repaired"] / max(1, tried),
            "accepted": repairs["accepted"] / max(1, tried + repairs["accepted"]),
            "by_kind": {name: count for name, count in repairs.items() if ":" in name},
        },
    }


def _sorted(rows: bytes) -> list[Any]:
    return sorted(json.loads(rows), key=repr)


def _names(database: defog.Database) -> set[str]:
    """The names of the database's tables and columns, in lower case."""
    columns = {each.name.lower() for table in database.tables for each in table.columns}
    return columns | {table.name.lower() for table in database.tables}


def _mutate(sql: str, kind: str, chance: random.Random, known: set[str]) -> tuple[str, str] | None:
    """The statement with one name of the database misspelt everywhere, and the name."""
    pattern = r"\b[a-z]\w*\.(\w{3,})" if kind == "column" else r"(?i)\b(?:from|join)\s+(\w{3,})"
    found = {each[1] for each in re.finditer(pattern, sql)}
    names = sorted(name for name in found if name.lower() in known)
    if not names:
        return None
    name = chance.choice(names)
    wrong = name[:-1] + ("x" if name[-1] != "x" else "y") + "_"
    return re.sub(rf"\b{name}\b", wrong, sql), name


async def _repaired(
    caller: GateCaller,
    oracle: Oracle,
    model: ScriptedModel,
    question: defog.Question,
    sql: str,
    mutation: tuple[str, str] | None,
) -> str:
    """What became of a mutation: `repaired`, `accepted` (it ran), `unhelpful` (its repair prompt
    lacked something), `lost` (it was not repaired), `none` (there is no mutation)."""
    if mutation is None:
        return "none"
    wrong, name = mutation
    oracle.replies = [wrote(wrong), wrote(sql)]
    model.prompts.clear()
    asked = Question(text=question.text, source=question.database, mode="nl", limits=_LIMITS)
    found = await answer(caller, asked)
    if len(model.prompts) == 1:
        return "accepted"
    message, schema = model.prompts[1].last, model.prompts[1].text
    typed = re.search(rf"(?i)\b{name}\b [a-z]|\b{name}\(|table\b", message) or re.search(
        rf"(?i)\b{name}\b [a-z]|\b{name}\(", schema
    )
    if "cannot be used" not in message or typed is None or name.lower() not in message.lower():
        return "unhelpful"
    return "repaired" if found.page is not None and found.rounds <= 4 else "lost"


def knowledge_of(folder: Path, database: str) -> dict[str, Any]:
    """What the set says of a database and its questions, as a knowledge file."""
    given = json.loads((folder / f"{database}.json").read_text())
    tables = {
        table.rpartition(".")[2]: {
            "columns": {
                column["column_name"]: {"description": column["column_description"]}
                for column in columns
                if column["column_description"]
            }
        }
        for table, columns in given["table_metadata"].items()
    }
    asked = defog.read_questions(folder, "postgres", database)
    instructions = [question.instructions for question in asked if question.instructions]
    glossary = [line.removeprefix("- ") for line in given["glossary"].splitlines() if line.strip()]
    return {"tables": tables, "instructions": list(dict.fromkeys([*instructions, *glossary]))}


async def measure_knowledge(folder: Path, urls: dict[str, str], directory: Path) -> dict[str, Any]:
    """`knowledge`: what of the knowledge files is in the first prompt of each question."""
    found: Counter[str] = Counter()
    missing: list[str] = []
    own = {name: knowledge_of(folder, name) for name in urls}
    for name, known in own.items():
        (directory / f"{name}.yaml").write_text(json.dumps(known))
    for share in ("comments", "names"):
        sources = {
            name: {"share": share, "knowledge": str(directory / f"{name}.yaml")} for name in urls
        }
        settings = {
            "state": str(directory / f"state-{share}"),
            "sources": [{"name": name, "url": url} for name, url in urls.items()],
            "language": {"sources": sources},
        }
        app = App.open(convert_settings(settings))
        try:
            caller = GateCaller(app)
            for question in defog.read_questions(folder, "sqlite"):
                known = own[question.database]
                text = await show_prompt(
                    caller, Question(text=question.text, source=question.database, mode="nl")
                )
                one_line = " ".join(text.split())
                said = [" ".join(each.split()) in one_line for each in known["instructions"]]
                described = [
                    (f"{table}.{column}", " ".join(each["description"].split()) in one_line)
                    for table, columns in known["tables"].items()
                    for column, each in columns["columns"].items()
                ]
                if share == "names":
                    # A description of one word can be a name as well.
                    leaked = any(said) or any(
                        held for name, held in described if " " in _description(known, name)
                    )
                    found["withheld"] += not leaked
                    continue
                found["questions"] += 1
                found["instructions"] += all(said)
                found["described"] += len(described)
                found["descriptions"] += sum(held for _, held in described)
                missing += [f"{question.database}.{name}" for name, held in described if not held]
        finally:
            await app.close()
    return {
        "questions": found["questions"],
        "instructions": found["instructions"] / found["questions"],
        "descriptions": found["descriptions"] / max(1, found["described"]),
        "withheld": found["withheld"] / found["questions"],
        "missing": sorted(set(missing))[:5],
    }


def _description(known: dict[str, Any], name: str) -> str:
    table, _, column = name.partition(".")
    return known["tables"][table]["columns"][column]["description"]


def measure_linking(folder: Path) -> dict[str, Any]:
    """Recall of all tables of a question among the first 10 and 40 of a large schema."""
    databases = [defog.read_database(folder, name) for name in defog.list_databases(folder)]
    real = [(database.name, table) for database in databases for table in database.tables]
    tables = [_table(table) for _, table in real]
    chance = random.Random(11)
    catalog = Catalog(
        "all", "public", ("public",), (*tables, *_decoys(tables, chance)), "1", (), "postgres"
    )
    began = time.perf_counter()
    linker = Linker(catalog, Knowledge())
    built = time.perf_counter() - began
    hits: Counter[int] = Counter()
    spent = 0.0
    questions = defog.read_questions(folder, "postgres")
    for question in questions:
        own = {table.name.lower() for name, table in real if name == question.database}
        words = {word.lower() for word in re.findall(r"\w+", question.accepted[0])}
        gold = {name for name in own if name in words}
        began = time.perf_counter()
        ranked = [linker.families[at].newest.name.lower() for at in linker.rank(question.text)]
        spent += time.perf_counter() - began
        for most in (5, 10, 20, 40):
            hits[most] += gold <= set(ranked[:most])
    count = len(questions)
    return {
        "questions": count,
        "tables": len(catalog.tables),
        "families": len(linker.families),
        **{f"at_{most}": hits[most] / count for most in (5, 10, 20, 40)},
        "build_ms": built * 1000,
        "rank_ms": spent / count * 1000,
    }


def measure_prompts(folder: Path) -> dict[str, Any]:
    """How often all tables of a question stand in its prompt."""
    databases = [defog.read_database(folder, name) for name in defog.list_databases(folder)]
    tables = [
        _table(table, base.name, comments=False) for base in databases for table in base.tables
    ]
    catalog = Catalog(
        "all", "public", (), (*tables, *_other_schemas(tables, random.Random(13))), "1", (),
        "postgres",
    )  # fmt: skip
    linker = Linker(catalog, Knowledge())
    hits: Counter[str] = Counter()
    absent: list[str] = []
    questions = defog.read_questions(folder, "postgres")
    for question in questions:
        words = {word.lower() for word in re.findall(r"\w+", question.accepted[0])}
        gold = {
            (table.schema, table.name)
            for table in tables
            if table.schema == question.database and table.name.lower() in words
        }
        ranked = linker.rank(question.text)
        linked = [linker.families[at] for at in linker.with_joining(ranked[:MOST_LINKED])]
        for name, families in (
            ("linked", linked),
            ("in_prompt", linked_families(linker, ranked)),
        ):
            _, shown = write_schema(linker, families, {}, LanguageSettings().schema_bytes)
            held = gold <= {family.place for family in families[:shown]}
            hits[name] += held
            if name == "in_prompt" and not held:
                absent.append(f"{question.database}: {question.text}")
    count = len(questions)
    return {
        "questions": count,
        "tables": len(catalog.tables),
        "linked": hits["linked"] / count,
        "share": hits["in_prompt"] / count,
        "absent": absent[:5],
    }


def _other_schemas(real: Sequence[Table], chance: random.Random) -> list[Table]:
    """Schemas of 3 to 100 tables; every fifth has a table that is named as a real one."""
    made: list[Table] = []
    while len(made) < _OTHERS:
        schema = f"{chance.choice(_WORDS)}_{len(made)}"
        own = _decoys(real, chance, chance.choice((3, 8, 15, 30, 60, 100)))
        if chance.random() < 0.2:
            twin = chance.choice(real)
            columns = (*twin.columns[:2], *own[0].columns[1:])
            own[0] = msgspec.structs.replace(own[0], name=twin.name, columns=columns)
        made += [msgspec.structs.replace(table, schema=schema) for table in own]
    return made


def _table(table: defog.Table, schema: str = "public", *, comments: bool = True) -> Table:
    columns = tuple(
        ColumnInfo(
            each.name, each.type, each.nullable, None, int(each.key),
            each.comment or None if comments else None,
        )
        for each in table.columns
    )  # fmt: skip
    return Table(schema, table.name, "table", columns, foreign_keys=())


_WORDS = """
    invoice shipment ledger warehouse employee payroll contract supplier asset budget campaign
    ticket incident device sensor reading patient visit diagnosis claim policy premium vehicle
    route driver booking hotel flight seat course student grade lecture exam article tag
    comment reaction message thread channel member role permission audit session token job
    queue batch metric alert dashboard report export file folder version release build commit
    branch recipe ingredient farm crop harvest weather station forecast survey answer panel
    vote party district account journal entry currency rate tax region branch office shift
    schedule leave project task milestone risk issue change asset license vendor order payment
    refund cart item stock
""".split()  # noqa: SIM905
_COLUMNS = """
    status amount created_at updated_at name description quantity price start_date end_date
    owner type code rank score total comment email phone city country year month value unit
""".split()  # noqa: SIM905


def _decoys(real: Sequence[Table], chance: random.Random, count: int = DECOYS) -> list[Table]:
    """Tables of other domains: a third of them in partition families, some with foreign keys."""
    made: dict[str, Table] = {}
    taken = {table.name.lower() for table in real}

    def columns(name: str, count: int) -> tuple[ColumnInfo, ...]:
        chosen = [f"{chance.choice(_WORDS)}_{chance.choice(_COLUMNS)}" for _ in range(count)]
        return (
            ColumnInfo(f"{name}_id", "bigint", False, None, 1),
            *(ColumnInfo(each, "text") for each in dict.fromkeys(chosen)),
        )

    while len(made) < count:
        name = "_".join(chance.sample(_WORDS, chance.choice((1, 2, 2, 3))))
        if name in made or name in taken:
            continue
        own = columns(name, chance.randint(3, 14))
        if chance.random() < 0.05:
            for month in range(1, chance.randint(6, 13)):
                partition = f"{name}_2025_{month:02}"
                made[partition] = Table("public", partition, "table", own)
            continue
        keys: tuple[ForeignKey, ...] = ()
        if made and chance.random() < 0.5:
            other = chance.choice(list(made.values()))
            own = (*own, ColumnInfo(f"{other.name}_id", "bigint"))
            if chance.random() < 0.6:
                key = other.columns[0].name
                keys = (ForeignKey("fk", (f"{other.name}_id",), other.name, (key,)),)
        made[name] = Table("public", name, "table", own, foreign_keys=keys)
    return list(made.values())[:count]


def missed(found: dict[str, Any], wanted: dict[str, Any], path: str = "") -> list[str]:
    """The thresholds that are not met: `min_` and `max_` before the name of a figure. What was not
    measured (PostgreSQL) is left out."""
    complaints: list[str] = []
    for name, value in wanted.items():
        if isinstance(value, dict):
            if name in found:
                complaints += missed(found[name], value, f"{path}{name}.")
            continue
        bound, _, figure = name.partition("_")
        measured = found[figure]
        if (bound == "min" and measured < value) or (bound == "max" and measured > value):
            complaints.append(f"{path}{figure} is {measured:.4g}, not {bound} {value:g}")
    return complaints


async def run(folder: Path, *, postgres: bool, seed: int = 7) -> dict[str, Any]:
    """Everything, as one document."""
    found: dict[str, Any] = {
        "judge": measure_judge(folder),
        "linking": measure_linking(folder),
        "prompts": measure_prompts(folder),
    }
    with tempfile.TemporaryDirectory() as place:
        directory = Path(place)
        names = defog.list_databases(folder)
        urls = {}
        for name in names:
            defog.make_database(name, directory / f"{name}.sqlite", folder)
            urls[name] = f"sqlite:///{directory / name}.sqlite"
        found["knowledge"] = await measure_knowledge(folder, urls, directory)
        found |= await measure_answers(folder, urls, "sqlite", directory, seed)
        if postgres:
            from support import postgres_server  # pyright: ignore[reportMissingImports]

            server: Any = postgres_server.shared()
            for name in names:
                defog.make_database(name, server, folder)
            served = {name: server.url(name) for name in names}
            found["postgres"] = await measure_answers(folder, served, "postgres", directory, seed)
    return found


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.questions", description=__doc__)
    parser.add_argument("--folder", type=Path, help=f"the data (default: ${defog.VARIABLE})")
    parser.add_argument("--postgres", action="store_true", help="on PostgreSQL as well")
    parser.add_argument("--seed", type=int, default=7, help="of the mistakes")
    arguments = parser.parse_args()
    folder = defog.find_folder(arguments.folder)
    found = asyncio.run(run(folder, postgres=arguments.postgres, seed=arguments.seed))
    print(json.dumps(found, indent=1))
    complaints = missed(found, tomllib.loads(THRESHOLDS.read_text()))
    for complaint in complaints:
        print(complaint, file=sys.stderr)
    return 1 if complaints else 0


if __name__ == "__main__":
    sys.exit(main())
