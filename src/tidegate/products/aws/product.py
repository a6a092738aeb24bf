"""What AWS adds to the kernel: references to its secrets and to tokens of RDS."""

from tidegate.product import Product, SecretEntry

PRODUCT = Product(
    "aws",
    extras={"aws": "boto3"},
    settings={"aws": "tidegate.products.aws.settings:AwsSettings"},
    secrets={
        "AWS": SecretEntry(
            "${AWS:NAME#FIELD}",
            check="tidegate.products.aws.references:check_secret",
            read="tidegate.products.aws.reading:read_secrets",
            section="aws",
            extra="aws",
        ),
        "RDS": SecretEntry(
            "${RDS:USER@HOST:PORT}",
            check="tidegate.products.aws.references:check_login",
            read="tidegate.products.aws.reading:make_tokens",
            section="aws",
            extra="aws",
        ),
    },
)
