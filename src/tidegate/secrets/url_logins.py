"""Where a URL holds a login, and that what it holds is no secret itself.

Both the check for literal passwords and the engines read a login here, so that the check sees every
password that would be sent.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from tidegate.errors import Code, TidegateError
from tidegate.secrets.references import HINT, REFERENCE

LITERAL_REFUSED = "The URL holds a literal password."
_USERINFO = r"[A-Za-z][\w+.:-]*?://[^/?#@]*?:([^/?#]*)@"
_SLASHED_USERINFO = r"[A-Za-z][\w+.:-]*?://(?!\[)[^/?#@:]*:(?!\d+(?:[/?#]|$))([^@\s]*)@"
_PARAMETER = (
    r"(?i)(?:^|[?&;\s])([\w.-]*(?:passw\w*|pwd|passphrase|secret\w*|token|api_?key|hexkey)|key)"
    r"\s*=\s*('[^']*'|[^&;\s]*)"
)
PIECE = r"(?:\$\{[^}]*\}|(?!\$\{)[^%s])"
"""The pattern of one character that is not in `%s`, or of a reference, whatever that holds."""
_AUTHORITY = PIECE % "/?" + "*"
_LOGIN = f"(?:({PIECE % ':@'}*)(?::({PIECE % '@'}*))?@)?({PIECE % '@'}*)"


class Authority(NamedTuple):
    """A server's URL up to its path. All but `rest` is as it is written."""

    before_places: str
    user: str
    password: str
    places: str
    rest: str

    def with_login(self, login: str) -> str:
        """The URL with another login, which is written into it as it is."""
        return f"{self.before_places.partition('://')[0]}://{login}@{self.places}{self.rest}"


def split_authority(url: str) -> Authority | None:
    """Take `SCHEME://user:password@places` apart; None if it cannot be read.

    Both the check for literal passwords and the engines read a login here, so that the check sees
    every password that would be sent.
    """
    scheme, separator, behind = url.partition("://")
    found = re.match(_AUTHORITY, behind)
    authority = found[0] if found else ""
    login = re.fullmatch(_LOGIN, authority)
    if not separator or login is None:
        return None
    user, password, places = login.groups(default="")
    before = f"{scheme}://{authority[: len(authority) - len(places)]}"
    return Authority(before, user, password, places, behind[len(authority) :])


def asks_for_password(url: str) -> bool:
    """Whether the URL names a user and no password."""
    parts = split_authority(url)
    return parts is not None and bool(parts.user) and not parts.password


def split_password(url: str) -> tuple[str, str | None]:
    """The URL without the password that is in it, and that password; None if there is none,
    or a reference in its place."""
    parts = split_authority(url)
    if parts is None or not parts.user or not parts.password or parts.password.startswith("${"):
        return url, None
    from urllib.parse import unquote

    return parts.with_login(parts.user), unquote(parts.password)


def without_password(url: str) -> str:
    """The URL without the reference to the password of the user that it names."""
    parts = split_authority(url)
    if parts is None or not parts.user or not re.fullmatch(r"\$\{[^}]*\}", parts.password):
        return url
    return parts.with_login(parts.user)


def with_password(url: str, reference: str) -> str:
    """The URL with a reference to the password of the user that it names, which has none yet."""
    parts = split_authority(url)
    if parts is None or not parts.user or parts.password:
        return url
    return parts.with_login(f"{parts.user}:{reference}")


def refuse_literal(url: str) -> None:
    """Refuse a URL that holds a secret itself, in its authority or in a parameter.

    Raises: TidegateError SOURCE_URL, which names the place and never the secret.
    """
    plain = re.sub(REFERENCE, "\0", url)
    login = split_authority(url)
    # What no engine could read may hold a password all the same.
    unreadable = re.match(_USERINFO, plain) or re.match(_SLASHED_USERINFO, plain)
    if (login and re.sub(REFERENCE, "", login.password)) or (
        unreadable and unreadable[1].strip("\0")
    ):
        raise TidegateError(Code.SOURCE_URL, LITERAL_REFUSED, hint=HINT)
    for name, value in re.findall(_PARAMETER, plain):
        if value.strip("\0'"):
            message = f"The URL holds a literal secret in `{name}`."
            raise TidegateError(Code.SOURCE_URL, message, hint=HINT)


def refuse_literal_option(name: str, value: str) -> None:
    """Refuse an option that holds a secret itself, judged by its name.

    Raises: TidegateError SOURCE_URL, which names the option and never the secret.
    """
    if re.match(_PARAMETER, f"{name}=") and re.sub(REFERENCE, "", value):
        message = f"The option `{name}` of the source holds a literal secret."
        raise TidegateError(Code.SOURCE_URL, message, hint=HINT)
