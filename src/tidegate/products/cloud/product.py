"""What cloud APIs add to the kernel."""

from tidegate.product import CommandEntry, EngineEntry, Product, SurfaceEntry

PRODUCT = Product(
    "cloud",
    engines={
        "cloud": EngineEntry(
            *("cloud", "cloud", "tidegate.products.cloud.engine", "CloudEngine"),
            table_form="provider.service.resource",
            language="tidegate.products.cloud.language.cloud_sql",
            writes_by_settings=True,
            options=(
                *("cache_bytes", "cache_seconds", "concurrency", "join_bytes", "join_rows"),
                *("max_calls", "max_calls_per_minute", "page_limit", "request_timeout", "settings"),
            ),
            plain_options=(
                *("cache_bytes", "cache_seconds", "concurrency", "join_bytes", "join_rows"),
                *("max_calls", "max_calls_per_minute", "page_limit", "request_timeout"),
            ),
            locator="tidegate.products.cloud.engine.options:locate",
            path_reader="tidegate.products.cloud.engine.options:path_of",
            reader="tidegate.products.cloud.engine.options:read_cloud_options",
            shared_settings="tidegate.products.cloud.settings:settings_text",
            session_gate="tidegate.products.cloud.surface.wire_calls:open_gate",
        ),
        "cloud+postgresql:": EngineEntry(
            *("cloud", "cloud", "tidegate.products.cloud.proxy", "CloudProxyEngine", "postgres"),
            language="tidegate.products.cloud.language.cloud_sql",
            writes_by_settings=True,
            options=("application_name", "connect_timeout", "plain_postgresql", "pool"),
            locator="tidegate.products.cloud.proxy.url:locate",
            reader="tidegate.products.cloud.proxy.url:read_target",
            session_gate="tidegate.products.cloud.surface.wire_calls:open_gate",
        ),
    },
    surfaces={
        "cloud": SurfaceEntry(
            "tidegate.products.cloud.surface",
            settings="tidegate.products.cloud.surface.settings:CloudSurfaceSettings",
            check="tidegate.products.cloud.surface.tools:check_names",
            statement_rules="tidegate.products.cloud.surface.settings:statement_rules",
            extended=True,
        )
    },
    dialects={"cloud": "tidegate.products.cloud.dialect"},
    commands={
        "cloud": CommandEntry(
            "tidegate.products.cloud.commands.arguments:add_cloud",
            "databases",
            {
                "cloud check": "cloud check registry --json",
                "cloud pull": "cloud pull github",
                "cloud import": "cloud import openapi.yaml --provider shop",
                "cloud snapshot": "cloud snapshot cloud 'SELECT name FROM aws.s3.buckets'"
                " --output old.json",
                "cloud diff": "cloud diff old.json new.json --key name",
                "cloud shell": "cloud shell",
            },
        )
    },
    settings_format="tidegate.products.cloud.settings_import:FORMAT",
    command_hooks="tidegate.products.cloud.commands.hooks:HOOKS",
    settings={"cloud": "tidegate.products.cloud.settings:CloudSettings"},
)
