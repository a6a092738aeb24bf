"""What the workbench adds to the kernel."""

from tidegate.product import Product, SurfaceEntry

PRODUCT = Product(
    "workbench",
    surfaces={
        "workbench": SurfaceEntry(
            "tidegate.surfaces.workbench",
            settings="tidegate.surfaces.workbench.settings:WorkbenchSettings",
            realm="TablePro MCP",
        )
    },
)
