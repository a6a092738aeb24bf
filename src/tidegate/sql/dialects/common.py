"""What the dialects share: keywords that come before a bracket, words that give a change away,
functions of the SQL standard, views that describe a database.
"""

from __future__ import annotations

import re
from typing import Any

from tidegate.sql.dialects.model import words

SYNTAX = words("""
    ALL AND ANY ARRAY AS BETWEEN CASE CHECK CROSS DISTINCT ELSE END EXCEPT EXISTS FROM HAVING IN
    INTERSECT INTERVAL INTO IS JOIN LATERAL LIKE LIMIT NOT NULL OFFSET ON OR QUALIFY RETURNING ROW
    SELECT SET SOME THEN UNION USING VALUES WHEN WHERE WITH
    """)
"""Keywords that may come before a bracket wherever they are allowed at all."""

AFTER: dict[str, frozenset[str]] = {
    "AGAINST": frozenset({")"}),
    "BERNOULLI": frozenset({"TABLESAMPLE", "SAMPLE"}),
    "BY": frozenset({"GROUP", "ORDER", "PARTITION"}),
    "COLUMNS": frozenset({""}),
    "EXCLUDE": frozenset({"*"}),
    "FILTER": frozenset({")"}),
    "FIRST": frozenset({"FETCH"}),
    "FOR": frozenset({"COLLATION"}),
    "GROUP": frozenset({"WITHIN"}),
    "INDEX": frozenset({"USE", "FORCE", "IGNORE"}),
    "KEY": frozenset({"USE", "USING", "FORCE", "IGNORE", "PRIMARY", "FOREIGN"}),
    "MATERIALIZED": frozenset({"AS"}),
    "NULLS": frozenset({"INCLUDE"}),
    "OF": frozenset({"AS", "MEMBER"}),
    "ONLY": frozenset({"FROM", "JOIN", ","}),
    "OVER": frozenset({")", "NULLS"}),
    "PASSING": frozenset({""}),
    "PERCENT": frozenset({""}),
    "PIVOT": frozenset({"", ")"}),
    "RECURSIVE": frozenset({"WITH"}),
    "REPEATABLE": frozenset({")"}),
    "RENAME": frozenset({"*", ")"}),
    "RESERVOIR": frozenset({"TABLESAMPLE", "SAMPLE"}),
    "SECOND": frozenset({""}),
    "SETS": frozenset({"GROUPING"}),
    "STRUCT": frozenset({"::", "AS"}),
    "SYSTEM": frozenset({"TABLESAMPLE", "SAMPLE"}),
    "TO": frozenset({"SIMILAR"}),
    "UNPIVOT": frozenset({"", ")"}),
    "VALUE": frozenset({""}),
}
"""Words that may be names as well: they are keywords before a bracket only after one of these
("" means anything that is quoted or a literal)."""

VERBS = frozenset({"INTO", "FOR", "LOCK", "NEXT", "DELETE", "INSERT", "UPDATE", "MERGE"})
"""Words that are checked more closely in a statement that promises to read."""

OPERAND_FOLLOWS = words("""
    AND BETWEEN BY CASE DISTINCT ELSE FILTER HAVING ILIKE IN LIKE LIMIT NOT OFFSET ON OR QUALIFY
    RETURNING SELECT THEN VALUES WHEN WHERE
    """)
"""Keywords after which an operator can only be a prefix."""

OPERAND_BEGINS = words("""
    ASYMMETRIC BINARY BOTH FOR HIGH_PRIORITY LEADING PLACING SQL_BIG_RESULT SQL_BUFFER_RESULT
    SQL_CALC_FOUND_ROWS SQL_NO_CACHE SQL_SMALL_RESULT STRAIGHT_JOIN SYMMETRIC TRAILING
    """)
"""Further words after which an operand begins, so that no infix word can follow them."""

TYPES = words("""
    bigint binary bit blob bool boolean bpchar bytea char character clob date datetime dec decimal
    double enum fixed float float4 float8 int int2 int4 int8 integer interval json jsonb nchar
    number numeric nvarchar precision real signed smallint text time timestamp timestamptz timetz
    tinyint unsigned uuid varbinary varbit varchar varchar2 varying xml year
    """)
"""Names of types that take a length, or are called to convert."""

INTRODUCERS = words("_UTF8 _UTF8MB3 _UTF8MB4 _LATIN1 _ASCII _BINARY _UCS2 _UTF16 _UTF32")
"""Words that say in which character set the string after them is."""

STANDARD = words("""
    abs acos any_value asin atan atan2 avg bit_length cast ceil ceiling char_length character_length
    coalesce concat concat_ws cos cot count cume_dist current_date current_time current_timestamp
    current_user date degrees dense_rank exp extract first_value floor greatest group_concat
    grouping json_array json_arrayagg json_exists json_object json_objectagg json_query json_value
    lag last_value lead least left length ln localtime localtimestamp log log10 lower lpad ltrim max
    min mod nth_value ntile nullif octet_length overlay percent_rank percentile_cont percentile_disc
    pi position power radians rank regexp_like replace right round row_number rpad rtrim sign sin
    sqrt stddev stddev_pop stddev_samp string_agg substr substring sum tan trim trunc upper var_pop
    var_samp variance
    """)
"""Functions that mean the same almost everywhere."""

JSON_HANDLING = (
    ("DEFAULT ' ON EMPTY ERROR ON ERROR", ""),
    ("DEFAULT ' ON EMPTY", ""),
    ("DEFAULT ' ON ERROR", ""),
    ("DEFAULT # ON EMPTY", ""),
    ("DEFAULT # ON ERROR", ""),
    ("NULL ON EMPTY", ""),
    ("NULL ON ERROR", ""),
    ("EXISTS PATH '", "1 2"),
)
"""What JSON functions give for what is not there. Each rule holds a word that can be no name there,
or what cannot follow one: a table must not be taken for a clause, and be overlooked."""

PREDICATES = words("= < > <= >= <> != + - * / %")
"""Operators that every dialect has."""

INFORMATION_SCHEMA = words("""
    check_constraints columns constraint_column_usage constraint_table_usage domains
    key_column_usage parameters referential_constraints routines schemata sequences
    table_constraints tables triggers views
    """)
"""Views of the SQL standard that describe a database and hold no values of columns."""

PG_CATALOG = words("""
    pg_am pg_attrdef pg_attribute pg_cast pg_class pg_collation pg_constraint pg_database pg_depend
    pg_description pg_enum pg_extension pg_foreign_table pg_index pg_indexes pg_inherits pg_language
    pg_matviews pg_namespace pg_opclass pg_operator pg_partitioned_table pg_policies pg_policy
    pg_proc pg_range pg_roles pg_rules pg_sequence pg_settings pg_tables pg_tablespace
    pg_timezone_abbrevs pg_timezone_names pg_trigger pg_type pg_user pg_views
    """)
"""Tables of PostgreSQL's catalog that describe a database and hold no values of columns."""


STANDARD_COLUMNS = """
    table_catalog table_schema table_name column_name ordinal_position column_default? is_nullable
    data_type character_maximum_length character_octet_length numeric_precision
    numeric_precision_radix numeric_scale datetime_precision interval_type interval_precision
    character_set_catalog character_set_schema character_set_name collation_catalog collation_schema
    collation_name domain_catalog domain_schema domain_name udt_catalog udt_schema udt_name
    scope_catalog scope_schema scope_name maximum_cardinality dtd_identifier is_self_referencing
    is_identity identity_generation identity_start identity_increment identity_maximum
    identity_minimum identity_cycle is_generated generation_expression is_updatable
    """
"""The columns of information_schema.columns, as `SystemTable.columns`."""
MASKED_COLUMNS = "(table_schema, table_name, column_name) IN ({columns})"


def spelled_duration(value: Any) -> Any:
    """An ISO 8601 duration in words that PostgreSQL and DuckDB read; other values as they are."""
    found = re.fullmatch(DURATION, value, re.ASCII) if isinstance(value, str) else None
    if found is None:
        return value
    sign = found[1]
    shown = [
        f"{part.removeprefix('-') if sign and part.startswith('-') else sign + part} {unit}"
        for part, unit in zip(found.groups()[1:], _UNITS, strict=True)
        if part is not None
    ]
    return " ".join(shown)


DURATION = r"(-?)P(?:(-?\d+)Y)?(?:(-?\d+)M)?(?:(-?\d+)D)?(?:T(-?\d+(?:\.\d+)?)S)?"
_UNITS = ("years", "months", "days", "seconds")
