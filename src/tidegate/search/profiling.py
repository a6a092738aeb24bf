"""Sums up a sample of rows: what a caller who writes a statement should know of each column.

A column of codes gets its values, a column of dates its range, and text that is something else gets
a remark: numbers or dates that are kept as text, blanks at the end, one word in two cases. A column
of free text, or with a long value, gets nothing but such remarks. Pure.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from msgspec import structs

from tidegate.model.profiles import ColumnProfile, Join, TableProfile

MOST_VALUES = 8
MOST_CHARS = 40
_MOST_DISTINCT = 30
_REPEATED = 2
"""How often the values of a column of codes repeat, at least, on average."""
_MOST_LISTED = 80
"""Characters of all texts of a small table's column, each of which occurs there once."""
_NUMBERS_REPEATED = 5
_MOST_CODES = 6
"""Distinct numbers that can be codes."""

# Quantifiers that give nothing back: a value takes one step for each character at most.
_NUMBER = re.compile(r"\s*+[-+]?[$€£]?(\d[\d,. ]*+|\.\d++)%?\s*+")
_DATE = re.compile(
    r"\d{4}-\d\d?-\d\d?([T ]\d\d:\d\d.*)?|\d{1,2}[/.]\d{1,2}[/.]\d{2,4}.*|\d{4}/\d\d?/\d\d?.*"
    r"|\d{1,2}[- ][A-Za-z]{3,9}[- ]\d{2,4}|[A-Za-z]{3,9} \d{1,2},? \d{4}"
    r"|(19|20)\d\d(0[1-9]|1[0-2])(0[1-9]|[12]\d|3[01])([T ]\d\d:?\d\d.*)?"
)
_MONTH_NAME = (
    r"(?:jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?"
    r"|sept?(?:ember)?|oct(?:ober)?|nov(?:ember)?|dec(?:ember)?)\.?"
)
_MONTH = re.compile(
    rf"{_MONTH_NAME}[-/ ,']{{0,2}}\d{{2}}(?:\d\d)?|(?:19|20)\d\d[-/ ,]{{0,2}}{_MONTH_NAME}"
    r"|(?:0?[1-9]|1[0-2])[-/.](?:19|20)\d\d|(?:19|20)\d\d[/.]?(?:0[1-9]|1[0-2])"
    r"|(?:19|20)\d\d-?m(?:0?[1-9]|1[0-2])",
    re.IGNORECASE,
)
"""A month of a year in forms that are no dates of ISO 8601: Jan 2026, 01/2026, 202601, 2026M01."""
_FIRST_OF_MONTH = re.compile(r"\d{4}-\d\d-01([T ]00:00(:00(\.0+)?)?(Z|[-+]\d\d(:?\d\d)?)?)?")
_FEWEST_MONTHS = 3
MONTHS = "first of month"
"""The remark on dates that mean months."""
_GROUPED = re.compile(r"\D*\d{1,3}(,\d{3})+(\.\d+)?\D*")
_DECIMAL_COMMA = re.compile(r"\D*[\d. ]*\d,\d+\D*")
_INTEGER = re.compile(r"-?\d{1,18}")
_ISO = re.compile(r"\d{4}-\d\d(-\d\d([T ]\d\d:\d\d(:\d\d(\.\d+)?)?(Z|[-+]\d\d(:?\d\d)?)?)?)?")


def summarize(
    columns: Sequence[str],
    rows: Sequence[Sequence[Any]],
    complete: bool,
    padded: Collection[str] = (),
) -> TableProfile:
    """The remarks on each column. `rows` hold JSON values, as `results.json_values` writes
    them; `complete`: they are all rows of the table. The database fills values of the columns
    `padded` up with blanks, and does not compare these."""
    profile: TableProfile = {}
    if not rows:
        return profile
    for name, values in zip(columns, zip(*rows, strict=True), strict=True):
        known = [value for value in values if value is not None]
        if not known:
            profile[name] = ColumnProfile(remarks=("only null" if complete else "mostly null",))
        elif all(type(value) is str for value in known):
            if name in padded:
                known = [value.rstrip(" ") for value in known]
            summary = _of_text(known, complete)
            if summary is not None:
                profile[name] = summary
        elif all(type(value) is int for value in known):
            found = Counter(known)
            if len(found) <= _MOST_CODES and len(known) >= _NUMBERS_REPEATED * len(found):
                codes = tuple(sorted(found))
                profile[name] = ColumnProfile(codes, more=not complete)
    return profile


def with_statistics(
    profile: TableProfile,
    noted: Sequence[Sequence[Any]],
    columns: Sequence[str],
    padded: Collection[str] = (),
) -> TableProfile:
    """The profile of a sample with what the database's statistics know better: values of codes that
    the sample missed, and about which range dates have. `noted` are rows of `Language.statistics`.

    What kind of column it is, the sample decides: statistics are as old as the last ANALYZE.
    """
    better = dict(profile)
    for name, common, low, high in noted:
        known = better.get(name)
        if known is None or name not in columns:
            continue
        texts = [value for value in common or () if isinstance(value, str)]
        if name in padded:
            texts = [value.rstrip(" ") for value in texts]
        if known.values:
            better[name] = _with_values(known, texts)
        elif known.low is None and _is_date(known):
            ends = [value for value in (*texts, low, high) if value is not None]
            if ends and all(map(_ISO.fullmatch, ends)):
                better[name] = ColumnProfile(
                    low=min(ends), high=max(ends), about=True, remarks=known.remarks
                )
    return better


def _with_values(known: ColumnProfile, common: Sequence[str]) -> ColumnProfile:
    """The commonest values first, then those that only the sample has seen."""
    if all(isinstance(value, int) for value in known.values):
        numbers = [int(text) for text in common if _INTEGER.fullmatch(text)]
        codes = tuple(sorted({*known.values, *numbers}))
        return structs.replace(known, values=codes) if len(codes) <= _MOST_CODES else known
    if len(common) > _MOST_DISTINCT or any(len(text) > MOST_CHARS for text in common):
        return known
    texts = tuple(dict.fromkeys((*common, *map(str, known.values))))
    remarks = dict.fromkeys((*known.remarks, *_remarks(Counter(texts))))
    return structs.replace(known, values=texts[:MOST_VALUES], remarks=tuple(remarks))


def without_range(profile: TableProfile) -> list[str]:
    """The columns of dates of which the range is not known, or only about."""
    return [name for name, known in profile.items() if known.about or _is_date(known)]


def with_bounds(profile: TableProfile, columns: Sequence[str], ends: Sequence[Any]) -> TableProfile:
    """The profile with the least and greatest value of each of the columns, in turn in `ends`."""
    better = dict(profile)
    for name, low, high in zip(columns, ends[::2], ends[1::2], strict=True):
        if isinstance(low, str) and isinstance(high, str):
            better[name] = ColumnProfile(low=low, high=high, remarks=profile[name].remarks)
    return better


def with_joins(profile: TableProfile, joins: Mapping[str, tuple[Join, ...]]) -> TableProfile:
    """The profile with what values say of the joins of columns."""
    better = dict(profile)
    for name, known in joins.items():
        better[name] = structs.replace(better.get(name, ColumnProfile()), joins=known)
    return better


def _is_date(known: ColumnProfile) -> bool:
    if known.example is None or not {MONTHS}.issuperset(known.remarks):
        return False
    return bool(_ISO.fullmatch(known.example))


def _of_text(known: list[str], complete: bool) -> ColumnProfile | None:
    found = Counter(known)
    shown = [value for value, _ in found.most_common(_MOST_DISTINCT + 1)]
    remarks = _remarks(found)
    if max(map(len, found)) > MOST_CHARS:
        return ColumnProfile(remarks=remarks) if remarks else None
    if all(map(_ISO.fullmatch, shown)) and all(map(_ISO.fullmatch, found)):
        months = len(found) >= _FEWEST_MONTHS and all(map(_FIRST_OF_MONTH.fullmatch, found))
        said = (MONTHS,) if months else ()
        if complete:
            return ColumnProfile(low=min(found), high=max(found), remarks=said)
        return ColumnProfile(example=shown[0], remarks=said)
    if all(_MONTH.fullmatch(value.strip()) for value in found):
        more = len(found) > _FEWEST_MONTHS or not complete
        values = tuple(shown[:_FEWEST_MONTHS])
        return ColumnProfile(values, more=more, remarks=(*remarks, "months"))
    if all(map(_DATE.fullmatch, found)):
        # The greatest of 01/02/2026 and 28/02/2026 shows which part is the day.
        return ColumnProfile(example=max(found), remarks=(*remarks, "dates"))
    if all(map(_NUMBER.fullmatch, found)):
        return _of_numbers(shown, remarks)
    repeated = len(known) >= _REPEATED * len(found)
    listed = complete and len(found) <= MOST_VALUES and sum(map(len, found)) <= _MOST_LISTED
    if len(found) <= _MOST_DISTINCT and (repeated or listed):
        more = len(found) > MOST_VALUES or not complete
        return ColumnProfile(tuple(shown[:MOST_VALUES]), more=more, remarks=remarks)
    return ColumnProfile(remarks=remarks) if remarks else None


def _of_numbers(shown: Sequence[str], remarks: tuple[str, ...]) -> ColumnProfile:
    """Numbers that are kept as text, with an example that shows what has to be removed."""
    with_comma = [value for value in shown if "," in value]
    if not with_comma:
        return ColumnProfile(example=shown[0], remarks=(*remarks, "numbers"))
    decimal = [value for value in with_comma if not _GROUPED.fullmatch(value)]
    if decimal and all(map(_DECIMAL_COMMA.fullmatch, decimal)):
        return ColumnProfile(example=decimal[0], remarks=(*remarks, "numbers with decimal comma"))
    return ColumnProfile(example=with_comma[0], remarks=(*remarks, "numbers with commas"))


def _remarks(found: Counter[str]) -> tuple[str, ...]:
    remarks: list[str] = []
    if any(value != value.strip() for value in found):
        remarks.append("blanks at the end" if _only_behind(found) else "blanks around")
    words = {value.strip() for value in found}
    if len({word.casefold() for word in words}) < len(words):
        remarks.append("mixed case")
    return tuple(remarks)


def _only_behind(found: Counter[str]) -> bool:
    return all(value == value.lstrip() for value in found)
