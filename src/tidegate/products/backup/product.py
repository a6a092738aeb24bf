"""What backups add to the kernel."""

from tidegate.product import CommandEntry, Product

PRODUCT = Product(
    "backup",
    commands={
        "state": CommandEntry(
            "tidegate.products.backup.commands.arguments:add_state",
            "after",
            {
                "state backup": "state backup gate.backup --passphrase-file backup.key",
                "state copy": "state copy 'postgresql://gate:${ENV:STATE_PASSWORD}@db/tidegate'",
                "state seal": "state seal",
                "state restore": "state restore gate.backup --state new --record old/audit",
            },
        )
    },
)
