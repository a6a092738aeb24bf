"""`tidegate ask SOURCE QUESTION`: a question in plain language, answered with SQL."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from tidegate.app import App
from tidegate.cli.local_actor import LocalCaller, with_app
from tidegate.cli.settings import load_for_query
from tidegate.cli.terminal import color, print_status, show, show_json, show_table
from tidegate.errors import Code, TidegateError
from tidegate.model.results import Limits
from tidegate.products.pgedge.text_to_sql.answering import answer, show_prompt
from tidegate.products.pgedge.text_to_sql.model import Answer, Guide, Question
from tidegate.products.pgedge.text_to_sql.pair_import import import_pairs, read_pairs
from tidegate.products.pgedge.text_to_sql.pairs import check_pairs, confirm, export
from tidegate.products.pgedge.text_to_sql.requests import Guidance, ReadGuidance, RemovePair
from tidegate.results.notes import page_note

T = TypeVar("T")


def run(arguments: argparse.Namespace) -> int:
    """Answer the question, and show the statement before its rows; or work on confirmed ones."""
    actions = [name for name in _ON_PAIRS if getattr(arguments, name)]
    if len(actions) > 1 or (actions and arguments.question is not None):
        raise TidegateError(
            Code.ARGUMENT_INVALID,
            "QUESTION, --confirm, --forget, --check, --export and --import are alternatives.",
            hint="Give one of them.",
        )
    if actions:
        return _ON_PAIRS[actions[0]](arguments)
    question = Question(
        text=_text(arguments.question),
        source=arguments.source,
        mode=arguments.mode,
        previous=arguments.previous,
        limits=Limits(arguments.rows, timeout_s=arguments.timeout),
        run=not arguments.no_run,
    )

    async def work(app: App) -> Answer | str:
        caller = LocalCaller(app, "ask")
        if arguments.show_prompt:
            return await show_prompt(caller, question)
        return await answer(caller, question)

    found = with_app(App.open(load_for_query(arguments)), work)
    if isinstance(found, str):
        show(found.rstrip("\n"))
        return 0
    if arguments.json:
        show_json(_as_json(found))
    else:
        _show(found)
    if found.refusal is not None:
        raise found.refusal.error()
    return 0


def _confirm(arguments: argparse.Namespace) -> int:
    pair = _on_pairs(arguments, lambda caller: confirm(caller, arguments.source, arguments.confirm))
    if arguments.json:
        show_json(pair)
        return 0
    show(f"{pair.id}: {pair.question}\n{pair.sql}")
    return 0


def _forget(arguments: argparse.Namespace) -> int:
    request = RemovePair(arguments.forget)
    if not _on_pairs(arguments, lambda caller: caller.handle(request, arguments.source, bool)):
        raise TidegateError(
            Code.ANSWER_UNKNOWN,
            f"There is no confirmed question {arguments.forget[:40]!r}.",
            hint=f"`tidegate ask {arguments.source} --export` lists them.",
        )
    print_status(f"removed {arguments.forget}")
    return 0


def _check(arguments: argparse.Namespace) -> int:
    """The exit status is 65 if a question fails, has lapsed or gives other rows."""
    checks = _on_pairs(arguments, lambda caller: check_pairs(caller, arguments.source))
    if arguments.json:
        show_json(
            [
                {"id": e.pair.id, "question": e.pair.question, "state": e.state, "reason": e.reason}
                for e in checks
            ]
        )
    else:
        show_table(
            ["id", "state", "question", "reason"],
            [[each.pair.id, each.state, each.pair.question, each.reason] for each in checks],
        )
    good = sum(each.state in ("same", "runs") for each in checks)
    print_status(f"{good} of {len(checks)} as confirmed")
    return 0 if good == len(checks) else 65


def _export(arguments: argparse.Namespace) -> int:
    read = ReadGuidance()
    found = _on_pairs(arguments, lambda caller: caller.handle(read, arguments.source, Guidance))
    show(export(found.pairs).rstrip("\n"))
    return 0


def _import(arguments: argparse.Namespace) -> int:
    """Confirm the questions of a file; none if one of them cannot be kept."""
    try:
        content = sys.stdin.read() if arguments.pairs == "-" else Path(arguments.pairs).read_text()
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
        raise TidegateError(
            Code.ARGUMENT_INVALID,
            f"Cannot read `{arguments.pairs}`: {reason}.",
            hint="Name a file of `tidegate ask SOURCE --export`.",
        ) from None
    pairs = read_pairs(content)
    kept = _on_pairs(arguments, lambda caller: import_pairs(caller, arguments.source, pairs))
    if arguments.json:
        show_json(kept)
    count = "1 question" if len(kept) == 1 else f"{len(kept):,} questions"
    print_status(f"confirmed {count}")
    return 0


def _on_pairs(arguments: argparse.Namespace, work: Callable[[LocalCaller], Awaitable[T]]) -> T:
    return with_app(App.open(load_for_query(arguments)), lambda app: work(LocalCaller(app, "ask")))


_ON_PAIRS: dict[str, Callable[[argparse.Namespace], int]] = {
    "confirm": _confirm,
    "forget": _forget,
    "check": _check,
    "export": _export,
    "pairs": _import,
}


def _text(given: str | None) -> str:
    if given is None:
        raise TidegateError(
            Code.ARGUMENT_INVALID,
            "QUESTION is missing.",
            hint='Write `tidegate ask SOURCE "how many orders were placed in May?"`.',
        )
    return sys.stdin.read() if given == "-" else given


def _show(found: Answer) -> None:
    if found.guide is not None:
        _show_guide(found.guide)
        return
    if found.sql is not None:
        show(color(found.sql, "2"))
    if found.plan is not None:
        show(f"\n{found.plan}")
    page = found.page
    if page is not None:
        show()
        names = [column.name for column in page.columns]
        show_table(names, msgspec.json.decode(page.rows), fitted=True)
        rows = "1 row" if page.row_count == 1 else f"{page.row_count:,} rows"
        print_status(f"{rows} in {page.elapsed_ms:.1f} ms")
        if note := page_note(page):
            print_status(note)
    for assumption in found.assumptions:
        print_status(f"assumed: {assumption}")
    for check in found.checks:
        print_status(f"check: {check.message}")
    used = found.model
    if used is not None:
        rounds = "1 request" if found.rounds == 1 else f"{found.rounds} requests"
        print_status(
            f"sent: {used.bytes:,} bytes with {used.share} of the schema to {used.model} at "
            f"{used.host}, in {rounds}"
        )
    if found.handle is not None:
        print_status(f"answer: {found.handle}")


def _show_guide(guide: Guide) -> None:
    print_status(f"{guide.reason} To write the statement:")
    show(guide.schema)
    show()
    for rule in guide.rules:
        show(f"- {rule}")
    for example in guide.examples:
        show(f"\nConfirmed: {example.question}\n{example.sql}")


def _as_json(found: Answer) -> dict[str, Any]:
    page, refusal = found.page, found.refusal
    fields = {name: getattr(found, name) for name in Answer.__struct_fields__}
    fields["page"] = None
    fields["refusal"] = None
    if page is not None:
        fields["page"] = {
            "columns": page.columns,
            "rows": msgspec.Raw(page.rows),
            "row_count": page.row_count,
            "truncations": page.truncations,
            "elapsed_ms": round(page.elapsed_ms, 3),
        }
    if refusal is not None:
        fields["refusal"] = {
            "code": refusal.code.value,
            "message": refusal.message,
            "hint": refusal.hint,
        }
    return fields
