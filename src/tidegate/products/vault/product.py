"""What OpenBao and Vault add to the kernel: references to what they keep."""

from tidegate.product import Product, SecretEntry

PRODUCT = Product(
    "vault",
    extras={"vault": "hvac"},
    settings={"vault": "tidegate.products.vault.settings:VaultSettings"},
    secrets={
        "VAULT": SecretEntry(
            "${VAULT:secret/data/PATH#FIELD}",
            check="tidegate.products.vault.references:check_name",
            read="tidegate.products.vault.reading:read_all",
            section="vault",
            extra="vault",
        )
    },
)
