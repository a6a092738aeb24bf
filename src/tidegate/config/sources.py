"""The settings of a source, and of rules that hide columns and rows. `declared.py` makes a `Source`
of them.
"""

from __future__ import annotations

import re
from typing import Literal

import msgspec

from tidegate.config.faults import invalid
from tidegate.secrets import refuse_literal
from tidegate.sources import Mask, RowFilter, RunAs

BLANKS = ("{actor.name}", "{actor.id}")
"""What stands for the caller in `run_as` and in the `where` of a filter."""
_BLANK = re.compile(r"\{actor\b[^{}]*\}")
SOURCE_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}")


class RunAsSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Who a caller is to the database: see `sources.RunAs`."""

    role: str | None = None
    roles: dict[str, str] = {}
    variables: dict[str, str] = {}

    def __post_init__(self) -> None:
        if self.role is None and not self.roles and not self.variables:
            raise invalid("`run_as` names no role and no variable.")
        for text in (self.role or "", *self.roles.values(), *self.variables.values()):
            check_blanks(text, "run_as")

    @property
    def run_as(self) -> RunAs:
        return RunAs(self.role, tuple(self.roles.items()), tuple(self.variables.items()))


class SourceSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One source. `url` may refer to secrets but never holds one.

    `approval`: a person may answer in the client or the inbox, or in the inbox alone.
    `unattended`: what happens to what a person should see when the client can show nobody a
    question. `unqualified`: UPDATE and DELETE without WHERE. `destructive_scope`: what DROP,
    TRUNCATE and ALTER...DROP need. `masks` hide columns, `filters` hide rows.
    `run_as` says who a caller is to the database.
    """

    name: str
    url: str
    external_access: Literal["blocked", "readOnly", "readWrite"] = "readOnly"
    ai_policy: Literal["alwaysAllow", "askEachTime", "never"] = "alwaysAllow"
    safe_mode: Literal["silent", "alert", "alertFull", "safeMode", "safeModeFull", "readOnly"] = (
        "silent"
    )
    tags: tuple[str, ...] = ()
    approval: Literal["any", "inbox"] = "any"
    unattended: Literal["deny", "allow"] = "deny"
    unqualified: Literal["confirm", "allow", "deny"] = "confirm"
    destructive_scope: Literal["readWrite", "fullAccess"] = "readWrite"
    masks: tuple[Mask, ...] = ()
    filters: tuple[RowFilter, ...] = ()
    run_as: RunAsSettings | None = None

    def __post_init__(self) -> None:
        check_source_name(self.name)
        refuse_literal(self.url)
        check_rules(self.masks, self.filters)
        for tag in self.tags:
            if not 1 <= len(tag) <= 64 or not tag.isprintable() or tag != tag.strip():
                raise invalid(
                    f"`{tag[:80]}` cannot be a tag.", hint="Use 1 to 64 printable characters."
                )


def check_rules(masks: tuple[Mask, ...], filters: tuple[RowFilter, ...]) -> None:
    """Raises: GateError CONFIG_INVALID for a rule whose table or column cannot be made out."""
    for mask in masks:
        if mask.column.count(".") not in (1, 2) or not all(mask.column.split(".")):
            raise invalid(
                f"`{mask.column[:80]}` names no column to mask.",
                hint="Write table.column or schema.table.column.",
            )
    for rule in filters:
        if rule.table.count(".") > 1 or not all(rule.table.split(".")):
            raise invalid(
                f"`{rule.table[:80]}` names no table to filter.",
                hint="Write table or schema.table.",
            )
        if not rule.where.strip():
            raise invalid(f"The row filter on `{rule.table}` has no condition.")
        check_blanks(rule.where, "where")


def check_blanks(text: str, setting: str) -> None:
    """Raises: GateError CONFIG_INVALID for a blank like `{actor.nmae}` that nothing fills."""
    for blank in _BLANK.findall(text):
        if blank not in BLANKS:
            raise invalid(
                f"`{setting}` has the blank `{blank[:80]}`, which nothing fills.",
                hint=f"There are {' and '.join(BLANKS)}.",
            )


def check_source_name(name: str) -> None:
    """Raises: GateError CONFIG_INVALID unless the name can stand for a source."""
    if not SOURCE_NAME.fullmatch(name):
        raise invalid(
            f"`{name[:80]}` cannot name a source.",
            hint="Use 1 to 64 letters, digits, `_`, `.` or `-`, the first a letter or a digit.",
        )
