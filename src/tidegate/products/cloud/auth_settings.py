"""How requests to a provider are authorized, in the words of the registry's documents.

The same keys are under `config.auth` of a provider's document and under `auth` of our settings.
None of them holds a secret: each names the variable, file, command or profile that does.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final, Literal

import msgspec

from tidegate.errors import Code, TidegateError
from tidegate.typed_values import convert_value

AuthType = Literal[
    "none", "null_auth", "bearer", "basic", "api_key", "custom", "oauth2", "service_account",
    "azure_default", "aws_signing_v4", "aws_assume_role",
]  # fmt: skip
LITERAL_KEYS: Final = ("api_key", "api_secret", "password", "client_secret")
"""Keys of the original that hold a secret itself; refused."""
_OPERATOR_ONLY: Final = frozenset({
    "credentialsfilepath", "credentialsfilepathenvvar", "credentialscommand", "profile",
    "aws_sts_endpoint", "values",
})  # fmt: skip
"""What a document may not name: it is another's text, and these read files and run programs of
this machine."""
_VARIABLE: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,199}")
_HEADER: Final = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]{1,100}")
_KEPT_HEADERS: Final = frozenset({
    "host", "content-length", "transfer-encoding", "connection", "upgrade", "te", "trailer",
})  # fmt: skip


class AuthSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One login. Which keys count depends on `type`; `…envvar` and `…_var` name variables.

    `profile` is one of AWS's own configuration files. `credentialscommand` is a program and its
    arguments that prints the secret. `successor` is another `custom` login that the request gets
    in addition.
    """

    type: AuthType
    credentialsenvvar: str = ""
    credentialsfilepath: str = ""
    credentialsfilepathenvvar: str = ""
    credentialscommand: tuple[str, ...] = ()
    value_prefix: str | None = msgspec.field(default=None, name="valuePrefix")
    username: str = ""
    username_var: str = ""
    password_var: str = ""
    api_key_var: str = ""
    api_secret_var: str = ""
    key_id: str = msgspec.field(default="", name="keyID")
    key_id_var: str = msgspec.field(default="", name="keyIDenvvar")
    session_token_var: str = ""
    profile: str = ""
    location: Literal["header", "query"] = "header"
    name: str = ""
    successor: AuthSettings | None = None
    grant_type: str = "client_credentials"
    token_url: str = ""
    client_id: str = ""
    client_id_env_var: str = ""
    client_secret_env_var: str = ""
    auth_style: int = 0
    """As in Go's oauth2: 1 sends the client's secret in the body, 2 in a header. 0: a header."""
    values: dict[str, str | list[str]] = {}
    scopes: tuple[str, ...] = ()
    sub: str = ""
    account_id: str = ""
    account_id_env_var: str = msgspec.field(default="", name="account_id_var")
    aws_role_arn: str = ""
    aws_role_arn_env_var: str = ""
    aws_role_session_name: str = ""
    aws_role_external_id: str = ""
    aws_role_duration_seconds: int = 0
    aws_sts_region: str = ""
    aws_sts_endpoint: str = ""

    def problem(self) -> str | None:
        """What is wrong with the values, without any of them that may be a secret."""
        for key in (
            "credentialsenvvar", "credentialsfilepathenvvar", "username_var", "password_var",
            "api_key_var", "api_secret_var", "key_id_var", "session_token_var",
            "client_id_env_var", "client_secret_env_var", "account_id_env_var",
            "aws_role_arn_env_var",
        ):  # fmt: skip
            name: str = getattr(self, key)
            if name and not _VARIABLE.fullmatch(name):
                return f"`{key}` is not the name of an environment variable"
        if self.type == "custom":
            if not _HEADER.fullmatch(self.name) or self.name.lower() in _KEPT_HEADERS:
                return "`name` is not a header or parameter that a login may set"
            if self.successor is not None:
                if self.successor.type != "custom":
                    return "`successor` is not of the type `custom`"
                return self.successor.problem()
        elif self.successor is not None:
            return "only a login of the type `custom` has a `successor`"
        if self.type == "oauth2" and (self.grant_type or "") != "client_credentials":
            return "`grant_type` is not `client_credentials`"
        if self.type == "oauth2" and not self.token_url:
            return "`token_url` is missing"
        return None


def read_auth(
    settings: Mapping[str, Any], where: str, *, from_document: bool = False
) -> AuthSettings:
    """The login in `settings`; an empty one is `none`. `where` says in errors whose it is.

    What a document says beyond these keys is left out; in our settings it is an error.
    Raises: TidegateError CONFIG_INVALID or, for a document, DOCUMENT_INVALID.
    """
    code = Code.DOCUMENT_INVALID if from_document else Code.CONFIG_INVALID

    def refused(problem: str) -> TidegateError:
        return TidegateError(code, f"The login of {where} cannot be used: {problem}.")

    if not settings:
        return AuthSettings("none")
    entries = _plain(settings)
    for key in LITERAL_KEYS:
        if key in entries:
            raise refused(f"`{key}` would hold the secret itself; name a variable or file instead")
    if from_document:
        entries = _without_local(entries)
    try:
        auth = convert_value(entries, AuthSettings)
    except msgspec.ValidationError as error:
        raise refused(str(error)[:200]) from None
    if (problem := auth.problem()) is not None:
        raise refused(problem)
    return auth


def _plain(settings: Mapping[str, Any]) -> dict[str, Any]:
    entries = {key: value for key, value in settings.items() if value not in (None, "")}
    kind = entries.get("type")
    if isinstance(kind, str):
        entries["type"] = kind.lower()
    return entries


def _without_local(entries: dict[str, Any]) -> dict[str, Any]:
    known = {field.encode_name for field in msgspec.structs.fields(AuthSettings)} - _OPERATOR_ONLY
    kept = {key: value for key, value in entries.items() if key in known}
    successor = kept.get("successor")
    if isinstance(successor, dict):
        kept["successor"] = _without_local(_plain(successor))  # pyright: ignore[reportUnknownArgumentType]
    return kept
