"""What the tools for PostgreSQL add to the kernel."""

from tidegate.product import CommandEntry, Product, SurfaceEntry, Variant

PRODUCT = Product(
    "pgedge",
    commands={
        "ask": CommandEntry(
            "tidegate.products.pgedge.commands.arguments:add_ask",
            "ask",
            {
                "ask": "ask shop 'How many orders came last week?'",
            },
        )
    },
    settings_format="tidegate.products.pgedge.settings_import:FORMAT",
    command_hooks="tidegate.products.pgedge.commands.hooks:HOOKS",
    settings={"language": "tidegate.products.pgedge.settings:LanguageSettings"},
    surfaces={
        "postgres": SurfaceEntry(
            "tidegate.products.pgedge.surface",
            settings="tidegate.products.pgedge.surface.settings:PostgresSettings",
            keeps_choices=True,
            variants=(
                Variant(
                    "/mcp/v1",
                    "document",
                    "tidegate.products.pgedge.plain_json:PlainJsonConventions",
                ),
            ),
            check="tidegate.products.pgedge.surface.prompts:check_prompts",
        )
    },
)
