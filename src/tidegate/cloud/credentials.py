"""Gives requests their credentials: a header, a parameter, or a signature.

The secret is read for each request from where the login names it. A short-lived token is kept until
shortly before it ends, for as long as the secret that it was got with stays the same, and got once
for requests that wait for it together.
"""

from __future__ import annotations

import asyncio
import base64
import hashlib
import json
import os
import re
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Mapping
from datetime import UTC, datetime
from typing import Any, Final
from urllib.parse import quote, urlsplit

import msgspec

from tidegate.cloud import token_requests
from tidegate.cloud.aws_profiles import AwsProfile, AwsRole, read_profile
from tidegate.cloud.aws_signature import AwsCredential, sign_request
from tidegate.cloud.model import Provider
from tidegate.cloud.requests import ApiRequest
from tidegate.cloud.secret_values import (
    SecretValue,
    credential,
    file,
    output,
    unavailable,
    variable,
)
from tidegate.cloud.token_requests import Token, TokenRequest
from tidegate.config.cloud import CloudProvider, CloudSettings
from tidegate.config.cloud_auth import AuthSettings, read_auth
from tidegate.errors import Code, TidegateError
from tidegate.paths import expand

_EARLY_S: Final = 60.0
"""How long before its end a token is renewed: requests take time, and clocks differ."""
_MOST_TOKENS: Final = 1_000
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
_ERROR_CODE: Final = re.compile(
    rb'"(?:error|code|__type)"\s*:\s*"([\w.-]{1,60})"|<Code>([\w.-]{1,60})</Code>'
)


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


Exchange = Callable[[ApiRequest], Awaitable[tuple[int, bytes]]]
"""Sends a request for a token and gives the status and the body of the reply. It follows no
redirect and checks the host as for any other request."""


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
        self._exchange = exchange
        self._environment = environment
        self._clock = clock
        self._tokens: OrderedDict[str, Token] = OrderedDict()
        self._waiting: dict[str, asyncio.Task[Token]] = {}

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
        return _authorized(request, (header,), (secret,), origin)

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
            token = await self._token(
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
        token = await self._token(
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
        token = await self._token(
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
        aws, origin = await self.aws_credential(auth)
        now = datetime.fromtimestamp(self._clock(), UTC)
        signed = sign_request(request, aws, use.service, use.region or "us-east-1", now)
        secrets = tuple(each for each in (aws.secret, aws.session_token) if each)
        return _authorized(signed, (), secrets, origin)

    async def aws_credential(self, auth: AuthSettings) -> tuple[AwsCredential, str]:
        """The credential of a login at AWS, and where it came from."""
        found, origin = await self._aws_base(auth)
        if auth.type != "aws_assume_role":
            return found, origin
        arn = auth.aws_role_arn
        if auth.aws_role_arn_env_var:
            arn = variable(auth.aws_role_arn_env_var, self._environment).text
        if not arn:
            raise unavailable("the login of AWS names no `aws_role_arn`")
        role = AwsRole(
            arn,
            auth.aws_role_session_name,
            auth.aws_role_external_id,
            auth.aws_role_duration_seconds,
            auth.aws_sts_region,
            endpoint=auth.aws_sts_endpoint,
        )
        return await self._assumed(role, found, origin), f"the role {arn} by {origin}"

    async def _aws_base(self, auth: AuthSettings) -> tuple[AwsCredential, str]:
        environment = self._environment
        if auth.profile:
            return await self._of_profile(auth.profile)
        key_name = auth.key_id_var or ("" if auth.key_id else "AWS_ACCESS_KEY_ID")
        names_own = bool(auth.credentialscommand or auth.credentialsfilepath)
        secret_name = auth.credentialsenvvar or ("" if names_own else "AWS_SECRET_ACCESS_KEY")
        names = [each for each in (key_name, secret_name) if each]
        if not names_own and not any(environment.get(each) for each in names):
            # As AWS's own tools do: without variables the profile counts.
            name = environment.get("AWS_PROFILE") or "default"
            if environment.get("AWS_PROFILE") or read_profile(name, environment) is not None:
                return await self._of_profile(name)
        key = variable(key_name, environment).text if key_name else auth.key_id
        if secret_name:
            secret = variable(secret_name, environment)
        else:
            found = await credential(auth, environment)
            assert found is not None  # noqa: S101 - the login names a file or a program
            secret = found
        token_name = auth.session_token_var
        if not token_name and secret_name == "AWS_SECRET_ACCESS_KEY":  # noqa: S105 - a name
            token_name = "AWS_SESSION_TOKEN"  # noqa: S105 - a name
        session = environment.get(token_name, "") if token_name else ""
        origin = f"the variables {key_name} and {secret_name}" if all(names) else secret.origin
        if session:
            origin += f" with {token_name}"
        return AwsCredential(key, secret.text, session), origin

    async def _of_profile(self, name: str) -> tuple[AwsCredential, str]:
        profile = read_profile(name, self._environment)
        if profile is None:
            raise unavailable(
                f"AWS's configuration files have no profile {name}",
                hint="Add it with `aws configure --profile NAME`, or name another profile.",
            )
        return await self._from(profile), f"the AWS profile {name}"

    async def _from(self, profile: AwsProfile) -> AwsCredential:
        origin = f"the AWS profile {profile.name}"
        if profile.role is None:
            return await self._own(profile, origin)
        if profile.role.token_file:
            token = file(profile.role.token_file)
            return await self._assumed(profile.role, None, origin, token.text)
        if profile.uses_environment:
            base = AwsCredential(
                variable("AWS_ACCESS_KEY_ID", self._environment).text,
                variable("AWS_SECRET_ACCESS_KEY", self._environment).text,
                self._environment.get("AWS_SESSION_TOKEN", ""),
            )
        elif profile.source is not None:
            base = await self._from(profile.source)
        else:
            base = await self._own(profile, origin)
        return await self._assumed(profile.role, base, origin)

    async def _own(self, profile: AwsProfile, origin: str) -> AwsCredential:
        """What a profile holds or gets itself, without its role."""
        if profile.key_id and profile.secret:
            return AwsCredential(profile.key_id, profile.secret, profile.session_token)
        if profile.sso is not None:
            login = profile.sso
            access = self._sso_token(profile.name, login.cache_file)
            token = await self._token(
                ("sso", repr(login), access),
                lambda: token_requests.sso_role(login, access),
                f"{origin} (single sign-on; log in with `aws sso login --profile {profile.name}`)",
            )
            return _aws(token)
        if profile.process:
            return await self._of_process(profile, origin)
        raise unavailable(f"{origin} holds no credential")

    async def _of_process(self, profile: AwsProfile, origin: str) -> AwsCredential:
        import shlex

        key = _digest(("process", profile.name, profile.process))
        kept = self._kept(key)
        if kept is None:
            try:
                command = tuple(shlex.split(profile.process))
            except ValueError:
                command = ()
            if not command:
                raise unavailable(f"{origin} has a `credential_process` that is no command")
            printed = await output(command)
            try:
                kept = token_requests.process_output(printed.value, self._clock())
            except ValueError as error:
                raise unavailable(
                    f"the `credential_process` of {origin} did not print a credential: {error}"
                ) from None
            self._keep(key, kept)
        return _aws(kept)

    def _sso_token(self, profile: str, cache_file: str) -> str:
        home = expand(self._environment.get("HOME") or "~")
        path = home / ".aws" / "sso" / "cache" / cache_file
        again = f"Run `aws sso login --profile {profile}`."
        try:
            said = json.loads(file(str(path)).value)
            token, ends = said["accessToken"], said["expiresAt"]
            moment = datetime.fromisoformat(
                str(ends).replace("Z", "+00:00").replace("UTC", "+00:00")
            )
            expires_at = moment.timestamp()
        except (ValueError, KeyError, TypeError, RecursionError):
            raise unavailable(
                f"the AWS profile {profile} has no login by single sign-on", hint=again
            ) from None
        except TidegateError:
            raise unavailable(
                f"the AWS profile {profile} is not logged in by single sign-on", hint=again
            ) from None
        if not isinstance(token, str) or expires_at <= self._clock():
            raise unavailable(
                f"the login by single sign-on of the AWS profile {profile} has expired", hint=again
            )
        return token

    async def _assumed(
        self, role: AwsRole, base: AwsCredential | None, origin: str, token: str = ""
    ) -> AwsCredential:
        parts = (base.key_id, base.secret, base.session_token) if base else ("", "", token)
        found = await self._token(
            ("role", repr(role), *parts),
            lambda: token_requests.assumed_role(
                role, base, token, datetime.fromtimestamp(self._clock(), UTC)
            ),
            f"{origin} for the role {role.arn}",
        )
        return _aws(found)

    async def _token(
        self, inputs: tuple[Any, ...], request: Callable[[], TokenRequest], origin: str
    ) -> Token:
        """A token that is kept, or a new one. Those that need the same one wait for it together."""
        key = _digest(inputs)
        kept = self._kept(key)
        if kept is not None:
            return kept
        task = self._waiting.get(key)
        if task is None:
            task = asyncio.create_task(self._fetch(request, origin))
            self._waiting[key] = task
            task.add_done_callback(lambda done: self._settle(key, done))
        # One caller that goes away must not take the token from the others.
        return await asyncio.shield(task)

    def _settle(self, key: str, done: asyncio.Task[Token]) -> None:
        self._waiting.pop(key, None)
        if not done.cancelled() and done.exception() is None:
            self._keep(key, done.result())

    async def _fetch(self, make: Callable[[], TokenRequest], origin: str) -> Token:
        try:
            wanted = make()
        except ValueError as error:
            raise unavailable(f"the credential of {origin} cannot be used: {error}") from None
        status, body = await self._exchange(wanted.request)
        host = urlsplit(wanted.request.url).netloc
        if status != 200:
            raise TidegateError(
                Code.CREDENTIAL_REFUSED,
                f"{host} gave no token for the credential of {origin} (HTTP status {status})"
                f"{_reason(body)}.",
                hint="Check whether the credential has expired, and what it is allowed to do.",
                details={"http_status": status},
            )
        try:
            return wanted.read(body, self._clock())
        except ValueError as error:
            raise TidegateError(
                Code.PROVIDER_REPLY, f"The reply of {host} with a token cannot be used: {error}."
            ) from None

    def _kept(self, key: str) -> Token | None:
        token = self._tokens.get(key)
        if token is None or token.expires_at - _EARLY_S <= self._clock():
            return None
        return token

    def _keep(self, key: str, token: Token) -> None:
        self._tokens[key] = token
        self._tokens.move_to_end(key)
        while len(self._tokens) > _MOST_TOKENS:
            self._tokens.popitem(last=False)


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


def _digest(inputs: tuple[Any, ...]) -> str:
    """The secrets themselves are not kept as keys."""
    return hashlib.sha256(repr(inputs).encode()).hexdigest()


def _bearer(token: Token) -> str:
    assert isinstance(token.value, str)  # noqa: S101 - the request's kind decides
    if not (token.value.isascii() and token.value.isprintable()):
        raise TidegateError(
            Code.PROVIDER_REPLY, "A token that was got holds characters that no header may have."
        )
    return token.value


def _aws(token: Token) -> AwsCredential:
    assert isinstance(token.value, AwsCredential)  # noqa: S101 - the request's kind decides
    return token.value


def _reason(body: bytes) -> str:
    """The code of an error (RFC 6749, section 5.2, or AWS's): never its text, which may repeat what
    was sent."""
    match = _ERROR_CODE.search(body[:65_536])
    return f": {(match[1] or match[2]).decode()}" if match else ""
