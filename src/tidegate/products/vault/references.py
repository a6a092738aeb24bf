"""`${VAULT:PATH#FIELD}`: a field of what the API has at a path.

    secret/data/shop/db#password         a secret of a KV engine, version 2, that is at `secret`
    database/creds/shop#username         an account on lease, of the database engine at `database`
    database/static-creds/shop#password  an account whose password is changed now and then

The path is that of the API, with `data` in it: it says which engine is asked, so that nothing has
to be looked up before.
"""

from __future__ import annotations

import re
from typing import Literal, NamedTuple

from tidegate.secrets.readers import Misspelt

_SEGMENT = re.compile(r"[^\s#?%&\\\x00-\x1f]+")
_ENGINES = ("data", "creds", "static-creds")


class VaultRefusal(Exception):
    """Why something cannot be read: the end of a sentence, without a secret."""

    def __init__(self, why: str, hint: str | None = None) -> None:
        super().__init__(why)
        self.why = why
        self.hint = hint


class VaultReference(NamedTuple):
    """What a name refers to."""

    path: str
    field: str
    engine: Literal["data", "creds", "static-creds"]


def parse_name(name: str) -> VaultReference | None:
    """What a reference names; None for what is written otherwise."""
    path, separator, field = name.partition("#")
    parts = path.split("/")
    if not separator or not field or "#" in field:
        return None
    if any(_SEGMENT.fullmatch(part) is None or part in (".", "..") for part in parts):
        return None
    for part in parts[1:-1]:
        if part in _ENGINES:
            return VaultReference(path, field, part)
    return None


def check_name(name: str) -> Misspelt | None:
    """What is wrong with the path and the field."""
    if parse_name(name) is not None:
        return None
    path, separator, field = name.partition("#")
    parts = [each for each in path.removeprefix("/").removeprefix("v1/").split("/") if each]
    if len(parts) > 1 and not any(part in _ENGINES for part in parts[1:-1]):
        parts.insert(1, "data")
    meant = f"{'/'.join(parts)}#{field or 'password'}"
    if len(parts) > 2 and parse_name(meant) is not None:
        hint = f"Did you mean `${{VAULT:{meant}}}`?"
    else:
        hint = (
            "Write `${VAULT:secret/data/PATH#FIELD}` for a secret of KV version 2, or"
            " `${VAULT:database/creds/ROLE#username}` and `…#password` for an account on lease."
        )
    problem = "names no field." if not separator or not field else "is no path of the API."
    return Misspelt(problem, hint)
