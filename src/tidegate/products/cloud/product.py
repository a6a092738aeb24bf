"""What cloud APIs add to the kernel."""

from tidegate.product import EngineEntry, Product, SurfaceEntry

PRODUCT = Product(
    "cloud",
    engines={
        "cloud": EngineEntry(
            *("cloud", "cloud", "tidegate.engines.cloud", "CloudEngine"),
            language="tidegate.cloud.language",
            options=(
                *("cache_bytes", "cache_seconds", "concurrency", "join_bytes", "join_rows"),
                *("max_calls", "max_calls_per_minute", "page_limit", "request_timeout", "settings"),
            ),
            locator="tidegate.engines.cloud.options:locate",
            path_reader="tidegate.engines.cloud.options:path_of",
            reader="tidegate.engines.cloud.options:read_cloud_options",
        ),
        "cloud+postgresql:": EngineEntry(
            *("cloud", "cloud", "tidegate.engines.cloud_proxy", "CloudProxyEngine", "postgres"),
            language="tidegate.cloud.language",
            options=("application_name", "connect_timeout", "plain_postgresql", "pool"),
            locator="tidegate.engines.cloud_proxy.url:locate",
            reader="tidegate.engines.cloud_proxy.url:read_target",
        ),
    },
    surfaces={
        "cloud": SurfaceEntry(
            "tidegate.surfaces.cloud",
            settings="tidegate.surfaces.cloud.settings:CloudSurfaceSettings",
            check="tidegate.surfaces.cloud.tools:check_names",
            statement_rules="tidegate.surfaces.cloud.settings:statement_rules",
        )
    },
    dialects={"cloud": "tidegate.sql.dialects.cloud"},
    commands={"cloud": "tidegate.cli.arguments.cloud:add_cloud"},
)
