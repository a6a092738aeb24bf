"""Datalog as one of the languages that the gate knows: queries, and the operations of Datalevin."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from itertools import zip_longest
from typing import Any, cast

from msgspec import structs

from tidegate.errors import Code, TidegateError
from tidegate.model.data_rules import DataRules, Show
from tidegate.model.language import Language
from tidegate.model.requests import EngineRequest, Explain, Query, Request
from tidegate.model.schema import Catalog, ColumnInfo, Table
from tidegate.model.sources import Source
from tidegate.model.statements import Effect, Judgement, Statement
from tidegate.products.datalog.language.data_rules import check_reading, shown_of, table_of
from tidegate.products.datalog.language.derived import Derived, masked_tuples
from tidegate.products.datalog.language.json_values import decode, encode, plain_text
from tidegate.products.datalog.language.judge import Judged, judge_operation
from tidegate.products.datalog.language.query import judge_query, written_again
from tidegate.products.datalog.language.reader import read
from tidegate.products.datalog.language.values import Value
from tidegate.products.datalog.language.writer import write
from tidegate.products.datalog.requests import DatalogOperation, DatalogRequest
from tidegate.secrets import redaction

_OPENS_OR_CLOSES = frozenset(
    each for each in DatalogOperation if each.value.startswith(("open_", "close_"))
)

_FACTS = re.compile(r"(\d+) facts")
_MOST_SAMPLED = 200_000
"""Facts of one attribute that a sample reads."""
_FEW = 5_000
"""Facts of a namespace of which all entities are read."""
_WORD = re.compile(r"\s*[A-Za-z]")


class DatalogLanguage(Language):
    """What a Datalog source is asked for. Values of hidden attributes are never rewritten: a
    request that could show one is refused."""

    def classify(self, request: Request, source: Source) -> Judgement:
        try:
            judged = _judged(request)
        except TidegateError as refused:
            return Judgement(
                Effect.UNKNOWN,
                refused.code.value,
                refused.message,
                refused.code.value,
                refused.hint,
            )
        if judged is None:
            return Judgement(
                Effect.UNKNOWN,
                "request.unlisted",
                f"A Datalog source answers no request of the kind {request.kind!r}",
                None,
                "Send a Datalog query instead.",
            )
        effect, reading = judged
        reads = effect is Effect.READ
        return Judgement(
            effect,
            "datalog.read" if reads else "datalog.write",
            "reads" if reads else "changes data",
            tables=tuple(sorted({table_of(name) for name in reading.attributes})),
            functions=tuple(sorted(reading.functions)),
            verb=_verb(request),
            metadata=reads
            and isinstance(request, DatalogRequest)
            and request.operation in _OPENS_OR_CLOSES,
        )

    def redact(self, text: str, dialect: str, *, mentions: bool = False) -> str:
        return redaction.redact(text, mentions=mentions)

    def literal(self, value: Any, dialect: str) -> str:
        return write(_value(value))

    def masked_columns(
        self, catalog: Catalog, source: Source, rules: DataRules
    ) -> Mapping[tuple[str, str], Mapping[str, Show]]:
        marked: dict[tuple[str, str], dict[str, Show]] = {}
        tuples = masked_tuples(catalog, rules)
        for table in catalog.tables:
            for column in table.columns:
                name = column.name.removeprefix(":")
                show = "nothing" if name in tuples else shown_of(name, rules)
                if show is not None:
                    marked.setdefault((table.schema, table.name), {})[column.name] = show
        return marked

    def sample(
        self,
        table: Table,
        columns: Sequence[str],
        most_rows: int,
        source: Source,
        *,
        all_over: bool = False,
    ) -> Statement | None:
        """A query for the attributes of entities, as maps: any of them may be absent. None for a
        namespace of so many facts that they are not read in the time of a sample."""
        known = {column.name: _facts(column) for column in table.columns if column.name in columns}
        facts = {name: count for name, count in known.items() if count is not None}
        if all_over or not facts or max(facts.values()) > _MOST_SAMPLED:
            return None
        entities = f"[?e {max(facts, key=lambda name: facts[name])}]"
        if sum(facts.values()) <= _FEW:
            entities = f"(or {' '.join([f'[?e {name}]' for name in facts])})"
        names = " ".join(columns)
        return Statement(f"[:find (pull ?e [{names}]) :where {entities} :limit {most_rows}]")

    def sampled(self, columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> list[list[Any]]:
        found: list[list[Any]] = []
        for (entity,) in rows:
            members = cast("dict[str, Any]", entity) if isinstance(entity, dict) else {}
            several = [_values(members.get(name)) for name in columns]
            found.extend(map(list, zip_longest(*several)))
        return found

    def rewrite(
        self,
        request: EngineRequest,
        source: Source,
        rules: DataRules,
        catalog: Catalog,
        key: str,
    ) -> EngineRequest | None:
        judged = _judged(request)
        if judged is None:
            return None
        check_reading(judged.reading, rules)
        Derived(catalog).check(judged.reading, judged.effect, rules)
        return _written_again(request)


LANGUAGE = DatalogLanguage()


def _judged(request: Request) -> Judged | None:
    """What a request does; None for one that is not of this language. Raises: TidegateError."""
    if isinstance(request, DatalogRequest):
        return judge_operation(
            request.operation.value,
            request.arguments,
            target=request.target,
            create=request.create,
        )
    if isinstance(request, (Query, Explain)):
        _check_language(request.statement.text)
        inputs = [_value(each) for each in request.statement.params or ()]
        return Judged(Effect.READ, judge_query(read(request.statement.text), inputs))
    return None


def _check_language(text: str) -> None:
    """Raises: TidegateError DATALOG_UNREADABLE for what is SQL, by its first word."""
    if _WORD.match(text):
        raise TidegateError(
            Code.DATALOG_UNREADABLE,
            "This source is asked in Datalog, and the text is not Datalog",
            hint="Send a query such as [:find ?e ?v :where [?e :person/name ?v]].",
        )


def _values(given: Any) -> list[Any]:
    """The values of one entity's attribute; of references, none."""
    several = cast("list[Any]", given) if isinstance(given, list) else [given]
    return [None if isinstance(each, (dict, list)) else each for each in several] or [None]


def _facts(column: ColumnInfo) -> int | None:
    """How many facts have the attribute, as its description says. None: it is not indexed, and a
    pattern cannot begin with it."""
    found = _FACTS.search(column.extra or "")
    return int(found[1]) if found else None


def _written_again(request: EngineRequest) -> EngineRequest:
    """The request with its query, inputs and pattern as they were read."""
    if isinstance(request, (Query, Explain)):
        given = request.statement
        text, values = written_again(given.text, given.params or ())
        params = None if given.params is None else tuple(values)
        return structs.replace(request, statement=Statement(text, params))
    if not isinstance(request, DatalogRequest):
        return request
    arguments = dict(request.arguments)
    if "query" in arguments and request.operation is DatalogOperation.QUERY:
        inputs = arguments.get("inputs", [])
        text = plain_text(arguments["query"])
        arguments["query"], arguments["inputs"] = written_again(text, inputs)
    if "selector" in arguments:
        selector = decode(arguments["selector"])
        pattern = read(selector) if isinstance(selector, str) else selector
        arguments["selector"] = encode(pattern, exact=True)
    return structs.replace(request, arguments=arguments)


def _verb(request: Request) -> str:
    if isinstance(request, DatalogRequest):
        return request.operation.value
    return "explain" if isinstance(request, Explain) else "query"


def _value(given: Any) -> Value:
    """A parameter as a value: those that come from elsewhere are plain."""
    return decode(given)
