"""What the settings of a session are before its client sets them, and which are reported to it.
Pure."""

from __future__ import annotations

from tidegate import __version__

DEFAULTS = {
    "application_name": "",
    "bytea_output": "hex",
    "client_encoding": "UTF8",
    "client_min_messages": "notice",
    "datestyle": "ISO, MDY",
    "default_table_access_method": "heap",
    "default_tablespace": "",
    "default_transaction_isolation": "read committed",
    "default_transaction_read_only": "off",
    "extra_float_digits": "1",
    "idle_in_transaction_session_timeout": "0",
    "integer_datetimes": "on",
    "intervalstyle": "postgres",
    "is_superuser": "off",
    "jit": "off",
    "lock_timeout": "0",
    "max_identifier_length": "63",
    "max_index_keys": "32",
    "row_security": "off",
    "search_path": "",
    "server_encoding": "UTF8",
    "server_version": "17.0",
    "server_version_num": "170000",
    "session_authorization": "",
    "standard_conforming_strings": "on",
    "statement_timeout": "0",
    "synchronize_seqscans": "on",
    "tidegate.confirm": "",
    "tidegate.dialect": "",
    "tidegate.max_rows": "0",
    "tidegate.on_behalf_of": "",
    "tidegate.plan": "",
    "tidegate.version": __version__,
    "timezone": "UTC",
    "transaction_isolation": "read committed",
    "transaction_read_only": "off",
}

REPORTED = {
    "application_name": "application_name",
    "client_encoding": "client_encoding",
    "datestyle": "DateStyle",
    "default_transaction_read_only": "default_transaction_read_only",
    "in_hot_standby": "in_hot_standby",
    "integer_datetimes": "integer_datetimes",
    "intervalstyle": "IntervalStyle",
    "is_superuser": "is_superuser",
    "search_path": "search_path",
    "server_encoding": "server_encoding",
    "server_version": "server_version",
    "session_authorization": "session_authorization",
    "tidegate.dialect": "tidegate.dialect",
    "tidegate.version": "tidegate.version",
    "standard_conforming_strings": "standard_conforming_strings",
    "timezone": "TimeZone",
}
"""What PostgreSQL reports by itself, under the names by which it does."""
