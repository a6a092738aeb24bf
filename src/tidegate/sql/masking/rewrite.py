"""Puts masks and row filters into a statement, so that the database itself never shows what is
hidden. What cannot be rewritten for certain is refused.

Every name of a table with rules is replaced by a derived table, in the text as it was written: all
the rest of it stays. Conditions, joins and aggregates therefore see what the caller may see.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import NamedTuple

from tidegate.errors import masking_refused
from tidegate.model.data_rules import DataRules, Show
from tidegate.model.schema import Catalog
from tidegate.model.statements import Statement
from tidegate.sql.dialects import find
from tidegate.sql.dialects.model import Dialect
from tidegate.sql.finding import Refusal
from tidegate.sql.fingerprint import fingerprint, split_at_literals
from tidegate.sql.lex import Token
from tidegate.sql.masking.derived_tables import DerivedTables
from tidegate.sql.masking.hash_key import (
    KEY,
    NO_KEY,
    bind_key,
    has_placeholder,
    key_parameters,
)
from tidegate.sql.masking.masked_statement import MaskedStatement
from tidegate.sql.masking.names import Names
from tidegate.sql.masking.parsed_statement import replace_spans
from tidegate.sql.masking.rewrite_templates import (
    LONGEST,
    Anchor,
    Frame,
    RewriteTemplate,
    SplitText,
    anchored,
    framed,
    placed,
)
from tidegate.sql.masking.session_settings import KnownCatalog
from tidegate.sql.masking.touched_columns import Touched
from tidegate.sql.scan import scan


class Noted(NamedTuple):
    """What a statement touches of what is hidden. `masked` are columns as (table, column): those
    that a query touches, or those of the tables that a change names. `filtered` are the tables and
    views that a query reads and of which rows are hidden."""

    masked: Touched = ()
    filtered: tuple[str, ...] = ()


def rewrite(
    statement: Statement,
    dialect: str,
    data_rules: DataRules,
    catalog: Catalog,
    key: str,
    schema: str | None = None,
) -> Statement:
    """The statement as it may run under the rules; the same text if it touches nothing hidden.

    `catalog` is the whole one of the database. `key` makes the hashes ours: 16 or more letters and
    digits. It is added to the parameters of a statement that reads a hashed column, and is never
    part of the text. `schema` is where unqualified names are searched, if not in the catalog's
    default.
    Raises: TidegateError POLICY_MASKED, POLICY_TABLE; ARGUMENT_INVALID if the placeholders do not
    fit the parameters.
    """
    return rewrite_noting(statement, dialect, data_rules, catalog, key, schema)[0]


def rewrite_noting(
    statement: Statement,
    dialect: str,
    data_rules: DataRules,
    catalog: Catalog,
    key: str,
    schema: str | None = None,
) -> tuple[Statement, Noted]:
    """What `rewrite` gives, and what the statement touches of what is hidden. Raises: as
    `rewrite`."""
    _check_key(key)
    text, under = statement.text, _under(dialect, data_rules, catalog, schema)
    pieces = split_at_literals(text) if len(text) <= LONGEST else None
    if pieces is not None:
        split = SplitText(text, pieces)
        found = _framed(split, under)
        if found is not None and not (found[0].keys and statement.params):
            frame, noted = found
            filled = frame.filled(split)
            if frame.keys:
                return Statement(filled, (key,) * frame.keys, frame.fingerprint), noted
            if filled == text:
                return statement, noted
            return Statement(filled, statement.params, frame.fingerprint), noted
    written = _rewritten(text, under)
    return _bound(statement, written, key, find(dialect)), written.noted


def rewrite_uncached(
    statement: Statement,
    dialect: str,
    data_rules: DataRules,
    catalog: Catalog,
    key: str,
    schema: str | None = None,
) -> Statement:
    """What `rewrite` gives, not from what is kept of it or of others of its pattern.

    Raises: TidegateError POLICY_MASKED, POLICY_TABLE; Refusal for what cannot be read.
    """
    _check_key(key)
    under = _under(dialect, data_rules, catalog, schema)
    tokens = scan(statement.text, find(under.dialect))
    written = _masked_statement(statement.text, tokens, under).rewrite()
    return _bound(statement, _Written(written, tokens, Noted()), key, find(dialect))


def rewrite_explained(
    statement: Statement,
    dialect: str,
    data_rules: DataRules,
    catalog: Catalog,
    key: str,
    schema: str | None = None,
) -> Statement:
    """The statement as its plan may be asked for, by an engine that puts EXPLAIN before it. Nothing
    is computed for a plan, so the hashes in it have no key. Raises: TidegateError POLICY_MASKED."""
    lead = find(dialect).plan_words
    whole = Statement(lead + statement.text, statement.params)
    written = rewrite(whole, dialect, data_rules, catalog, key, schema)
    return Statement(written.text.removeprefix(lead), statement.params)


def masked_columns(
    dialect: str, data_rules: DataRules, catalog: Catalog
) -> Mapping[tuple[str, str], Mapping[str, Show]]:
    """What is shown of masked columns, by the (schema, name) of their tables.

    Raises: TidegateError POLICY_MASKED if the rules do not fit the catalog.
    """
    derived = _cover(_under(dialect, data_rules, catalog, None))
    return {(table.schema, table.name): masks for table, masks in derived.masked_tables}


def _check_key(key: str) -> None:
    if len(key) < 16 or not key.isascii() or not key.isalnum():
        raise masking_refused("The key of the hashes is not fit for use", "masking.key")


def _bound(statement: Statement, written: _Written, key: str, dialect: Dialect) -> Statement:
    if KEY not in written.text:
        return Statement(written.text, statement.params)
    return bind_key(written.text, written.tokens, statement.params, key, dialect)


def _under(dialect: str, data_rules: DataRules, catalog: Catalog, schema: str | None) -> _Under:
    found = find(dialect)
    if not found.fence:
        raise masking_refused(f"The dialect {dialect} has no masks", "masking.dialect")
    return _Under(found.name, data_rules, KnownCatalog(catalog), KEY, schema)


class _Written(NamedTuple):
    """A rewritten text in which `KEY` marks the places of the key, the tokens of the text that
    the caller wrote, and what `rewrite_noting` notes."""

    text: str
    tokens: list[Token]
    noted: Noted


class _Under(NamedTuple):
    """What a statement is rewritten under. `key` is the term in the key's place."""

    dialect: str
    data_rules: DataRules
    known: KnownCatalog
    key: str
    schema: str | None


class _PatternRewrite(NamedTuple):
    """How one statement was rewritten; `anchors` if others of its pattern are rewritten alike."""

    text: str
    written: str
    anchors: tuple[Anchor, ...] | None
    noted: Noted


def _rewritten(text: str, under: _Under) -> _Written:
    # The tokens of a long text take a hundred times its size.
    return _kept(text, under) if len(text) <= LONGEST else _compute(text, under)


def _compute(text: str, under: _Under) -> _Written:
    try:
        if KEY in text:
            raise masking_refused("The statement holds a NUL character", "masking.text")
        tokens = scan(text, find(under.dialect))
        written, noted = _followed(text, tokens, under)
        return _Written(written, tokens, noted)
    except Refusal as refusal:
        raise masking_refused(
            "Some of this source is hidden from this caller, and the statement cannot be"
            f" rewritten: {refusal.finding.reason}",
            refusal.finding.rule,
        ) from None
    except RecursionError:
        raise masking_refused(
            "The statement nests too deep to be rewritten", "masking.depth"
        ) from None


_kept = lru_cache(maxsize=512)(_compute)


def _followed(text: str, tokens: list[Token], under: _Under) -> tuple[str, Noted]:
    """The statement rewritten like one of its pattern was, else by itself."""
    if len(text) <= LONGEST and find(under.dialect).roots.get(tokens[0].key) == "query":
        pattern = RewriteTemplate(text, tokens)
        plan = _pattern_rewrite(pattern, under)
        if plan.anchors is not None:
            return replace_spans(text, placed(plan.anchors, pattern)), plan.noted
        if plan.text == text:
            return plan.written, plan.noted
    statement = _masked_statement(text, tokens, under)
    return statement.rewrite(), _noted(statement)


@lru_cache(maxsize=512)
def _framed(split: SplitText, under: _Under) -> tuple[Frame, Noted] | None:
    """What all statements become that differ from this one in plain values only; None if that is
    not certain, so that each is rewritten by itself. Raises: TidegateError POLICY_MASKED,
    POLICY_TABLE."""
    text = split.text
    written, tokens, noted = _rewritten(text, under)
    dialect = find(under.dialect)
    if dialect.roots.get(tokens[0].key) != "query" or (KEY in written and has_placeholder(tokens)):
        return None
    pattern = RewriteTemplate(text, tokens)
    anchors = _pattern_rewrite(pattern, under).anchors
    if anchors is None:
        return None
    placeholder, keys = key_parameters(dialect, written.count(KEY)) if KEY in written else ("", 0)
    bound = written.replace(KEY, placeholder)
    alike = fingerprint(bound)
    edits = [
        (start, end, piece.replace(KEY, placeholder))
        for start, end, piece in placed(anchors, pattern)
    ]
    frame = framed(split, pattern, edits, None if alike == bound else alike)
    if frame is None or frame.filled(split) != bound:
        return None
    return frame._replace(keys=keys), noted


@lru_cache(maxsize=512)
def _pattern_rewrite(pattern: RewriteTemplate, under: _Under) -> _PatternRewrite:
    statement = _masked_statement(pattern.text, pattern.tokens, under)
    written = statement.rewrite()
    edits = statement.edits
    anchors = None if edits is None else anchored(edits, pattern)
    if anchors is not None and replace_spans(pattern.text, placed(anchors, pattern)) != written:
        anchors = None
    return _PatternRewrite(pattern.text, written, anchors, _noted(statement))


def _noted(statement: MaskedStatement) -> Noted:
    """Once the statement is rewritten."""
    return Noted(statement.masked, statement.filtered)


def _masked_statement(text: str, tokens: list[Token], under: _Under) -> MaskedStatement:
    dialect = find(under.dialect)
    if dialect.roots.get(tokens[0].key) == "explain":
        under = under._replace(key=NO_KEY)  # a plan shows expressions
    return MaskedStatement(text, tokens, dialect, _cover(under))


@lru_cache(maxsize=32)
def _cover(under: _Under) -> DerivedTables:
    names = Names(under.known.catalog, find(under.dialect), under.schema)
    return DerivedTables(under.data_rules, names, under.key)
