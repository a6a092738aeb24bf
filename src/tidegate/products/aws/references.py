"""`${AWS:NAME#FIELD}` and `${RDS:USER@HOST:PORT}`.

shop/db#password      a field of a secret whose value is a JSON object
shop/db               the whole value of a secret
arn:aws:secretsmanager:eu-west-1:123456789012:secret:shop-a1b2c3#password
ann@shop.abc.eu-west-1.rds.amazonaws.com:5432
                      a token by which IAM lets a user log in, for fifteen minutes
"""

from __future__ import annotations

import re
from typing import NamedTuple

from tidegate.secrets.readers import Misspelt

_NAME = re.compile(r"[\w/+=.@!-]{1,512}", re.ASCII)
_ARN = re.compile(r"arn:aws[\w-]*:secretsmanager:([a-z0-9-]+):\d{12}:secret:[\w/+=.@!-]+", re.ASCII)
_LOGIN = re.compile(r"([^@:/\s]+)@([A-Za-z0-9.-]+|\[[0-9A-Fa-f:]+\]):(\d{1,5})")
_RDS_HOST = re.compile(r"\.([a-z]{2}(?:-[a-z]+)+-\d)\.rds\.amazonaws\.com(?:\.cn)?$")


class SecretReference(NamedTuple):
    """A secret; `field` is empty for all of it, `region` where its name does not say it."""

    name: str
    field: str
    region: str


class LoginReference(NamedTuple):
    """A user at a database of RDS; `region` is empty where its host does not say it."""

    user: str
    host: str
    port: int
    region: str


def parse_secret(name: str) -> SecretReference | None:
    """What a reference names; None for what is written otherwise."""
    secret, separator, field = name.partition("#")
    if separator and not field:
        return None
    arn = _ARN.fullmatch(secret)
    if arn is not None:
        return SecretReference(secret, field, arn[1])
    if _NAME.fullmatch(secret) is None:
        return None
    return SecretReference(secret, field, "")


def parse_login(name: str) -> LoginReference | None:
    """What a reference names; None for what is written otherwise."""
    found = _LOGIN.fullmatch(name)
    if found is None or not 1 <= int(found[3]) <= 65_535:
        return None
    region = _RDS_HOST.search(found[2].lower())
    return LoginReference(found[1], found[2], int(found[3]), region[1] if region else "")


def check_secret(name: str) -> Misspelt | None:
    """What is wrong with the name of a secret and its field."""
    if parse_secret(name) is not None:
        return None
    return Misspelt(
        "is no name of a secret.",
        "Write `${AWS:NAME#FIELD}`, or `${AWS:NAME}` for the whole value; NAME may be an ARN.",
    )


def check_login(name: str) -> Misspelt | None:
    """What is wrong with the place of a login."""
    if parse_login(name) is not None:
        return None
    form = "${RDS:USER@HOST:PORT}"
    if re.fullmatch(r"[^@:/\s]+@[A-Za-z0-9.-]+", name):
        form = f"${{RDS:{name}:5432}}"
    return Misspelt("names no user, host and port.", f"Write `{form}`.")
