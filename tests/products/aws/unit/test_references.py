"""How references to AWS are written."""

from __future__ import annotations

import pytest

from tidegate.errors import TidegateError
from tidegate.products.aws.references import (
    LoginReference,
    SecretReference,
    parse_login,
    parse_secret,
)
from tidegate.secrets.references import check_references

ARN = "arn:aws:secretsmanager:eu-west-1:123456789012:secret:shop/db-a1b2c3"


def test_a_secret_by_its_name_or_its_arn_and_a_field_of_it() -> None:
    assert parse_secret("shop/db#password") == SecretReference("shop/db", "password", "")
    assert parse_secret("shop/db") == SecretReference("shop/db", "", "")
    assert parse_secret(f"{ARN}#password") == SecretReference(ARN, "password", "eu-west-1")


def test_a_login_by_user_host_and_port_with_the_region_that_the_host_says() -> None:
    host = "shop.abc123.eu-central-1.rds.amazonaws.com"
    assert parse_login(f"ann@{host}:5432") == LoginReference("ann", host, 5432, "eu-central-1")
    assert parse_login("ann@db.example:3306") == LoginReference("ann", "db.example", 3306, "")
    check_references(f"postgresql://ann:${{RDS:ann@{host}:5432}}@{host}/shop")


@pytest.mark.parametrize(
    ("written", "said"),
    [
        ("${AWS:shop db#password}", "${AWS:NAME#FIELD}"),
        ("${AWS:shop#}", "${AWS:NAME#FIELD}"),
        ("${AWS:}", "${AWS:NAME#FIELD}"),
        ("${RDS:ann@db.example}", "Write `${RDS:ann@db.example:5432}`."),
        ("${RDS:db.example:5432}", "${RDS:USER@HOST:PORT}"),
        ("${RDS:ann@db.example:70000}", "${RDS:USER@HOST:PORT}"),
        ("${AWSS:shop}", "Did you mean `${AWS:NAME#FIELD}`?"),
    ],
)
def test_a_wrong_form_is_an_error_that_says_the_right_one(written: str, said: str) -> None:
    with pytest.raises(TidegateError) as caught:
        check_references(f"postgresql://u:{written}@db/x")
    assert said in (caught.value.hint or "")
