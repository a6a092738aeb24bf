"""Estimates from a prepared statement's opcodes how much work one pass of it can cost a thread.

SQLite's progress handler and interrupt are seen between opcodes, never inside one. So what one
opcode can cost is bounded beforehand, by the size of the values that it may touch. Pure: reads the
rows of `EXPLAIN`. The figures were measured with SQLite 3.54 on one core of 2.x GHz.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import isqrt
from typing import Any

from tidegate.sql.dialects.model import words

MAX_VALUE_BYTES = 16 * 1024 * 1024
"""The largest value or row that SQLite may make or read for a caller."""

PASS_BYTES = 128 * 1024 * 1024
"""What all the values that one pass of a program makes may take together."""

ROW_BYTES = 64 * 1024 * 1024
"""What all the values of one row of the result may take together."""

MAX_PATTERN_BYTES = 256
"""The longest pattern of LIKE and GLOB."""

SHORT_NEEDLE = 32
"""A literal up to this many bytes makes a search cheap: its cost then grows with one length."""

SHORT_SEARCH_BYTES = 14_000_000
"""Bytes that searches for a short needle get through in half a second."""

PATTERN_SEARCH_BYTES = 1_800_000
"""The same for the longest pattern of LIKE and GLOB."""

SEARCH_SQUARE = 9.0e10
"""`instr` of n bytes in n bytes costs n squared; this many take half a second."""

NOWHERE = 31
"""No argument: a short one makes nothing cheaper."""

SEARCHES: dict[str, tuple[int, int]] = {
    "instr(2)": (1, 1),
    "replace(3)": (1, 1),
    "trim(2)": (136, 1),
    "ltrim(2)": (136, 1),
    "rtrim(2)": (136, 1),
    "unhex(2)": (41, 1),
    "json_patch(2)": (16, 1),
    "jsonb_patch(2)": (16, 1),
    "geopoly_overlap(2)": (100, NOWHERE),
    "geopoly_within(2)": (100, NOWHERE),
    "like(2)": (0, 0),
    "like(3)": (0, 0),
    "glob(2)": (0, 0),
}
"""Functions whose cost grows with the product of two lengths: (weight relative to `instr`, which
argument is the needle). Weight 0: the needle is a pattern, whose length SQLite bounds. One polygon
is enough to take long with the other."""

TAME_FUNCTIONS = words(
    "abs avg ceil ceiling coalesce count cume_dist current_date current_time current_timestamp date"
    " datetime dense_rank exp first_value floor iif ifnull julianday lag last_value lead length ln"
    " log log10 log2 lower max min mod nth_value ntile nullif octet_length percent_rank pow power"
    " rank round row_number sign sqrt strftime substr substring sum time total trunc typeof unicode"
    " unixepoch upper"
)
"""Functions that cost no more than a pass over their arguments and make nothing larger."""

VOLATILE_FUNCTIONS = words(
    "changes current_date current_time current_timestamp date datetime julianday last_insert_rowid"
    " random randomblob strftime time timediff total_changes unixepoch"
)
"""Functions that may answer otherwise next time, so that a measured cost says nothing."""

TAME_OPCODES = words(
    "Add Affinity AggFinal AggInverse AggStep AggValue And BeginSubrtn BitAnd BitNot BitOr Blob"
    " Cast Close CollSeq Column Compare Copy DecrJumpZero DeferredSeek Delete Divide ElseEq"
    " EndCoroutine Eq Explain Filter FilterAdd FinishSeek Found Function Ge Gosub Goto Gt Halt"
    " HaltIfNull IdxGE IdxGT IdxInsert IdxLE IdxLT IdxRowid If IfEmpty IfNoHope IfNot IfNotOpen"
    " IfNotZero IfNullRow IfPos IfSizeBetween Init InitCoroutine Insert Int64 IntCopy Integer"
    " IsNull IsTrue IsType Jump Last Le Lt MakeRecord Move Multiply MustBeInt Ne NewRowid Next"
    " Noop Not NotExists NotFound NotNull Null NullRow Offset OffsetLimit Once OpenAutoindex"
    " OpenDup OpenEphemeral OpenPseudo OpenRead Or Permutation Prev PureFunc Real RealAffinity"
    " Remainder ReopenIdx ResetSorter ResultRow Return Rewind RowData Rowid SCopy SeekEnd SeekGE"
    " SeekGT SeekHit SeekLE SeekLT SeekRowid SeekScan Sequence SequenceTest ShiftLeft ShiftRight"
    " SoftNull Sort SorterCompare SorterData SorterInsert SorterNext SorterOpen SorterSort String"
    " String8 Subtract Transaction Variable Yield ZeroOrNull"
)
"""Opcodes whose cost is bounded by the values they touch, and that the progress handler counts.
Not here: Count and IntegrityCk (one step walks a whole tree), V* (a virtual table may do anything),
Concat (doubles what it is given)."""

BOUNDED_OPCODES = TAME_OPCODES | {"ClrSubtype", "Concat"}
BOUNDED_FUNCTIONS = TAME_FUNCTIONS | {"instr", "like", "glob"}
"""What masks and ordinary searches are made of. With a short literal a step takes about half a
millisecond on the largest value that the event loop's connection takes."""

MAX_TAME_SIZE = 400
MAX_SMALL_SIZE = 1_000
"""Opcodes of a program that is kept: each connection keeps hundreds, and a large one takes a MB."""

MAX_TAME_CALLS = 24

_CALLS = frozenset({"Function", "PureFunc", "AggStep", "AggInverse", "AggValue", "AggFinal"})
_WRITES_P1 = frozenset({"AggFinal", "Cast"})
_WRITES_P2 = words(
    "BitNot Blob Copy IdxRowid Int64 IntCopy Integer Move Not Null Param Real RowData Rowid SCopy"
    " Sequence SoftNull SorterData String Variable ZeroOrNull"
)
_WRITES_P3 = words(
    "Add AggValue And BitAnd BitOr Column Concat Divide Function Multiply Or PureFunc Remainder"
    " ShiftLeft ShiftRight Subtract VColumn"
)


class CostEstimate:
    """What the opcodes tell.

    `tame`: every step is cheap, and the progress handler sees how many there are.
    `bounded`: the same, except steps that search one value for a short literal or join two values.
    `steady`: it costs the same again on the same data.
    `max_value_bytes`: what a value may take at most, so that no pass can hold a thread for long.
    `small`: it takes little memory while it is kept for the next time.
    """

    __slots__ = ("bounded", "max_value_bytes", "small", "steady", "tame")

    def __init__(self, rows: Sequence[tuple[Any, ...]]) -> None:
        calls = [row for row in rows if row[1] in _CALLS]
        names = {str(row[5]).partition("(")[0] for row in calls}
        self.steady = VOLATILE_FUNCTIONS.isdisjoint(names)
        size_fits = len(rows) <= MAX_TAME_SIZE and len(calls) <= MAX_TAME_CALLS
        opcodes = {row[1] for row in rows}
        self.tame = size_fits and names <= TAME_FUNCTIONS and opcodes <= TAME_OPCODES
        self.bounded = (
            size_fits
            and names <= BOUNDED_FUNCTIONS
            and opcodes <= BOUNDED_OPCODES
            and _searches_for_short_literals(rows, calls)
        )
        self.small = len(rows) <= MAX_SMALL_SIZE
        columns = max([row[3] for row in rows if row[1] == "ResultRow"], default=1)
        self.max_value_bytes = min(
            MAX_VALUE_BYTES if self.tame else _value_limit(rows, calls),
            ROW_BYTES // max(1, columns),
        )


def _value_limit(rows: Sequence[tuple[Any, ...]], calls: Sequence[tuple[Any, ...]]) -> int:
    """The more places can make or search a large value, the smaller each must be."""
    makers = len(calls) + sum(1 for row in rows if row[1] == "Concat")
    limit = min(MAX_VALUE_BYTES, PASS_BYTES // max(1, makers))
    searches = [row for row in calls if row[5] in SEARCHES]
    if not searches:
        return limit
    needles = _short_literals(rows)
    short = patterns = weights = 0
    for row in searches:
        weight, place = SEARCHES[row[5]]
        if row[2] >> place & 1 and row[3] + place in needles:
            short += 1
        elif weight:
            weights += weight
        else:
            patterns += 1
    if short:
        limit = min(limit, SHORT_SEARCH_BYTES // short)
    if patterns:
        limit = min(limit, PATTERN_SEARCH_BYTES // patterns)
    if weights:
        limit = min(limit, isqrt(int(SEARCH_SQUARE / weights)))
    return limit


def _searches_for_short_literals(
    rows: Sequence[tuple[Any, ...]], calls: Sequence[tuple[Any, ...]]
) -> bool:
    """Whether each call that searches a value has a short literal to search for."""
    searches = [row for row in calls if row[5] in SEARCHES]
    needles = _short_literals(rows) if searches else set[int]()
    for row in searches:
        place = SEARCHES[row[5]][1]
        if not (row[2] >> place & 1 and row[3] + place in needles):
            return False
    return True


def _short_literals(rows: Sequence[tuple[Any, ...]]) -> set[int]:
    """Registers that hold nothing but a short literal."""
    literals: set[int] = set()
    others: set[int] = set()
    for _, opcode, p1, p2, p3, p4, *_ in rows:
        if opcode == "String8":
            (literals if len(str(p4).encode()) <= SHORT_NEEDLE else others).add(p2)
        elif opcode in _WRITES_P2:
            last = p3 if opcode == "Null" else p2 + p3 if opcode in ("Copy", "Move") else p2
            others.update(range(p2, max(p2, last) + 1))
        elif opcode in _WRITES_P3:
            others.add(p3)
        elif opcode in _WRITES_P1:
            others.add(p1)
    return literals - others
