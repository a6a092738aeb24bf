"""What an account of PostgreSQL could do if the gate were not there, and the SQL of a role that can
only read. Pure.

The gate refuses all that is listed here. The list says what is left where something passes by the
gate: another program that has the password, or a fault of ours.
"""

from __future__ import annotations

import hmac
import os
from base64 import b64encode
from hashlib import pbkdf2_hmac, sha256

from tidegate.engines.common.account import AccountFacts, ReadingRequest, Risk, counted
from tidegate.sql.dialects import find

_RELATIONS = (
    "(SELECT count(*) FROM pg_catalog.pg_class AS c JOIN pg_catalog.pg_namespace AS n"
    " ON n.oid = c.relnamespace WHERE c.relkind IN ('r', 'p', 'v', 'f', 'm')"
    " AND n.nspname !~ '^pg_' AND n.nspname <> 'information_schema' AND {condition})"
)
_MAY_WRITE = (
    "(has_table_privilege(c.oid, 'INSERT') OR has_table_privilege(c.oid, 'UPDATE')"
    " OR has_table_privilege(c.oid, 'DELETE') OR has_table_privilege(c.oid, 'TRUNCATE'))"
)
_OF_USERS = (
    "(SELECT count(*) FROM pg_catalog.pg_proc AS p JOIN pg_catalog.pg_namespace AS n"
    " ON n.oid = p.pronamespace WHERE n.nspname !~ '^pg_' AND n.nspname <> 'information_schema'"
    " AND has_schema_privilege(n.oid, 'USAGE') AND has_function_privilege(p.oid, 'EXECUTE')"
    " AND NOT EXISTS (SELECT 1 FROM pg_catalog.pg_depend AS d WHERE d.objid = p.oid"
    " AND d.deptype = 'e'){condition})"
)
_POWERS = {
    "rolcreaterole": "CREATEROLE: it could make roles and give them rights",
    "rolcreatedb": "CREATEDB: it could make databases",
    "rolreplication": "REPLICATION: it could copy the whole server",
    "rolbypassrls": "BYPASSRLS: no row-level security binds it",
}
_MEMBERSHIPS = {
    "pg_read_server_files": "could read files of the server",
    "pg_write_server_files": "could write files of the server",
    "pg_execute_server_program": "could run programs on the server",
    "pg_write_all_data": "could change all tables",
    "pg_signal_backend": "could end the sessions of others",
    "pg_monitor": "could see the statements of others",
}

RISKS_QUERY = (
    "SELECT r.rolsuper, "
    + ", ".join(f"r.{power}" for power in _POWERS)
    + "".join(f", pg_has_role('{role}', 'MEMBER') AS {role}" for role in _MEMBERSHIPS)
    + f", {_RELATIONS.format(condition=_MAY_WRITE)} AS writable"
    + f", {_RELATIONS.format(condition='c.relowner = r.oid')} AS owned"
    + f", {_OF_USERS.format(condition='')} AS functions"
    + f", {_OF_USERS.format(condition=' AND p.prosecdef')} AS definers"
    + ", has_database_privilege(current_database(), 'CREATE') AS creates_schemas"
    + ", (SELECT count(*) FROM pg_catalog.pg_namespace AS n WHERE n.nspname !~ '^pg_' AND"
    " n.nspname <> 'information_schema' AND has_schema_privilege(n.oid, 'CREATE')) AS creates_in"
    + ", current_setting('temp_file_limit') AS temp_file_limit"
    + " FROM pg_catalog.pg_roles AS r WHERE r.rolname = current_user"
)
"""One row about the account that asks."""


ADMINISTRATOR = "postgres"


def risks(facts: AccountFacts) -> list[Risk]:
    """What the row of `RISKS_QUERY` says, the worst first."""
    row = facts.row
    found: list[Risk] = []
    if row["rolsuper"]:
        found.append(
            Risk(
                "the account is a superuser: it could change and delete everything, read and write"
                " files of the server and run programs on it"
            )
        )
    else:
        found += [Risk(f"the account has {text}") for key, text in _POWERS.items() if row[key]]
        found += [
            Risk(f"the account is a member of {role}: it {text}")
            for role, text in _MEMBERSHIPS.items()
            if row[role]
        ]
    if row["owned"]:
        found.append(Risk(f"the account owns {counted(row['owned'], 'table')}: it could drop them"))
    if row["writable"]:
        found.append(Risk(f"the account could change {counted(row['writable'], 'table')}"))
    if row["functions"]:
        definers = row["definers"]
        more = f", of which {definers} run with the rights of their owner" if definers else ""
        found.append(
            Risk(
                f"the account could execute {counted(row['functions'], 'function')} that users"
                f" wrote{more}"
            )
        )
    if row["creates_schemas"] or row["creates_in"]:
        places = counted(row["creates_in"], "schema")
        found.append(Risk(f"the account could create tables and functions (in {places})"))
    if row["temp_file_limit"] == "-1":
        found.append(
            Risk(
                "temp_file_limit is not set: one large sort could fill the server's disk",
                "a superuser sets it: ALTER ROLE ... SET temp_file_limit = '1GB'",
            )
        )
    return found


def reading_script(request: ReadingRequest) -> list[str]:
    """SQL for psql. The source's own account often owns the tables, and makes later ones."""
    dialect = find("postgres")
    quote, text = dialect.quote, dialect.text_literal
    name, account = request.name, request.user
    role, place = quote(name), quote(request.database)
    listed = ", ".join(quote(schema) for schema in request.schemas)
    literals = ", ".join(text(schema) for schema in request.schemas)
    password = ""
    if request.password is not None:
        password = f" PASSWORD {text(_verifier(request.password))}"
    exists = f"SELECT FROM pg_catalog.pg_roles WHERE rolname = {text(name)}"
    return [
        f"-- A role that can read the schemas {listed} of {place}, and nothing else.",
        "-- Run it as a superuser, or as the owner of the database and its tables.",
        "BEGIN;",
        f"DO $do$ BEGIN IF NOT EXISTS ({exists}) THEN CREATE ROLE {role}; END IF; END $do$;",
        f"ALTER ROLE {role} LOGIN NOCREATEDB NOCREATEROLE NOINHERIT CONNECTION LIMIT 20{password};",
        f"ALTER ROLE {role} SET default_transaction_read_only = on;",
        f"ALTER ROLE {role} SET statement_timeout = '120s';",
        f"ALTER ROLE {role} SET idle_in_transaction_session_timeout = '120s';",
        "-- Only a superuser may limit temporary files.",
        f"DO $do$ BEGIN ALTER ROLE {role} SET temp_file_limit = '1GB';"
        " EXCEPTION WHEN insufficient_privilege THEN RAISE NOTICE"
        " 'temp_file_limit was not set: a superuser can'; END $do$;",
        f"GRANT CONNECT ON DATABASE {place} TO {role};",
        "-- Nothing that an earlier run or a person gave the role besides.",
        f"REVOKE ALL ON ALL TABLES IN SCHEMA {listed} FROM {role};",
        f"REVOKE ALL ON ALL SEQUENCES IN SCHEMA {listed} FROM {role};",
        f"REVOKE ALL ON ALL FUNCTIONS IN SCHEMA {listed} FROM {role};",
        f"REVOKE CREATE ON SCHEMA {listed} FROM {role}, PUBLIC;",
        f"GRANT USAGE ON SCHEMA {listed} TO {role};",
        f"GRANT SELECT ON ALL TABLES IN SCHEMA {listed} TO {role};",
        "-- Tables that are made later, by whom tables were made before.",
        "DO $do$ DECLARE owner name; BEGIN FOR owner IN SELECT DISTINCT pg_get_userbyid(c.relowner)"
        " FROM pg_catalog.pg_class AS c JOIN pg_catalog.pg_namespace AS n ON n.oid = c.relnamespace"
        f" WHERE n.nspname IN ({literals}) AND c.relkind IN ('r', 'p', 'v', 'm', 'f')"
        f" UNION SELECT {text(account)} WHERE EXISTS (SELECT FROM pg_catalog.pg_roles WHERE"
        f" rolname = {text(account)}) LOOP BEGIN EXECUTE format('ALTER DEFAULT PRIVILEGES FOR ROLE"
        f" %I IN SCHEMA {_doubled(listed)} GRANT SELECT ON TABLES TO %I', owner, {text(name)});"
        " EXECUTE format('ALTER DEFAULT PRIVILEGES FOR ROLE %I REVOKE EXECUTE ON FUNCTIONS FROM"
        " PUBLIC', owner); EXCEPTION WHEN insufficient_privilege THEN RAISE NOTICE"
        " 'later tables of % stay hidden from the role', owner; END; END LOOP; END $do$;",
        "-- Functions that users wrote: every role may execute them unless PUBLIC lost the right."
        " From",
        "-- now on only the roles that exist may, and not the new one.",
        "DO $do$ DECLARE f regprocedure; kind text; r name; BEGIN FOR f, kind IN SELECT p.oid,"
        " CASE p.prokind WHEN 'p' THEN 'PROCEDURE' ELSE 'FUNCTION' END FROM pg_catalog.pg_proc AS p"
        " JOIN pg_catalog.pg_namespace AS n ON n.oid = p.pronamespace"
        f" WHERE n.nspname IN ({literals}) AND NOT EXISTS (SELECT FROM pg_catalog.pg_depend AS d"
        " WHERE d.objid = p.oid AND d.deptype = 'e') AND EXISTS (SELECT FROM"
        " aclexplode(coalesce(p.proacl, acldefault('f', p.proowner))) AS a WHERE a.grantee = 0)"
        " LOOP BEGIN FOR r IN SELECT rolname FROM pg_catalog.pg_roles WHERE rolname !~ '^pg_'"
        f" AND rolname <> {text(name)} AND NOT rolsuper LOOP EXECUTE format('GRANT EXECUTE ON %s %s"
        " TO %I', kind, f, r); END LOOP; EXECUTE format('REVOKE EXECUTE ON %s %s FROM PUBLIC',"
        " kind, f); EXCEPTION WHEN insufficient_privilege THEN RAISE NOTICE"
        " 'the role can still execute %', f; END; END LOOP; END $do$;",
        "COMMIT;",
    ]


_ITERATIONS = 4_096


def _verifier(password: str) -> str:
    """What the server keeps of a password (RFC 5803): the script does not hold the password."""
    salt = os.urandom(16)
    salted = pbkdf2_hmac("sha256", password.encode("ascii"), salt, _ITERATIONS)
    stored = sha256(hmac.digest(salted, b"Client Key", "sha256")).digest()
    server = hmac.digest(salted, b"Server Key", "sha256")
    salt64, stored64, server64 = (b64encode(part).decode() for part in (salt, stored, server))
    return f"SCRAM-SHA-256${_ITERATIONS}:{salt64}${stored64}:{server64}"


def _doubled(text: str) -> str:
    """Within a string, and within `format`."""
    return text.replace("'", "''").replace("%", "%%")
