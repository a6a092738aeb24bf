"""What the tools for PostgreSQL add to the kernel."""

from tidegate.product import Product, SurfaceEntry, Variant

PRODUCT = Product(
    "pgedge",
    surfaces={
        "postgres": SurfaceEntry(
            "tidegate.surfaces.postgres",
            settings="tidegate.surfaces.postgres.settings:PostgresSettings",
            variants=(
                Variant(
                    "/mcp/v1", "document", "tidegate.edges.http.plain_json:PlainJsonConventions"
                ),
            ),
            check="tidegate.surfaces.postgres.prompts:check_prompts",
        )
    },
)
