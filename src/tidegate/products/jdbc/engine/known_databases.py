"""What is known of each database with a JDBC driver, by the beginning of its URL. Data only.

The class names and coordinates are those that the databases' own documentation gives.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

import msgspec

Fence = Literal["driver", "statement", "connection", "none"]


class KnownDatabase(msgspec.Struct, frozen=True, kw_only=True):
    """One database.

    `fence` says what keeps a read from writing, in addition to the gate's judgement: the `driver`,
    by `setReadOnly`, has the database refuse changes; a `statement`, `begin_read`, does; the
    `connection` does, opened with `read_properties`; or nothing does.
    `at_connect` is run on each new connection: where a database would hold a result in memory, it
    streams it, or puts it on disk. `properties` are always given to the driver. `parameters` are
    those that a URL may have; any other is refused, because some run code or read
    files. `explain` is put before a statement to see its plan; empty if nothing does.
    `system_schemas` are left out of the catalog.
    `loose`: values have types of their own, whatever their column says.
    """

    name: str
    dialect: str
    driver: str
    coordinate: str = ""
    server_coordinate: str = ""
    """The driver for URLs of servers, where it is another library."""
    title: str
    fence: Fence
    begin_read: str = ""
    at_connect: tuple[str, ...] = ()
    properties: Mapping[str, str] = {}
    read_properties: Mapping[str, str] = {}
    parameters: frozenset[str] = frozenset()
    explain: str = ""
    explains_as_json: bool = False
    system_schemas: tuple[str, ...] = ()
    loose: bool = False
    cancels: bool = True
    """Its driver ends a statement when it is asked to. Otherwise the Java process is ended, with
    what else runs there."""
    prepares: bool = True
    """Its driver describes a statement that has not run."""
    cuts_fractions: bool = False
    """It takes a fraction for an integer's parameter, and cuts it."""
    writes_values: bool = False
    """Its driver would write parameters into the text as no reading of ours foresees: the engine
    writes them as literals of the dialect."""
    calls_bare: bool = False
    """It calls functions without brackets, or may: a name that is no column is refused."""
    system_schema: str = ""
    """Whose tables are found without a schema, after those of the own one."""
    schemas: bool = True
    """Tables are in schemas; else what the gate calls a schema is a catalog, or there is one."""
    default_schema: str = ""
    """The name of the one schema of a database that has none to name."""
    port: int | None = None
    tls_offer: Literal["answer", "greeting", ""] = ""
    """How its server says before a login that it encrypts: in its `answer` to an SSLRequest, or in
    its `greeting`; empty if that is not known."""
    in_process: bool = False
    """The database runs in the JVM itself, on files or in memory."""
    servers: tuple[str, ...] = ()
    """How the part of a URL after the name of such a database begins if it names a server. Its
    driver reads every other beginning as a file's."""
    exclusive: Literal["never", "changed", "always"] = "never"
    """When one process has its files alone: if it may change them, or always."""
    memory: tuple[str, ...] = ()
    """The same for a database in memory: a beginning that ends with a colon, or the whole."""
    file_endings: tuple[str, ...] = ("",)
    """What the database adds to the path of its file in a URL; one of these files is there."""
    file_parameters: Mapping[str, str] = {}
    """What a URL of a file gets, so that connecting creates none."""
    read_file_parameters: Mapping[str, str] = {}
    """What a URL of a file gets if its source is only read."""
    mark: Literal["?", ";"] = ";"
    """What precedes the parameters of a URL; `&` is between them after a `?`."""


_SQL_STANDARD = ("INFORMATION_SCHEMA", "information_schema")
_MYSQL_SYSTEM = (*_SQL_STANDARD, "mysql", "performance_schema", "sys")

KNOWN_DATABASES: dict[str, KnownDatabase] = {
    "jdbc:postgresql:": KnownDatabase(
        name="postgresql",
        dialect="postgres",
        driver="org.postgresql.Driver",
        coordinate="org.postgresql:postgresql:42.7.8",
        title="PostgreSQL",
        fence="driver",
        # A text parameter fits any column, as it does without JDBC.
        properties={"stringtype": "unspecified", "ApplicationName": "tidegate"},
        parameters=frozenset(
            {"sslmode", "currentSchema", "connectTimeout", "loginTimeout", "socketTimeout"}
            | {"tcpKeepAlive", "targetServerType", "user", "ApplicationName"}
        ),
        explain="EXPLAIN",
        explains_as_json=True,
        system_schemas=(*_SQL_STANDARD, "pg_catalog", "pg_toast"),
        mark="?",
        port=5432,
        tls_offer="answer",
    ),
    "jdbc:mariadb:": KnownDatabase(
        name="mariadb",
        dialect="mysql",
        driver="org.mariadb.jdbc.Driver",
        coordinate="org.mariadb.jdbc:mariadb-java-client:3.4.1",
        title="MariaDB",
        fence="statement",
        begin_read="START TRANSACTION READ ONLY",
        # The server parses and binds: the driver's own reading of a text decides nothing.
        properties={
            "allowLocalInfile": "false",
            "allowMultiQueries": "false",
            "useServerPrepStmts": "true",
        },
        parameters=frozenset({"useSsl", "sslMode", "connectTimeout", "socketTimeout", "user"}),
        explain="EXPLAIN",
        explains_as_json=True,
        system_schemas=_MYSQL_SYSTEM,
        schemas=False,
        mark="?",
        port=3306,
        tls_offer="greeting",
    ),
    "jdbc:mysql:": KnownDatabase(
        name="mysql",
        dialect="mysql",
        driver="com.mysql.cj.jdbc.Driver",
        coordinate="com.mysql:mysql-connector-j:8.4.0",
        title="MySQL",
        fence="statement",
        begin_read="START TRANSACTION READ ONLY",
        properties={
            "allowLoadLocalInfile": "false",
            "allowMultiQueries": "false",
            "autoDeserialize": "false",
            "useServerPrepStmts": "true",
        },
        parameters=frozenset({"sslMode", "connectTimeout", "socketTimeout", "user"}),
        explain="EXPLAIN",
        explains_as_json=True,
        system_schemas=_MYSQL_SYSTEM,
        schemas=False,
        mark="?",
        port=3306,
        tls_offer="greeting",
    ),
    "jdbc:h2:": KnownDatabase(
        name="h2",
        dialect="h2",
        driver="org.h2.Driver",
        coordinate="com.h2database:h2:2.2.224",
        title="H2",
        fence="none",
        at_connect=("SET LAZY_QUERY_EXECUTION 1",),
        parameters=frozenset(
            {"MODE", "IFEXISTS", "DB_CLOSE_DELAY", "DB_CLOSE_ON_EXIT", "ACCESS_MODE_DATA"}
            | {"CASE_INSENSITIVE_IDENTIFIERS", "DATABASE_TO_UPPER", "DATABASE_TO_LOWER"}
            | {"LOCK_TIMEOUT", "SCHEMA", "USER", "NON_KEYWORDS"}
        ),
        explain="EXPLAIN",
        system_schemas=_SQL_STANDARD,
        port=9092,
        in_process=True,
        servers=("tcp://", "ssl://"),
        memory=("mem:", ""),
        file_endings=("", ".mv.db", ".h2.db"),
        exclusive="changed",
        file_parameters={"IFEXISTS": "TRUE"},
        read_file_parameters={"ACCESS_MODE_DATA": "r"},
    ),
    "jdbc:hsqldb:": KnownDatabase(
        name="hsqldb",
        dialect="hsqldb",
        driver="org.hsqldb.jdbc.JDBCDriver",
        coordinate="org.hsqldb:hsqldb:2.7.3",
        title="HSQLDB",
        cancels=False,
        cuts_fractions=True,
        fence="driver",
        at_connect=("SET SESSION RESULT MEMORY ROWS 1000",),
        # Or its lock file keeps the next process out for ten seconds.
        properties={"shutdown": "true"},
        parameters=frozenset({"ifexists", "readonly", "sql.syntax_mys", "sql.syntax_pgs"}),
        explain="EXPLAIN PLAN FOR",
        system_schemas=(*_SQL_STANDARD, "SYSTEM_LOBS"),
        in_process=True,
        servers=("hsql://", "hsqls://", "http://", "https://"),
        memory=("mem:",),
        file_endings=("", ".script", ".properties"),
        exclusive="changed",
        file_parameters={"ifexists": "true"},
        read_file_parameters={"readonly": "true"},
    ),
    "jdbc:derby:": KnownDatabase(
        name="derby",
        dialect="derby",
        driver="org.apache.derby.jdbc.EmbeddedDriver",
        coordinate="org.apache.derby:derby:10.16.1.1",
        server_coordinate="org.apache.derby:derbyclient:10.16.1.1",
        title="Apache Derby",
        cancels=False,
        cuts_fractions=True,
        fence="driver",
        parameters=frozenset({"territory", "collation"}),
        port=1527,
        system_schemas=(
            *("SYS", "SYSIBM", "SYSCS_UTIL", "SYSCAT", "SYSCS_DIAG", "SYSFUN", "SYSPROC"),
            *("SYSSTAT", "NULLID", "SQLJ"),
        ),
        in_process=True,
        servers=("//",),
        memory=("memory:",),
        exclusive="always",
    ),
    "jdbc:sqlite:": KnownDatabase(
        name="sqlite",
        dialect="sqlite",
        driver="org.sqlite.JDBC",
        coordinate="org.xerial:sqlite-jdbc:3.46.1.3",
        title="SQLite",
        fence="connection",
        read_properties={"open_mode": "1"},
        properties={"open_mode": "2", "enable_load_extension": "false"},
        explain="EXPLAIN QUERY PLAN",
        loose=True,
        schemas=False,
        default_schema="main",
        mark="?",
        in_process=True,
        memory=(":memory:", ""),
    ),
    "jdbc:hive2:": KnownDatabase(
        name="spark",
        dialect="spark",
        driver="org.apache.hive.jdbc.HiveDriver",
        title="Spark",
        fence="none",
        # No file is a table by its path, and no variable of the server is put into a text.
        at_connect=(
            "SET spark.sql.runSQLOnFiles=false",
            "SET spark.sql.variable.substitute=false",
        ),
        parameters=frozenset({"ssl", "transportMode", "httpPath", "user"}),
        explain="EXPLAIN",
        system_schemas=_SQL_STANDARD,
        writes_values=True,
        prepares=False,
        port=10_000,
    ),
    "jdbc:oracle:": KnownDatabase(
        name="oracle",
        dialect="oracle",
        driver="oracle.jdbc.OracleDriver",
        coordinate="com.oracle.database.jdbc:ojdbc11:23.4.0.24.05",
        title="Oracle",
        fence="statement",
        begin_read="SET TRANSACTION READ ONLY",
        calls_bare=True,
        system_schema="SYS",
        port=1521,
    ),
    "jdbc:sqlserver:": KnownDatabase(
        name="sqlserver",
        dialect="tsql",
        driver="com.microsoft.sqlserver.jdbc.SQLServerDriver",
        coordinate="com.microsoft.sqlserver:mssql-jdbc:12.8.1.jre11",
        title="SQL Server",
        fence="none",
        # Not on the list: serverName, portNumber and instanceName, which lead to another server.
        parameters=frozenset(
            {"databaseName", "encrypt", "trustServerCertificate", "applicationName", "user"}
            | {"applicationIntent", "loginTimeout", "socketTimeout"}
        ),
        system_schemas=("sys", *_SQL_STANDARD),
        port=1433,
    ),
}
"""By the prefix of their URLs."""

OTHER = KnownDatabase(
    name="other",
    dialect="default",
    driver="",
    title="the database",
    fence="driver",
    calls_bare=True,
)
"""A database of which nothing is known: the strictest judgement, and what its driver does of its
own to keep a read from writing, if anything."""


def known_database_of(url: str) -> KnownDatabase:
    """What is known of the database of a JDBC URL."""
    lowered = url.lower()
    for prefix, product in KNOWN_DATABASES.items():
        if lowered.startswith(prefix):
            return product
    return OTHER
