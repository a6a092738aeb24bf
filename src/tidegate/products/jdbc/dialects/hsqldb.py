"""HSQLDB, as tables of data: the same as H2's, except tables that hold secrets.

A quoted name before a bracket may be a static method of Java, which is why only listed functions
are called. Source: the HyperSQL user guide, version 2.7.
"""

from __future__ import annotations

from msgspec import structs

from tidegate.products.jdbc.dialects import h2

DIALECT = structs.replace(
    h2.DIALECT,
    name="hsqldb",
    title="HSQLDB",
    has_information_schema=True,
    text_type="VARCHAR(1048576)",  # a cast names a length
    # Digests of passwords, other sessions' statements, and the contents of every large object.
    secrets=(*h2.DIALECT.secrets, "system_users", "system_sessions", "system_lobs.*"),
)
