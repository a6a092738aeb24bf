"""Apache Derby, as tables of data: the same as H2's, whose strings and names Derby shares.

Its system procedures (SYSCS_UTIL) export tables to files and change settings: CALL is not read.
Source: the Derby reference manual, version 10.14.
"""

from __future__ import annotations

from msgspec import structs

from tidegate.products.jdbc.dialects import h2

DIALECT = structs.replace(
    h2.DIALECT,
    name="derby",
    title="Apache Derby",
    literals_are_calls=True,
    row_limits="fetch",
    text_type="VARCHAR(32672)",  # the longest: a cast names a length
    # Its diagnostic tables show the statements of others.
    secrets=(*h2.DIALECT.secrets, "syscs_diag.*"),
)
