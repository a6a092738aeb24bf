"""The tables for every dialect that has none of its own: only what means the same nearly
everywhere, and whatever databases read differently is refused.
"""

from __future__ import annotations

from tidegate.sql.dialects.common import PREDICATES, STANDARD, TYPES
from tidegate.sql.dialects.model import Dialect, Lexis, words

_VERBS = words("""
    ALTER ANALYZE ATTACH BACKUP BEGIN BULK CALL CHECKPOINT COMMIT COPY CREATE DBCC DEALLOCATE
    DECLARE DELETE DENY DETACH DISABLE DO DROP ENABLE EXEC EXECUTE EXPORT FLUSH GO GRANT HANDLER
    IMPORT INSERT INSTALL INTO KILL LOAD LOCK MERGE OPTIMIZE OUTFILE PRAGMA PREPARE PRINT PROCEDURE
    PURGE RAISERROR RECONFIGURE RENAME REPLACE RESET RESTORE REVERT REVOKE ROLLBACK SAVE SAVEPOINT
    SET SETTINGS SETUSER SHUTDOWN SYSTEM TRUNCATE UNLOCK UPDATE UPDATETEXT USE VACUUM WAITFOR WHILE
    WRITETEXT
    """)

DIALECT = Dialect(
    name="default",
    parser="",
    lexis=Lexis(
        operators=PREDICATES | frozenset({"||"}),
        parameters=r"\?|:[A-Za-z_][A-Za-z0-9_]*+|@[A-Za-z_][A-Za-z0-9_]*+",
        comments="ambiguous",
        executable_comments=True,
        backslashes="ambiguous",
        string_prefixes="nN",
        backticks=True,
        bracketed_names=True,
    ),
    roots={
        **dict.fromkeys(("SELECT", "WITH", "VALUES", "("), "query"),
        **dict.fromkeys(("INSERT", "UPDATE", "DELETE", "MERGE", "REPLACE"), "change"),
        **dict.fromkeys(
            ("BEGIN", "COMMIT", "ROLLBACK", "SAVEPOINT", "SET", "START", "USE"), "session"
        ),
        **dict.fromkeys(
            ("GRANT", "REVOKE", "DENY", "BACKUP", "RESTORE", "SHUTDOWN", "SYSTEM"), "admin"
        ),
        "TRUNCATE": "destructive",
        "CREATE": "create",
        "ALTER": "alter",
        "DROP": "drop",
    },
    functions=STANDARD | TYPES,
    attributes=frozenset({"nextval"}),
    secrets=(
        "system.*",
        "mysql.*",
        "sys.*",
        "*.sys.*",
        "master.*",
        "msdb.*",
        "pg_authid",
        "pg_shadow",
        "pg_catalog.*",
        "dba_*",
        "v$*",
        "user$",
        "performance_schema.*",
        "information_schema.processlist",
    ),
    reserved_verbs=_VERBS,
    assigns=True,
    reads_files=True,
)
