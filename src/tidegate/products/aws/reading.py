"""Reads secrets of AWS Secrets Manager and makes tokens for RDS, by the library boto3.

It runs on the threads of `secrets.readers`. A token is signed here, with the credentials that boto3
finds: nothing is asked of AWS for it. It is good for the login alone, so sessions go on after it.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Collection, Mapping
from importlib import import_module
from typing import Any, TypeVar, cast

from tidegate.config.installation import add_command
from tidegate.errors import Code, TidegateError
from tidegate.products.aws.references import (
    LoginReference,
    SecretReference,
    parse_login,
    parse_secret,
)
from tidegate.products.aws.settings import AwsSettings
from tidegate.secrets.readers import Reading, unavailable

TOKEN_S = 900.0
"""How long a token of RDS opens connections."""

_CREDENTIALS = frozenset({
    "NoCredentialsError", "PartialCredentialsError", "CredentialRetrievalError", "ProfileNotFound",
    "TokenRetrievalError", "SSOTokenLoadError", "UnauthorizedSSOTokenError",
})  # fmt: skip
_T = TypeVar("_T")


def read_secrets(names: Collection[str], settings: AwsSettings | None) -> Mapping[str, Reading]:
    """Raises: TidegateError SECRET_UNAVAILABLE, ENGINE_MISSING."""
    session = _Session(settings or AwsSettings())
    values: dict[tuple[str, str], str] = {}
    readings: dict[str, Reading] = {}
    for name in names:
        asked = parse_secret(name)
        if asked is None:
            raise unavailable(("AWS", name), "it names no secret")
        key = asked.name, asked.region
        if key not in values:
            values[key] = session.secret(name, asked)
        readings[name] = Reading(_field(name, asked, values[key]))
    return readings


def make_tokens(names: Collection[str], settings: AwsSettings | None) -> Mapping[str, Reading]:
    """Raises: TidegateError SECRET_UNAVAILABLE, ENGINE_MISSING."""
    session = _Session(settings or AwsSettings())
    readings: dict[str, Reading] = {}
    for name in names:
        asked = parse_login(name)
        if asked is None:
            raise unavailable(("RDS", name), "it names no user, host and port")
        until = time.monotonic() + TOKEN_S
        readings[name] = Reading(session.token(name, asked), login_until=until)
    return readings


def _field(name: str, asked: SecretReference, text: str) -> str:
    """The field of a value that is a JSON object. Raises: TidegateError."""
    if not asked.field:
        return text
    try:
        found: Any = json.loads(text)
    except ValueError:
        found = None
    if not isinstance(found, dict):
        raise unavailable(
            ("AWS", name), "its value is no JSON object", f"Write `${{AWS:{asked.name}}}`."
        )
    fields = cast("dict[str, Any]", found)
    value = fields.get(asked.field)
    if isinstance(value, bool) or not isinstance(value, (str, int, float)) or value == "":
        known = ", ".join(sorted(fields))[:200]
        raise unavailable(
            ("AWS", name), f"it has no text in the field `{asked.field}`", f"Fields: {known}."
        )
    return str(value)


class _Session:
    """The account of AWS, for what is read at one time."""

    def __init__(self, settings: AwsSettings) -> None:
        try:
            library: Any = import_module("boto3")  # which has no types
            configuration: Any = import_module("botocore.config")
        except ImportError as missing:
            raise TidegateError(
                Code.ENGINE_MISSING,
                "A reference to a secret of AWS needs the package `boto3`.",
                hint=f"Run: {add_command('aws')}",
            ) from missing
        self._settings = settings
        self._open: Callable[..., Any] = library.Session
        self._config: Any = configuration.Config(
            connect_timeout=settings.timeout_s,
            read_timeout=settings.timeout_s,
            retries={"total_max_attempts": 2},
        )

    def secret(self, name: str, asked: SecretReference) -> str:
        """The whole value of a secret. Raises: TidegateError."""

        def read() -> str:
            client = self._client("secretsmanager", asked.region)
            answer: dict[str, Any] = client.get_secret_value(SecretId=asked.name)
            text = answer.get("SecretString")
            if not isinstance(text, str) or not text:
                raise unavailable(("AWS", name), "its value is no text")
            return text

        return self._try(("AWS", name), read)

    def token(self, name: str, asked: LoginReference) -> str:
        """A token for a login. Raises: TidegateError."""

        def make() -> str:
            client = self._client("rds", asked.region)
            token: str = client.generate_db_auth_token(
                DBHostname=asked.host, Port=asked.port, DBUsername=asked.user
            )
            return token

        return self._try(("RDS", name), make)

    def _client(self, service: str, region: str) -> Any:
        session = self._open(profile_name=self._settings.profile)
        chosen = region or self._settings.region or session.region_name
        return session.client(service, region_name=chosen, config=self._config)

    def _try(self, reference: tuple[str, str], do: Callable[[], _T]) -> _T:
        """What it gives; the library's errors as ours, without their texts, which may name more
        than is asked for. Raises: TidegateError."""
        failures: Any = import_module("botocore.exceptions")
        try:
            return do()
        except failures.ClientError as error:
            answer: dict[str, Any] = error.response
            code = str(answer.get("Error", {}).get("Code", ""))
            raise unavailable(
                reference,
                f"AWS refused it: {code[:60] or 'without a code'}",
                "Check the name, the region, and that the role of the gate may read it.",
            ) from None
        except failures.NoRegionError:
            raise unavailable(
                reference, "no region is named", "Set `aws.region`, or the variable AWS_REGION."
            ) from None
        except (failures.ConnectionError, failures.HTTPClientError) as error:
            request: dict[str, Any] = error.kwargs
            place = str(request.get("endpoint_url") or "AWS").partition("?")[0]
            raise unavailable(reference, f"{place} cannot be reached") from None
        except failures.BotoCoreError as error:
            if type(error).__name__ in _CREDENTIALS:
                why = "there are no credentials for AWS"
            else:
                why = f"the library of AWS failed: {type(error).__name__}"
            raise unavailable(
                reference, why, "Check the credentials of the account that runs the gate."
            ) from None
