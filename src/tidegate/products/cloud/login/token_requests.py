"""The requests that get short-lived credentials, and what their replies hold. Sends none itself.

OAuth 2.0 client credentials (RFC 6749, section 4.4), JWT bearer (RFC 7523) as Google's service
accounts use it, refresh tokens, Microsoft Entra's client credentials and federated tokens, AWS
STS's AssumeRole and AssumeRoleWithWebIdentity, and AWS's single sign-on.
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any, Final, cast
from urllib.parse import quote, urlencode

import msgspec

from tidegate.config.addresses import parse_http_url
from tidegate.errors import Code, TidegateError
from tidegate.products.cloud.http.requests import ApiRequest
from tidegate.products.cloud.login.aws_profiles import AwsRole, SsoLogin
from tidegate.products.cloud.login.aws_signature import AwsCredential, sign_request
from tidegate.xml_tree import parse_xml

_FORM: Final = "application/x-www-form-urlencoded"
_GOOGLE_TOKENS: Final = "https://oauth2.googleapis.com/token"
_JWT_GRANT: Final = "urn:ietf:params:oauth:grant-type:jwt-bearer"
_ASSERTION: Final = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"
_JWT_LIFE_S: Final = 3_600
_DEFAULT_LIFE_S: Final = 300.0
"""How long a token without a stated life is used."""
_REGION: Final = re.compile(r"[a-z0-9-]{1,40}")
_TENANT: Final = re.compile(r"[A-Za-z0-9.-]{1,100}")
_AWS_NAMES: Final = ("AccessKeyId", "SecretAccessKey", "SessionToken")
"""What STS and programs call the parts of a credential."""


class Token(msgspec.Struct, frozen=True):
    """A short-lived secret, and until when it may be used, in seconds since 1970."""

    value: str | AwsCredential
    expires_at: float

    def __repr__(self) -> str:
        return f"Token(expires_at={self.expires_at})"


class TokenRequest(msgspec.Struct, frozen=True):
    """How to get a token: `read` takes the body of the reply with the status 200 and the present
    time. It raises ValueError with a reason that holds no secret."""

    request: ApiRequest
    read: Callable[[bytes, float], Token]

    def __repr__(self) -> str:
        return f"TokenRequest({self.request.verb} {self.request.url.partition('?')[0]})"


def client_credentials(
    token_url: str,
    client_id: str,
    client_secret: str,
    *,
    scopes: tuple[str, ...] = (),
    values: Mapping[str, Any] | None = None,
    in_body: bool = False,
) -> TokenRequest:
    """RFC 6749, section 4.4: the client's secret in a header (section 2.3.1), or in the body."""
    fields: list[tuple[str, str]] = [("grant_type", "client_credentials")]
    if scopes:
        fields.append(("scope", " ".join(scopes)))
    for name, value in (values or {}).items():
        fields.extend((name, str(each)) for each in (value if isinstance(value, list) else [value]))  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]
    headers: tuple[tuple[str, str], ...] = ()
    if in_body:
        fields += [("client_id", client_id), ("client_secret", client_secret)]
    else:
        pair = f"{quote(client_id, safe='')}:{quote(client_secret, safe='')}"
        headers = (("Authorization", f"Basic {base64.b64encode(pair.encode()).decode()}"),)
    return _token_request(token_url, fields, headers)


def azure_client_credentials(
    authority: str, tenant: str, client_id: str, proof: tuple[str, str], scope: str
) -> TokenRequest:
    """Microsoft Entra's v2.0 endpoint; `proof` is ("client_secret", S) or ("client_assertion", T).

    Raises: ValueError for an invalid tenant.
    """
    if not _TENANT.fullmatch(tenant):
        raise ValueError("the tenant is neither an id nor a domain")
    fields = [("grant_type", "client_credentials"), ("client_id", client_id), ("scope", scope)]
    if proof[0] == "client_assertion":
        fields.append(("client_assertion_type", _ASSERTION))
    fields.append(proof)
    return _token_request(f"{authority.rstrip('/')}/{tenant}/oauth2/v2.0/token", fields)


def google_token(key: bytes, scopes: tuple[str, ...], subject: str, now: float) -> TokenRequest:
    """A token for the service account, or the user, whose JSON key is `key`; `now` in seconds.

    Raises: ValueError that says what is wrong with the key and holds nothing of it.
    """
    entries = _object(key)

    def text(name: str) -> str:
        value = entries.get(name)
        if not isinstance(value, str) or not value:
            raise ValueError(f"it has no `{name}`")
        return value

    url = str(entries.get("token_uri") or _GOOGLE_TOKENS)
    kind = entries.get("type")
    if kind == "authorized_user":
        fields = [
            ("grant_type", "refresh_token"),
            ("client_id", text("client_id")),
            ("client_secret", text("client_secret")),
            ("refresh_token", text("refresh_token")),
        ]
        return _token_request(url, fields)
    if kind != "service_account":
        raise ValueError("its `type` is neither service_account nor authorized_user")
    claims: dict[str, Any] = {
        "iss": text("client_email"),
        "scope": " ".join(scopes),
        "aud": url,
        "iat": int(now),
        "exp": int(now) + _JWT_LIFE_S,
    }
    if subject:
        claims["sub"] = subject
    assertion = _signed_jwt(claims, text("private_key"), str(entries.get("private_key_id") or ""))
    return _token_request(url, [("grant_type", _JWT_GRANT), ("assertion", assertion)])


def _signed_jwt(claims: Mapping[str, Any], private_key: str, key_id: str) -> str:
    """RFC 7515 with RS256. Raises: ValueError for a key that is no RSA key."""
    # Imported here: most logins need no key of their own.
    from cryptography.exceptions import UnsupportedAlgorithm
    from cryptography.hazmat.primitives.asymmetric.padding import PKCS1v15
    from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey
    from cryptography.hazmat.primitives.hashes import SHA256
    from cryptography.hazmat.primitives.serialization import load_pem_private_key

    try:
        key = load_pem_private_key(private_key.encode(), None)
    except (ValueError, TypeError, UnsupportedAlgorithm):
        raise ValueError("its `private_key` cannot be read") from None
    if not isinstance(key, RSAPrivateKey):
        raise ValueError("its `private_key` is no RSA key")
    header = {"alg": "RS256", "typ": "JWT", **({"kid": key_id} if key_id else {})}
    signed = b".".join(_base64url(json.dumps(each).encode()) for each in (header, claims))
    signature = key.sign(signed, PKCS1v15(), SHA256())
    return b".".join((signed, _base64url(signature))).decode()


def _base64url(content: bytes) -> bytes:
    return base64.urlsafe_b64encode(content).rstrip(b"=")


def assumed_role(
    role: AwsRole, credential: AwsCredential | None, token: str, now: datetime
) -> TokenRequest:
    """STS's AssumeRole, signed with `credential`; without one, AssumeRoleWithWebIdentity with the
    identity provider's `token`. Raises: ValueError for an invalid region."""
    region = role.region or "us-east-1"
    if not _REGION.fullmatch(region):
        raise ValueError("the region of STS is not one")
    fields = {
        "Version": "2011-06-15",
        "RoleArn": role.arn,
        "RoleSessionName": role.session_name or "tidegate",
    }
    if role.duration_s:
        fields["DurationSeconds"] = str(role.duration_s)
    if credential is None:
        fields |= {"Action": "AssumeRoleWithWebIdentity", "WebIdentityToken": token}
    else:
        fields["Action"] = "AssumeRole"
        if role.external_id:
            fields["ExternalId"] = role.external_id
    suffix = ".cn" if region.startswith("cn-") else ""
    url = role.endpoint or f"https://sts.{region}.amazonaws.com{suffix}/"
    request = _form(url, list(fields.items()))
    if credential is not None:
        request = sign_request(request, credential, "sts", region, now)
    return TokenRequest(request, _read_sts)


def sso_role(login: SsoLogin, access_token: str) -> TokenRequest:
    """GetRoleCredentials of AWS's single sign-on. Raises: ValueError for an invalid region."""
    if not _REGION.fullmatch(login.region):
        raise ValueError("the region of single sign-on is not one")
    query = urlencode({"role_name": login.role_name, "account_id": login.account_id})
    url = f"https://portal.sso.{login.region}.amazonaws.com/federation/credentials?{query}"
    request = ApiRequest("GET", url, (("x-amz-sso_bearer_token", access_token),), None, False)
    return TokenRequest(request, _read_sso)


def process_output(output: bytes, now: float) -> Token:
    """What a `credential_process` of AWS's files prints. Raises: ValueError."""
    entries = _object(output)
    if entries.get("Version") != 1:
        raise ValueError("it is not of version 1")
    return _aws_token(entries, _AWS_NAMES, now)


def _token_request(
    url: str, fields: list[tuple[str, str]], headers: tuple[tuple[str, str], ...] = ()
) -> TokenRequest:
    return TokenRequest(_form(url, fields, headers), _read_oauth)


def _form(
    url: str, fields: list[tuple[str, str]], headers: tuple[tuple[str, str], ...] = ()
) -> ApiRequest:
    """Raises: ValueError for an address that would show a secret on its way."""
    try:
        parts = parse_http_url(url)
    except ValueError:
        raise ValueError("the address of the token is not a URL") from None
    if not parts.is_private or parts.login is not None:
        raise ValueError("the address of the token is not https")
    own = (("Content-Type", f"{_FORM}; charset=utf-8"), ("Accept", "application/json"))
    return ApiRequest("POST", url, (*own, *headers), urlencode(fields).encode(), False)


def _object(body: bytes) -> dict[str, Any]:
    try:
        entries: Any = json.loads(body)
    except (ValueError, RecursionError):
        raise ValueError("it is no JSON") from None
    if not isinstance(entries, dict):
        raise ValueError("it is no JSON object")
    return cast("dict[str, Any]", entries)


def _read_oauth(body: bytes, now: float) -> Token:
    """RFC 6749, section 5.1."""
    entries = _object(body)
    value = entries.get("access_token")
    if not isinstance(value, str) or not value:
        raise ValueError("it has no `access_token`")
    life = entries.get("expires_in")
    if isinstance(life, str) and life.isdecimal():
        life = int(life)
    is_number = isinstance(life, (int, float)) and not isinstance(life, bool) and life > 0
    return Token(value, now + (min(float(life), 86_400.0) if is_number else _DEFAULT_LIFE_S))  # type: ignore[arg-type]


def _read_sts(body: bytes, now: float) -> Token:
    try:
        root = parse_xml(body, lambda reason: TidegateError(Code.PROVIDER_REPLY, reason))
    except TidegateError:
        raise ValueError("it is no XML") from None
    entries: dict[str, str] = {}
    for result in ("AssumeRoleResult", "AssumeRoleWithWebIdentityResult"):
        for element in root.all(result, "Credentials"):
            entries |= {each.name: each.text.strip() for each in element.children}
    return _aws_token(entries, _AWS_NAMES, now)


def _read_sso(body: bytes, now: float) -> Token:
    found = _object(body).get("roleCredentials")
    if not isinstance(found, dict):
        raise ValueError("it has no `roleCredentials`")
    entries = dict(cast("dict[str, Any]", found))
    milliseconds = entries.get("expiration")
    if isinstance(milliseconds, (int, float)):
        entries["Expiration"] = milliseconds / 1_000
    return _aws_token(entries, ("accessKeyId", "secretAccessKey", "sessionToken"), now)


def _aws_token(entries: Mapping[str, Any], names: tuple[str, str, str], now: float) -> Token:
    parts = [entries.get(name) or "" for name in names]
    if not all(isinstance(each, str) for each in parts) or not parts[0] or not parts[1]:
        raise ValueError(f"it has no `{names[0]}` or `{names[1]}`")
    return Token(AwsCredential(*parts), _expiry(entries.get("Expiration"), now))


def _expiry(value: Any, now: float) -> float:
    if value is None or value == "":
        return now + _DEFAULT_LIFE_S
    if isinstance(value, (int, float)):
        return float(value)
    try:
        moment = datetime.fromisoformat(str(value).replace("Z", "+00:00"))
    except ValueError:
        raise ValueError("its `Expiration` is no time") from None
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
