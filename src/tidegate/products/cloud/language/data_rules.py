"""Masks and row filters on resources: what each rule is about, and how a masked value looks.

A rule's path is `provider.service.resource`, and for a mask the column after it. A `hash` is the
SHA-256, in hexadecimal, of the source's key and the value as text. A `partial` value keeps its
first character and its last two around `***`; of an e-mail address the first character and the
domain; of fewer than six characters, or of an address with fewer than three before the `@`, nothing
of that part.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Final

import msgspec
from sqlglot import exp

from tidegate.errors import TidegateError, masking_refused
from tidegate.model.data_rules import DataRules, Show
from tidegate.model.statements import Effect
from tidegate.products.cloud.documents.model import Parameter
from tidegate.products.cloud.documents.names import folded, snake_case
from tidegate.products.cloud.documents.schema import ANONYMOUS
from tidegate.products.cloud.http.responses import SqlValue
from tidegate.sql.finding import Refusal
from tidegate.sql.judge import judge
from tidegate.sql.parse import parse

_STRICTNESS: Final[tuple[Show, ...]] = ("nothing", "hash", "partial")
_STARS: Final = "***"
_IDENTIFIES: Final = ("path", "server", "account")
"""Places of parameters that say which thing is meant, and search in nothing."""
_PAGING: Final = frozenset({
    "cursor", "limit", "maxresults", "offset", "page", "pagenumber", "pagesize", "pagetoken",
    "perpage", "skip", "top",
})  # fmt: skip
"""Parameters that say how much of a list comes at once, without signs between words."""


class ResourceRules(msgspec.Struct, frozen=True):
    """What is hidden of one resource. `masks` are by the column's name as `folded` gives it,
    `columns` the names that masks and conditions have for columns."""

    path: str
    masks: Mapping[str, Show]
    conditions: tuple[str, ...]
    columns: frozenset[str]
    key: str

    def in_snake_case(self) -> ResourceRules:
        """The rules for a provider whose columns have names in snake case: a mask may be written by
        the provider's own name of the column."""
        masks: dict[str, Show] = {}
        for column in self.columns:
            show = self.masks.get(folded(column))
            if show is not None:
                name = folded(snake_case(column))
                masks[name] = min((masks.get(name, show), show), key=_STRICTNESS.index)
        columns = frozenset(map(snake_case, self.columns))
        return msgspec.structs.replace(self, masks=masks, columns=columns)

    def shown(self, show: Show, value: SqlValue) -> SqlValue:
        """What takes the place of a value."""
        if value is None or show == "nothing":
            return None
        text = str(value)
        if show == "hash":
            return hashlib.sha256((self.key + text).encode()).hexdigest()
        return _partial(text)

    def show_of(self, column: str) -> Show | None:
        """What is shown of a column's values; None if they are not masked. Of rows without names
        nothing is, if anything is masked."""
        if column == ANONYMOUS and self.masks:
            return "nothing"
        return self.masks.get(folded(column))

    def hides(self, parameter: Parameter) -> bool:
        """Whether the parameter is about a masked column by its name."""
        names = (parameter.name, parameter.wire_name, snake_case(parameter.wire_name))
        return any(folded(name).removeprefix("data__") in self.masks for name in names)

    def may_tell(self, parameter: Parameter, fields: frozenset[str]) -> bool:
        """Whether a provider could use the parameter to read a masked column: to search, to
        sort or to compare. `fields` are the columns of its rows, as `folded` gives them."""
        if not self.masks:
            return False
        name = folded(parameter.name)
        if self.hides(parameter):
            return True
        if parameter.place in _IDENTIFIES or name in fields:
            return False
        return name.replace("_", "") not in _PAGING


class HiddenData:
    """Data rules by the resource that each is about."""

    def __init__(self, rules: DataRules, key: str) -> None:
        """Raises: TidegateError POLICY_MASKED for a rule that cannot be meant for a resource."""
        self.resources: dict[str, ResourceRules] = {}
        masks: dict[str, dict[str, Show]] = {}
        columns: dict[str, set[str]] = {}
        conditions: dict[str, list[str]] = {}
        paths: dict[str, str] = {}
        for written, show in rules.masks:
            path, column = _split(written)
            place, name = folded(path), folded(column)
            paths[place] = path
            columns.setdefault(place, set()).add(column)
            before = masks.setdefault(place, {}).get(name, show)
            masks[place][name] = min((before, show), key=_STRICTNESS.index)
        for path, condition in rules.filters:
            place = folded(_resource(path))
            paths.setdefault(place, path)
            columns.setdefault(place, set()).update(_condition_columns(path, condition))
            conditions.setdefault(place, []).append(condition)
        for place, path in paths.items():
            self.resources[place] = ResourceRules(
                *(path, masks.get(place, {}), tuple(conditions.get(place, ()))),
                *(frozenset(columns.get(place, ())), key),
            )

    def of(self, path: str) -> ResourceRules | None:
        """What is hidden of the resource at `provider.service.resource`; None if nothing is."""
        return self.resources.get(folded(path))


def change_refused(path: str) -> TidegateError:
    """The refusal of a change that uses a resource of which some is hidden."""
    return masking_refused(
        f"Some of `{path}` is hidden from this caller: it can be read, and this statement cannot"
        " use it",
        f"masking.{path}",
        "Change other resources, or ask the operator to send it.",
    )


def column_refused(column: str) -> TidegateError:
    """The refusal of a change that names a masked column."""
    return masking_refused(
        f"`{column}` is masked: a statement that changes something can neither read nor write it",
        f"masking.{column}",
        "Name the columns that you need, and none that is masked.",
    )


def masked_columns(rules: ResourceRules) -> list[tuple[str, str]]:
    """The masked columns of a resource as (path, column), by name."""
    return [(rules.path, each) for each in sorted(rules.columns) if folded(each) in rules.masks]


def _partial(text: str) -> str:
    name, at, domain = text.partition("@")
    if at and name and "." in domain[1:-1] and "@" not in domain and " " not in text:
        return f"{name[0] if len(name) > 2 else ''}{_STARS}@{domain}"
    return _STARS if len(text) < 6 else f"{text[0]}{_STARS}{text[-2:]}"


def _resource(path: str) -> str:
    if len(path.split(".")) != 3:
        raise _unfit(path, "it names no provider.service.resource")
    return path


def _split(written: str) -> tuple[str, str]:
    """The resource and the column of a mask; a column's name may have points."""
    parts = written.split(".", 3)
    if len(parts) != 4 or not all(parts):
        raise _unfit(written, "it names no provider.service.resource.column")
    return ".".join(parts[:3]), parts[3]


def _condition_columns(path: str, condition: str) -> set[str]:
    """The columns that a filter names. Raises: TidegateError POLICY_MASKED if it is not one
    condition on the resource's own columns."""
    text = f"SELECT 1 FROM r WHERE ({condition}\n)"
    try:
        judgement = judge(text, "cloud")
        tree: exp.Expr = parse(text, "sqlite", len(text))
        alone: exp.Expr = parse(f"SELECT ({condition}\n)", "sqlite", len(text))
    except Refusal as refusal:
        raise _unfit(path, refusal.finding.reason) from None
    where = tree.args.get("where")
    parts = {name for name, value in tree.args.items() if value}
    plain = parts <= {"expressions", "from", "from_", "where", "kind"}
    is_whole = plain and where is not None and isinstance(where.this, exp.Paren)
    if judgement.effect is not Effect.READ or not is_whole:
        raise _unfit(path, "it is not one condition that only reads")
    if len(list(tree.find_all(exp.Select))) > 1 or alone.find(exp.Subquery, exp.Table):
        raise _unfit(path, "it may use the resource's own columns alone")
    return {each.name for each in tree.find_all(exp.Column)}


def _unfit(path: str, reason: str) -> TidegateError:
    return masking_refused(
        f"The rule for `{path}` cannot be used: {reason}",
        f"masking.{path}",
        "Ask the operator to correct the rule: until then nothing of this source is read.",
    )
