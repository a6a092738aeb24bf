"""What an account of MySQL or MariaDB could do if the gate were not there, and the SQL of one that
can only read. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable
from hashlib import sha1

from tidegate.engines.common.account import AccountFacts, ReadingRequest, Risk
from tidegate.sql.dialects import find

_GRANT = re.compile(r"GRANT (.+?) ON (\S+|`[^`]*`\.\S+) TO ", re.DOTALL)
_COLUMNS = re.compile(r"\([^)]*\)")
_OPTION = "WITH GRANT OPTION"

_HARMLESS = frozenset({
    "BINLOG MONITOR", "REPLICATION CLIENT", "SELECT", "SHOW DATABASES", "SHOW VIEW",
    "SLAVE MONITOR", "USAGE",
})  # fmt: skip
_COULD = {
    "FILE": "read and write files of the server",
    "SUPER": "change settings of the server and end the sessions of others",
    "EXECUTE": "execute procedures and functions that users wrote",
    "CREATE USER": "make accounts",
    "SHUTDOWN": "stop the server",
    "INSERT": "add rows", "UPDATE": "change rows", "DELETE": "delete rows",
    "DROP": "drop tables", "ALTER": "change tables", "CREATE": "create tables",
    "PROCESS": "see the statements of others",
}  # fmt: skip


RISKS_QUERY = None
ADMINISTRATOR = "root"


def risks(facts: AccountFacts) -> list[Risk]:
    """What `privilege_warnings` found when the connection was opened."""
    return [Risk(text) for text in facts.warnings]


def privilege_warnings(grants: Iterable[str]) -> tuple[str, ...]:
    """What the lines of SHOW GRANTS allow in addition to reading, the worst first, in sentences for
    the operator."""
    found: list[str] = []
    places: dict[str, list[str]] = {}
    for grant in grants:
        match = _GRANT.match(grant)
        if match is None:
            continue
        names = {name.strip().upper() for name in _COLUMNS.sub("", match[1]).split(",")}
        if grant.rstrip().endswith(_OPTION):
            names.add("GRANT OPTION")
        for name in names:
            places.setdefault(name, []).append(match[2].replace("`", ""))
    if "ALL PRIVILEGES" in places:
        where = _joined(places.pop("ALL PRIVILEGES"))
        files = ", read and write files of the server" if "*.*" in where else ""
        found.append(
            f"the account has ALL PRIVILEGES on {where}: it could change and delete everything"
            f" there{files} (FILE, SUPER, EXECUTE); a read-only transaction is no full fence in"
            " MySQL"
        )
    order = [*_COULD, *sorted(places.keys() - _COULD.keys())]
    for name in order:
        if name in places and name not in _HARMLESS:
            could = f": it could {_COULD[name]}" if name in _COULD else ""
            found.append(f"the account has {name} on {_joined(places[name])}{could}")
    return tuple(found)


def _joined(places: Iterable[str]) -> str:
    listed = list(dict.fromkeys(places))
    return ", ".join(listed[:3]) + (f" and {len(listed) - 3} more" if len(listed) > 3 else "")


def reading_script(request: ReadingRequest) -> list[str]:
    """SQL for the mysql or mariadb client."""
    dialect = find("mysql")
    text = dialect.text_literal
    account = f"{text(request.name)}@'%'"
    database = request.database
    pattern = dialect.quote(database.replace("\\", "\\\\").replace("_", "\\_").replace("%", "\\%"))
    maria = "maria" in request.server_version.lower()
    limits = "MAX_USER_CONNECTIONS 20" + (" MAX_STATEMENT_TIME 120" if maria else "")
    identified = ""
    if request.password is not None and maria:
        identified = f" IDENTIFIED BY PASSWORD {text(_native(request.password))}"
    elif request.password is not None:
        # MySQL 9 takes no hash that is made without the server.
        identified = f" IDENTIFIED BY {text(request.password)}"
    grant = f"GRANT SELECT, SHOW VIEW ON {pattern}.* TO {account};"
    return [
        f"-- An account that can read the database {database}, and nothing else.",
        "-- Run it as an account that may create users, such as root.",
        f"CREATE USER IF NOT EXISTS {account};",
        f"ALTER USER {account}{identified} WITH {limits};",
        "-- Before anything is revoked: an account that may not grant it stops here.",
        grant,
        "-- Nothing that an earlier run or a person gave the account besides.",
        f"REVOKE ALL PRIVILEGES, GRANT OPTION FROM {account};",
        grant,
    ]


def _native(password: str) -> str:
    """The hash of `mysql_native_password`, as the server keeps it."""
    return "*" + sha1(sha1(password.encode()).digest()).hexdigest().upper()
