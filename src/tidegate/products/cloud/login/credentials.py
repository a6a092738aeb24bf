"""Gives requests their credentials: a header, a parameter, or a signature.

The secret is read for each request from where the login names it; `token_cache` keeps the
short-lived tokens that are got with it.
"""

from __future__ import annotations

import base64
import os
import re
import time
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any, Final
from urllib.parse import quote, urlsplit

import msgspec

from tidegate.errors import Code, TidegateError
from tidegate.products.cloud.auth_settings import AuthSettings, read_auth
from tidegate.products.cloud.documents.model import Provider
from tidegate.products.cloud.documents.secret_values import (
    SecretValue,
    credential,
    file,
    unavailable,
    variable,
)
from tidegate.products.cloud.http.requests import ApiRequest
from tidegate.products.cloud.login import token_requests
from tidegate.products.cloud.login.aws_login import AwsLogin
from tidegate.products.cloud.login.aws_signature import sign_request
from tidegate.products.cloud.login.token_cache import Exchange, TokenCache
from tidegate.products.cloud.login.token_requests import Token
from tidegate.products.cloud.settings import CloudProvider, CloudSettings

_GOOGLE_SCOPE: Final = "https://www.googleapis.com/auth/cloud-platform"
_AZURE_AUTHORITY: Final = "https://login.microsoftonline.com"
_AZURE_AUDIENCES: Final = (
    ("graph.microsoft.com", "https://graph.microsoft.com"),
    (".vault.azure.net", "https://vault.azure.net"),
    (".core.windows.net", "https://storage.azure.com"),
    (".search.windows.net", "https://search.azure.com"),
    (".cognitiveservices.azure.com", "https://cognitiveservices.azure.com"),
    (".openai.azure.com", "https://cognitiveservices.azure.com"),
    (".services.ai.azure.com", "https://ai.azure.com"),
    (".azconfig.io", "https://azconfig.io"),
    (".loganalytics.io", "https://api.loganalytics.io"),
    (".monitor.azure.com", "https://monitor.azure.com"),
    (".servicebus.windows.net", "https://servicebus.azure.net"),
)
"""Ends of hosts of services that take tokens of an audience of their own."""
_AZURE_MANAGEMENT: Final = "https://management.azure.com"
_FIELD: Final = re.compile(r"\{\{\s*\.([A-Za-z_]\w*)\s*\}\}")
_ENVIRONMENT: Final = "__env__"


class AuthorizedRequest(ApiRequest, frozen=True):
    """A request with its credential. Its text shows neither headers nor the query.

    `secrets` are what no error may repeat of the reply. `origin` says in words where the credential
    came from.
    """

    secrets: tuple[str, ...] = ()
    origin: str = ""

    def __repr__(self) -> str:
        return f"AuthorizedRequest({self.verb} {self.url.partition('?')[0]})"


class CredentialUse(msgspec.Struct, frozen=True):
    """What a request is for. `account` is one of the settings, empty: the provider's own login.
    `service` and `region` are those of a signature for AWS."""

    provider: Provider
    account: str = ""
    service: str = ""
    region: str = ""


class Credentials:
    """The credentials of all providers. Belongs to one event loop."""

    def __init__(
        self,
        settings: CloudSettings,
        exchange: Exchange,
        *,
        environment: Mapping[str, str] = os.environ,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._settings = settings
        self._environment = environment
        self._clock = clock
        self._tokens = TokenCache(exchange, clock)
        self._aws = AwsLogin(self._tokens, environment, clock)

    async def authorize(self, request: ApiRequest, use: CredentialUse) -> AuthorizedRequest:
        """`request` with the credential of `use`.

        Raises: TidegateError CREDENTIAL_UNAVAILABLE, CREDENTIAL_REFUSED, CONFIG_INVALID,
        DOCUMENT_INVALID; those of the exchange.
        """
        auth = self.login(use)
        if auth.type in ("none", "null_auth"):
            return _authorized(request, (), (), "")
        if auth.type in ("aws_signing_v4", "aws_assume_role"):
            return await self._signed(request, use, auth)
        if auth.type == "custom":
            return await self._custom(request, auth, use)
        secret, origin, scheme = await self._header(request, use, auth)
        prefix = scheme if auth.value_prefix is None else auth.value_prefix
        header = ("Authorization", f"{prefix}{secret}")
        secrets = (secret, *_password_in(secret)) if auth.type == "basic" else (secret,)
        return _authorized(request, (header,), secrets, origin)

    def login(self, use: CredentialUse) -> AuthSettings:
        """The login of an account, of the settings, else of the document.

        Raises: TidegateError ARGUMENT_INVALID for an account that is not known; DOCUMENT_INVALID.
        """
        name = use.provider.name
        settings = self._settings.providers.get(name, CloudProvider())
        if use.account:
            account = settings.accounts.get(use.account)
            if account is None:
                known = ", ".join(sorted(settings.accounts)) or "none"
                raise TidegateError(
                    Code.ARGUMENT_INVALID,
                    f"The provider {name} has no account {use.account[:80]}.",
                    hint=f"Its accounts are: {known[:400]}.",
                )
            if account.auth:
                return read_auth(account.auth, f"the account `{use.account}` of {name}")
        if settings.auth:
            return read_auth(settings.auth, f"`cloud.providers.{name}`")
        return read_auth(use.provider.auth, f"the provider {name}", from_document=True)

    def refused(self, use: CredentialUse, request: AuthorizedRequest, status: int) -> TidegateError:
        """The error for a reply with the status 401 or 403 to `request`: it names where the
        credential came from. Tokens of the login are got again for the next request."""
        self._tokens.clear()
        account = f", account {use.account}" if use.account else ""
        if not request.origin:
            return TidegateError(
                Code.CREDENTIAL_REFUSED,
                f"The provider {use.provider.name}{account} asks for a login (HTTP status "
                f"{status}), and none is set.",
                hint=f"Set `cloud.providers.{use.provider.name}.auth`.",
                details={"http_status": status},
            )
        return TidegateError(
            Code.CREDENTIAL_REFUSED,
            f"The provider {use.provider.name}{account} refused the credential of "
            f"{request.origin} (HTTP status {status}).",
            hint="Check whether it has expired, and what it is allowed to do.",
            details={"http_status": status},
        )

    async def _header(
        self, request: ApiRequest, use: CredentialUse, auth: AuthSettings
    ) -> tuple[str, str, str]:
        """What the header `Authorization` holds, where it came from, and its usual scheme."""
        if auth.type == "basic":
            return *await self._basic(auth, use), "Basic "
        if auth.type in ("bearer", "api_key"):
            secret = await self._secret(auth, use)
            return secret.text, secret.origin, "Bearer " if auth.type == "bearer" else "api_key "
        if auth.type == "service_account":
            secret = await self._secret(auth, use)
            scopes = auth.scopes or (_GOOGLE_SCOPE,)
            token = await self._tokens.token(
                ("google", secret.value, scopes, auth.sub),
                lambda: token_requests.google_token(secret.value, scopes, auth.sub, self._clock()),
                secret.origin,
            )
            return _bearer(token), secret.origin, "Bearer "
        if auth.type == "oauth2":
            return *await self._client(auth), "Bearer "
        return *await self._azure(request, auth), "Bearer "

    async def _secret(self, auth: AuthSettings, use: CredentialUse) -> SecretValue:
        found = await credential(auth, self._environment)
        if found is None:
            raise unavailable(
                f"the login of the provider {use.provider.name} names no secret",
                hint=f"Set `credentialsenvvar` in `cloud.providers.{use.provider.name}.auth`.",
            )
        return found

    async def _basic(self, auth: AuthSettings, use: CredentialUse) -> tuple[str, str]:
        """RFC 7617. One secret alone is user and password already encoded."""
        first, second = auth.username_var, auth.password_var
        if not (first or auth.username) and auth.api_key_var:
            first, second = auth.api_key_var, auth.api_secret_var
        if not first and not auth.username:
            secret = await self._secret(auth, use)
            return secret.text, secret.origin
        user = variable(first, self._environment).value if first else auth.username.encode()
        if second:
            password = variable(second, self._environment)
        else:
            password = await self._secret(auth, use)
        pair = base64.b64encode(user + b":" + password.value).decode()
        origin = f"the variables {first} and {second}" if first and second else password.origin
        return pair, origin

    async def _custom(
        self, request: ApiRequest, auth: AuthSettings, use: CredentialUse
    ) -> AuthorizedRequest:
        headers: list[tuple[str, str]] = []
        query: list[str] = []
        secrets: list[SecretValue] = []
        each: AuthSettings | None = auth
        while each is not None:
            secret = await self._secret(each, use)
            secrets.append(secret)
            value = f"{each.value_prefix or ''}{secret.text}"
            if each.location == "header":
                headers.append((each.name, value))
            else:
                query.append(f"{quote(each.name, safe='')}={quote(value, safe='')}")
            each = each.successor
        if query:
            joint = "&" if urlsplit(request.url).query else "?"
            request = msgspec.structs.replace(request, url=f"{request.url}{joint}{'&'.join(query)}")
        origin = " and ".join(secret.origin for secret in secrets)
        return _authorized(request, tuple(headers), tuple(s.text for s in secrets), origin)

    async def _client(self, auth: AuthSettings) -> tuple[str, str]:
        """RFC 6749, section 4.4."""
        client_id = auth.client_id
        if auth.client_id_env_var:
            client_id = variable(auth.client_id_env_var, self._environment).text
        if auth.client_secret_env_var:
            secret = variable(auth.client_secret_env_var, self._environment)
        else:
            found = await credential(auth, self._environment)
            if found is None:
                raise unavailable("the login names no `client_secret_env_var`")
            secret = found
        if not client_id:
            raise unavailable("the login names no `client_id` and no `client_id_env_var`")
        url = self._token_url(auth)
        token = await self._tokens.token(
            ("oauth2", url, client_id, secret.value, auth.scopes, repr(auth.values)),
            lambda: token_requests.client_credentials(
                url,
                client_id,
                secret.text,
                scopes=auth.scopes,
                values=auth.values,
                in_body=auth.auth_style == 1,
            ),
            secret.origin,
        )
        return _bearer(token), secret.origin

    def _token_url(self, auth: AuthSettings) -> str:
        """`token_url` with `{{ .__env__NAME }}` and `{{ .key }}` of the login filled in."""
        account = auth.account_id
        if auth.account_id_env_var:
            account = variable(auth.account_id_env_var, self._environment).text
        known = {"client_id": auth.client_id, "account_id": account}

        def fill(match: Any) -> str:
            name = match[1]
            if name.startswith(_ENVIRONMENT):
                return quote(variable(name.removeprefix(_ENVIRONMENT), self._environment).text, "")
            if name not in known:
                raise unavailable(f"`token_url` of the login has `{name[:60]}`, which is not known")
            return quote(known[name], safe="")

        return _FIELD.sub(fill, auth.token_url)

    async def _azure(self, request: ApiRequest, auth: AuthSettings) -> tuple[str, str]:
        """Client credentials or a federated token, by the variables of Azure's own libraries."""
        environment = self._environment
        tenant = variable("AZURE_TENANT_ID", environment).text
        client = variable("AZURE_CLIENT_ID", environment).text
        federated = environment.get("AZURE_FEDERATED_TOKEN_FILE", "")
        if federated and not environment.get("AZURE_CLIENT_SECRET"):
            secret, kind = file(federated), "client_assertion"
        else:
            secret, kind = variable("AZURE_CLIENT_SECRET", environment), "client_secret"
        host = urlsplit(request.url).hostname or ""
        audience = next(
            (
                each
                for end, each in _AZURE_AUDIENCES
                if host == end.lstrip(".") or host.endswith(end)
            ),
            _AZURE_MANAGEMENT,
        )
        scope = " ".join(auth.scopes) or f"{audience}/.default"
        authority = environment.get("AZURE_AUTHORITY_HOST") or _AZURE_AUTHORITY
        token = await self._tokens.token(
            ("azure", authority, tenant, client, secret.value, scope),
            lambda: token_requests.azure_client_credentials(
                authority, tenant, client, (kind, secret.text), scope
            ),
            secret.origin,
        )
        return _bearer(token), secret.origin

    async def _signed(
        self, request: ApiRequest, use: CredentialUse, auth: AuthSettings
    ) -> AuthorizedRequest:
        aws, origin = await self._aws.credential(auth)
        now = datetime.fromtimestamp(self._clock(), UTC)
        signed = sign_request(request, aws, use.service, use.region or "us-east-1", now)
        secrets = tuple(each for each in (aws.secret, aws.session_token) if each)
        return _authorized(signed, (), secrets, origin)


def _password_in(pair: str) -> tuple[str, ...]:
    """The password of a user and password in base64, which a provider reads and may repeat as it
    is; where that is empty, the user is a key. Empty for what is no such pair."""
    try:
        user, _, password = base64.b64decode(pair, validate=True).decode().partition(":")
    except ValueError:
        return ()
    return (password or user,)


def _authorized(
    request: ApiRequest,
    headers: tuple[tuple[str, str], ...],
    secrets: tuple[str, ...],
    origin: str,
) -> AuthorizedRequest:
    """A header of the credential takes the place of one that a value has set."""
    own = {name.lower() for name, _ in headers}
    kept = tuple(each for each in request.headers if each[0].lower() not in own)
    return AuthorizedRequest(
        request.verb,
        request.url,
        (*kept, *headers),
        request.body,
        request.has_free_host,
        secrets,
        origin,
    )


def _bearer(token: Token) -> str:
    assert isinstance(token.value, str)  # noqa: S101 - the request's kind decides
    if not (token.value.isascii() and token.value.isprintable()):
        raise TidegateError(
            Code.PROVIDER_REPLY, "A token that was got holds characters that no header may have."
        )
    return token.value
