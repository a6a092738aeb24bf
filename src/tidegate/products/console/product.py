"""What the console adds to the kernel."""

from tidegate.product import CommandEntry, Product

PRODUCT = Product(
    "console",
    pages="tidegate.products.console.serving:make_pages",
    pages_path="/console",
    commands={
        "console": CommandEntry(
            "tidegate.products.console.commands.arguments:add_console",
            "people",
            {"console": "console --print"},
        )
    },
)
