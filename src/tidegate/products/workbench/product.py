"""What the workbench adds to the kernel."""

from tidegate.product import Product, SurfaceEntry

PRODUCT = Product(
    "workbench",
    surfaces={
        "workbench": SurfaceEntry(
            "tidegate.products.workbench.surface",
            settings="tidegate.products.workbench.surface.settings:WorkbenchSettings",
            realm="TablePro MCP",
            extended=True,
            in_demo=True,
            keeps_choices=True,
        )
    },
)
