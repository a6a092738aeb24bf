"""What the package adds."""

from tidegate.product import CommandEntry, EngineEntry, Product, SurfaceEntry

PRODUCT = Product(
    "ledger",
    engines={
        "ledger": EngineEntry(
            *("ledger", "ledger", "tidegate_ledger.engine", "LedgerEngine"),
            options=("timeout",),
            compares_rows=True,
            path_reader="tidegate_ledger.engine:path_of",
        )
    },
    surfaces={"ledger": SurfaceEntry("tidegate_ledger.surface")},
    dialects={"ledger": "tidegate_ledger.dialect"},
    commands={
        "ledger": CommandEntry(
            "tidegate_ledger.commands:add_ledger", "databases", {"ledger": "ledger new books.db"}
        )
    },
    settings={"ledger": "tidegate_ledger.settings:LedgerSettings"},
    steps={"approve": "tidegate_ledger.steps:refuse_rewriting"},
)
