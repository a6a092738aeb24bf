"""Turns a SELECT over `provider.service.resource` into one over the virtual tables of a connection.

The text is changed where a resource is named, and nowhere else: what runs is what was judged. A
resource that its document defines by a SELECT of its own, a view, is put in as a subquery.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, Final, NamedTuple

from sqlglot import exp

from tidegate.errors import Code, TidegateError, masking_refused
from tidegate.model.joined_tables import JoinedTable, TableNames
from tidegate.products.cloud.documents.document_catalog import DocumentCatalog, Found
from tidegate.products.cloud.documents.model import View
from tidegate.products.cloud.documents.names import folded
from tidegate.products.cloud.documents.schema import ANONYMOUS
from tidegate.products.cloud.engine.hidden_rows import HiddenRows
from tidegate.products.cloud.engine.resource_table import (
    quoted,
    reading_methods,
    renames,
    wire_names,
)
from tidegate.products.cloud.engine.table_roles import NEVER, TableRole, read_roles
from tidegate.products.cloud.engine.text_change import TextChange, changed, parsed, path_of, span
from tidegate.products.cloud.engine.view_text import (
    Given,
    clobbered,
    conditions_on,
    with_parameters,
)
from tidegate.products.cloud.http.requests import no_operation, spellings
from tidegate.products.cloud.http.responses import SqlValue
from tidegate.products.cloud.language.data_rules import ResourceRules
from tidegate.products.cloud.language.descriptions import columns_of
from tidegate.sql import quoting
from tidegate.sql.dialects import find
from tidegate.sql.finding import Refusal
from tidegate.sql.lex import Token, lex
from tidegate.sql.quoted_names import in_backticks

_MOST_PARAMETERS: Final = 32_766
_MOST_VIEWS: Final = 64
_DEEPEST_VIEW: Final = 5


class TableText(NamedTuple):
    """SQL over virtual tables, and the resources of their names; `joined` are tables of other
    sources by theirs. `wanted` are the names of columns that the statement has, `masks` the
    functions that mask a view's columns. `plain_sql` is the same for a planner that would read a
    table once for each part of an OR; `roles` are those of the resources."""

    sql: str
    plain_sql: str
    tables: Mapping[str, Found]
    roles: Mapping[str, TableRole]
    joined: Mapping[str, JoinedTable]
    wanted: frozenset[str]
    masks: Mapping[str, Callable[[SqlValue], SqlValue]]
    takes_quoted_texts: bool
    """Whether a view of a document may have texts in double quotes. The caller's statement has
    none."""


def bind_tables(
    text: str,
    documents: DocumentCatalog,
    hidden: HiddenRows,
    joined: Iterable[JoinedTable] = (),
) -> TableText:
    """`joined` are the tables of other sources that the text may name.

    Raises: TidegateError SQL_UNREADABLE, TABLE_UNKNOWN, DOCUMENT_INVALID, POLICY_MASKED.
    """
    others = {(each.source, each.names): each for each in joined}
    binder = _Binder(documents, hidden, others)
    sql = binder.bound(text, {}, (), 0)
    if binder.takes_quoted_texts and '"' in text:
        # In backticks, the statement's own names are texts for no setting of SQLite.
        binder = _Binder(documents, hidden, others)
        sql = binder.bound(in_backticks(text, "cloud") or text, {}, (), 0)
    return TableText(
        sql.replace(binder.or_mark, ""),
        sql.replace(binder.or_mark, f"OR {NEVER}() "),
        *(binder.tables, binder.roles, binder.joined, frozenset(binder.wanted), binder.masks),
        binder.takes_quoted_texts,
    )


def with_literals(text: str, params: Sequence[Any] | None) -> str:
    """The text with its parameters, `?` or `?1`, written into it: a value that is there is
    known before the statement runs. Raises: TidegateError ARGUMENT_INVALID, SQL_UNREADABLE."""
    if params is None:
        return text
    parts: list[str] = []
    at = used = 0
    for token in _tokens(text):
        if token.text[:1] != "?" or text[token.at] != "?":
            continue
        number = _number(token.text, used + 1) - 1
        if number >= len(params):
            raise TidegateError(
                Code.ARGUMENT_INVALID,
                f"The statement has more parameters than the {len(params)} that were given.",
            )
        used = number + 1
        literal = quoting.literal(params[number], "cloud")
        parts += [text[at : token.at], f" {literal} "]
        at = token.at + len(token.text)
    return "".join([*parts, text[at:]])


def parameter_count(text: str) -> int:
    """How many parameters a text has; with `?7` it has seven. Raises: TidegateError."""
    most = used = 0
    for token in _tokens(text):
        if token.text[:1] == "?" and text[token.at] == "?":
            used = _number(token.text, used + 1)
            most = max(most, used)
    return most


def _tokens(text: str) -> list[Token]:
    try:
        return lex(text, find("cloud").lexical_rules)
    except Refusal as refusal:
        raise refusal.error() from None


def _number(mark: str, following: int) -> int:
    """Which parameter `?` or `?7` is. SQLite has the same bound. Raises: TidegateError."""
    digits = mark[1:]
    number = int(digits[:9]) if digits else following
    if not 1 <= number <= _MOST_PARAMETERS or len(digits) > 9:
        raise TidegateError(
            Code.ARGUMENT_INVALID,
            f"The parameters of a statement are ?1 to ?{_MOST_PARAMETERS}, not {mark[:20]}.",
        )
    return number


def has_limit(text: str) -> bool:
    """Whether a statement may end before it has read all of its rows."""
    return parsed(text).find(exp.Limit) is not None


def other_name(table: exp.Table) -> tuple[str, TableNames] | None:
    """The source and the table that `source.table` or `source.schema.table` names; None for what
    has more or fewer names."""
    parts = table.parts
    if not 2 <= len(parts) <= 3 or not all(isinstance(each, exp.Identifier) for each in parts):
        return None
    names = [(part.name, bool(part.args.get("quoted"))) for part in parts]
    return names[0][0], tuple(names[1:])


class _Binder:
    def __init__(
        self,
        documents: DocumentCatalog,
        hidden: HiddenRows,
        others: Mapping[tuple[str, TableNames], JoinedTable],
    ) -> None:
        self._documents = documents
        self._hidden = hidden
        self._others = others
        self._views = 0
        self.takes_quoted_texts = False
        # No caller can write the name of a table: what a view reads is not to be had without it.
        self._unguessable = secrets.token_hex(16)
        self.joined: dict[str, JoinedTable] = {}
        self.tables: dict[str, Found] = {}
        self.roles: dict[str, TableRole] = {}
        self.or_mark = f"/*{self._unguessable}*/"
        """Put before each OR that a planner could read a table several times for."""
        self.wanted: set[str] = set()
        self.masks: dict[str, Callable[[SqlValue], SqlValue]] = {}

    def bound(
        self, text: str, given: Mapping[str, Given], required: Collection[str], depth: int
    ) -> str:
        """A statement's text; `given` and `required` are what a view gets from outside."""
        tree = parsed(text)
        local = {folded(each.alias_or_name) for each in tree.find_all(exp.CTE)}
        changes: list[TextChange] = []
        names: dict[tuple[str, ...], str] = {}
        roles: Mapping[int, TableRole] = {}
        if tree.find(exp.Or) or any(join.side for join in tree.find_all(exp.Join)):
            read = read_roles(
                tree, _tokens(text), lambda each: span(each.parts)[0], self._has_column
            )
            roles = read.roles
            changes += read.joins
            changes += [TextChange(at, at, self.or_mark) for at in read.ors]
        resources: list[tuple[str, Found]] = []
        for table in tree.find_all(exp.Table):
            path = path_of(table)
            if len(path) == 1 and folded(path[0]) in local:
                continue
            key = other_name(table)
            other = self._others.get(key) if key is not None and not depth else None
            if other is not None:
                changes.append(self._other_table(table, path, other))
                names[tuple(map(folded, path))] = table.alias or path[-1]
            elif len(path) == 3:
                role = roles.get(id(table), TableRole())
                made, found = self._table(table, path, text, role, depth)
                changes += made
                if found is not None:
                    resources.append((folded(table.alias or path[2]), found))
                names[tuple(map(folded, path))] = table.alias or path[2]
            elif path:
                raise TidegateError(
                    Code.TABLE_UNKNOWN,
                    f"{'.'.join(path)[:120]} names no resource.",
                    hint="Write provider.service.resource; SHOW PROVIDERS lists the first names."
                    " A SELECT may also name source.schema.table of another source.",
                )
        for column in tree.find_all(exp.Column):
            self.wanted.add(column.name)
            parts = column.parts
            path = tuple([folded(part.name) for part in parts[:-1]])
            if len(parts) == 4 or (len(parts) == 3 and path in names):
                start, stop = span(parts[:-1])
                changes.append(TextChange(start, stop, quoted(names.get(path, parts[-2].name))))
        changes += self._wire_names(tree, resources)
        changes += clobbered(tree, text, given, required) if given or required else ()
        return changed(text, changes)

    def _wire_names(
        self, tree: exp.Expr, resources: list[tuple[str, Found]]
    ) -> Iterator[TextChange]:
        """The names in SQL of what the statement names as the API does: `VpcId` for `vpc_id`. The
        result has it as it was written."""
        others = [(name, wire_names(found)) for name, found in resources if renames(found)]
        for column in tree.find_all(exp.Column) if others else ():
            alias = folded(column.table)
            for name, names in others:
                known = names.get(column.name.casefold())
                if known is None or alias not in ("", name):
                    continue
                self.wanted.add(known)
                is_shown = column.arg_key == "expressions" and isinstance(column.parent, exp.Select)
                shown = f" AS {quoted(column.name)}" if is_shown else ""
                yield TextChange(*span(column.parts[-1:]), quoted(known) + shown)
                break

    def _has_column(self, table: exp.Table, name: str) -> bool:
        """Whether a table has a column of a folded name; True where that is not known."""
        path = path_of(table)
        if len(path) != 3 or other_name(table) in self._others:
            return True
        found = self._documents.resource(path)
        names = {ANONYMOUS} if found.resource.views else set[str]()
        for method in reading_methods(found):
            names |= {folded(each.name) for each in method.parameters}
            names |= {folded(each) for each in columns_of(found, method)} or {ANONYMOUS}
        return name in names or ANONYMOUS in names

    def _other_table(
        self, table: exp.Table, path: tuple[str, ...], other: JoinedTable
    ) -> TextChange:
        start, stop = span(table.parts)
        name = f"{other.shown}#{self._unguessable}"
        while self.joined.get(name, other) is not other:
            name += "'"
        self.joined[name] = other
        alias = "" if table.alias else f" AS {quoted(path[-1])}"
        return TextChange(start, stop, f"main.{quoted(name)}{alias}")

    def _table(
        self,
        table: exp.Table,
        path: tuple[str, ...],
        text: str,
        role: TableRole,
        depth: int,
    ) -> tuple[list[TextChange], Found | None]:
        """The changes for a table, and the resource if it is read by no view."""
        start, stop = span(table.parts)
        found = self._documents.resource(path)
        alias = "" if table.alias else f" AS {quoted(path[2])}"
        given = conditions_on(table) if found.resource.views else {}
        view = _fitting(found, given)
        if view is None:
            if not reading_methods(found):
                raise _no_reading_method(found)
            name = f"{found.path}#{len(self.tables)}:{self._unguessable}"
            self.tables[name] = found
            self.roles[name] = role
            return [TextChange(start, stop, quoted(name) + alias)], found
        self._views += 1
        self.takes_quoted_texts |= '"' in view.sql
        if depth >= _DEEPEST_VIEW or self._views > _MOST_VIEWS:
            raise TidegateError(
                Code.DOCUMENT_INVALID, f"The view {found.path} reads too many other views."
            )
        rules = self._hidden.of(found)
        if rules is not None:
            given = {name: each for name, each in given.items() if name not in rules.masks}
        sql, passed = with_parameters(view.sql.strip().rstrip(";"), given, self._takes)
        inner = self.bound(sql, given, view.required, depth + 1)
        if rules is not None:
            inner = self._hiding(view, inner, rules)
        # What the view takes and does not show is a condition in it, and none outside.
        outside = [given[name].removal(text) for name in passed]
        return [TextChange(start, stop, f"({inner}\n){alias}"), *outside], None

    def _takes(self, path: tuple[str, ...], name: str) -> bool:
        """Whether a resource has a parameter of a name."""
        found = self._documents.resource(path)
        if found.resource.views and not found.resource.verbs.get("select"):
            return True
        return any(name in names for each in reading_methods(found) for names in spellings(each))

    def _hiding(self, view: View, inner: str, rules: ResourceRules) -> str:
        """A view's query less what is hidden of it. Raises: TidegateError POLICY_MASKED if its
        columns are not known, or a masked one of them is a value that it asks for."""
        selects: Any = parsed(view.sql.strip().rstrip(";"))
        names = [each.alias_or_name for each in selects.selects]
        known = {folded(each) for each in names}
        asked = {folded(each) for each in view.required}
        if "" in known or "*" in known or rules.masks.keys() - known or rules.masks.keys() & asked:
            raise masking_refused(
                f"The view {rules.path} has rules that cannot hold for its columns",
                f"masking.{rules.path}",
                "Ask the operator to give the rules for the resources that the view reads.",
            )
        shown: list[str] = []
        for name in names:
            show = rules.masks.get(folded(name))
            if show is None:
                shown.append(quoted(name))
                continue
            # A name of its own for each statement: no caller can give it a guess at a value.
            function = f"tidegate_mask_{secrets.token_hex(16)}"
            self.masks[function] = partial(rules.shown, show)
            shown.append(f"{function}({quoted(name)}) AS {quoted(name)}")
        where = " AND ".join(f"({each}\n)" for each in rules.conditions) or "1"
        return f"SELECT {', '.join(shown)} FROM ({inner}\n) WHERE {where}"


def no_method(found: Found, verb: str, given: Iterable[str] = ()) -> TidegateError:
    """The refusal of a statement for which no method can be used. `given` are the names that it
    binds."""
    bound = list(given)
    unset = _unset(found, verb, bound)
    problem = f": cannot find any viable servers without {', '.join(unset)}" if unset else ""
    where = ", ".join(f"{name} by {variable}" for name, variable in unset.items())
    return TidegateError(
        Code.ARGUMENT_INVALID,
        no_operation(found.path) + problem,
        hint=f"{verb} has these methods: {_needs(found, verb)}.{_lacks(found, verb, bound)}"
        + (f" The operator can set {where} in the environment." if where else ""),
        details={"resource": found.path},
    )


def _unset(found: Found, verb: str, given: Collection[str]) -> dict[str, str]:
    """The variables of servers that a statement lacks and the environment could have, where it
    lacks nothing else: the names of the environment's variables by theirs."""
    names = {folded(each) for each in given}
    for each in found.resource.verbs.get(verb.lower(), ()):
        method = found.resource.methods[each]
        lacking = {
            parameter.name: parameter
            for parameter, spelled in zip(method.parameters, spellings(method), strict=True)
            if parameter.is_required and not spelled & names
        }
        variables = method.server.environment
        if lacking and all(name in variables for name in lacking):
            return {name: variables[name] for name in lacking}
    return {}


def _no_reading_method(found: Found) -> TidegateError:
    """The refusal of a SELECT from a resource that no method reads."""
    named = found.resource.verbs.get("select", ())
    if not named:
        return no_method(found, "SELECT")
    method = found.resource.methods[named[0]]
    return TidegateError(
        Code.ARGUMENT_INVALID,
        f"A SELECT from {found.path} would send {method.http_verb}, which changes something: no"
        " SELECT does.",
        hint=f"EXEC {found.path}.{method.name} calls it, as the change that it is.",
        details={"resource": found.path},
    )


def _fitting(found: Found, given: Mapping[str, Given]) -> View | None:
    """The first view of the resource of which all required parameters are bound."""
    for view in found.resource.views:
        if all(folded(each) in given for each in view.required):
            return view
    if not found.resource.views or found.resource.verbs.get("select"):
        return None
    raise no_method(found, "SELECT", given)


def _needs(found: Found, verb: str) -> str:
    resource = found.resource
    shown = [
        f"{name}({', '.join(resource.methods[name].required)})"
        for name in resource.verbs.get(verb.lower(), ())
    ]
    shown += [f"view({', '.join(each.required)})" for each in resource.views if verb == "SELECT"]
    return ", ".join(shown) or "none"


def _lacks(found: Found, verb: str, given: Iterable[str]) -> str:
    """What each method lacks, where something is given: else that is all it requires."""
    bound = {folded(each) for each in given}
    if not bound:
        return ""
    methods = [found.resource.methods[name] for name in found.resource.verbs.get(verb.lower(), ())]
    needed = [
        (method.name, [each.name for each, names in zip(method.parameters, spellings(method),
                       strict=True) if each.is_required and not names & bound])
        for method in methods
    ]  # fmt: skip
    if verb == "SELECT":
        needed += [
            ("view", [each for each in view.required if folded(each) not in bound])
            for view in found.resource.views
        ]
    lacking = [f"{name} lacks {', '.join(names)}" for name, names in needed if names]
    return f" Of these {'; '.join(lacking)}." if lacking else ""
