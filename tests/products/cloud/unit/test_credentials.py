"""A request gets the credential of its provider, from where the login names it, and nothing shows
it."""

from __future__ import annotations

import asyncio
import base64
import json
import sys
from collections.abc import Awaitable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import parse_qs

import jwt
import msgspec
import pytest
from cryptography.hazmat.primitives.asymmetric.rsa import generate_private_key
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
)

from tidegate.errors import Code, TidegateError
from tidegate.products.cloud.documents.model import Provider, Settings
from tidegate.products.cloud.http.requests import ApiRequest
from tidegate.products.cloud.login.credentials import AuthorizedRequest, Credentials, CredentialUse
from tidegate.products.cloud.settings import CloudSettings

T = TypeVar("T")
NOW = 1_700_000_000.0
REQUEST = ApiRequest("GET", "https://api.example.com/things?a=1", (), None, False)
SECRET = "hidden-secret-1"


def use(auth: dict[str, Any], account: str = "") -> CredentialUse:
    provider = Provider("example", "v1", "", "", {}, auth, Settings(), False)
    return CredentialUse(provider, account, "dynamodb", "eu-west-1")


def run(result: Awaitable[T]) -> T:
    async def wait() -> T:
        return await result

    return asyncio.run(wait())


class TokenServer:
    """Keeps the requests for tokens, and answers them with replies that were given."""

    def __init__(self, *replies: tuple[int, Any]) -> None:
        self.replies = list(replies)
        self.requests: list[ApiRequest] = []

    async def __call__(self, request: ApiRequest) -> tuple[int, bytes]:
        self.requests.append(request)
        await asyncio.sleep(0)
        status, body = self.replies[min(len(self.requests), len(self.replies)) - 1]
        return status, body if isinstance(body, bytes) else json.dumps(body).encode()

    def fields(self, at: int = -1) -> dict[str, str]:
        body = self.requests[at].body or b""
        return {name: values[0] for name, values in parse_qs(body.decode()).items()}


def credentials(
    environment: dict[str, str] | None = None,
    server: TokenServer | None = None,
    settings: dict[str, Any] | None = None,
    now: list[float] | None = None,
) -> Credentials:
    clock = now if now is not None else [NOW]
    return Credentials(
        msgspec.convert(settings or {}, CloudSettings),
        server or TokenServer((500, b"")),
        environment={"HOME": "/nonexistent", **(environment or {})},
        clock=lambda: clock[0],
    )


def authorize(
    auth: dict[str, Any],
    environment: dict[str, str] | None = None,
    server: TokenServer | None = None,
) -> AuthorizedRequest:
    return run(credentials(environment, server).authorize(REQUEST, use(auth)))


def header(request: ApiRequest, name: str = "Authorization") -> str | None:
    return {each.lower(): value for each, value in request.headers}.get(name.lower())


@pytest.mark.parametrize("auth", [{}, {"type": "none"}, {"type": "null_auth"}])
def test_a_provider_without_a_login_gets_the_request_as_it_is(auth: dict[str, Any]) -> None:
    made = authorize(auth)
    assert (made.url, made.headers, made.secrets) == (REQUEST.url, (), ())


@pytest.mark.parametrize(
    ("auth", "sent"),
    [
        ({"type": "bearer", "credentialsenvvar": "KEY"}, f"Bearer {SECRET}"),
        ({"type": "Bearer", "credentialsenvvar": "KEY"}, f"Bearer {SECRET}"),
        ({"type": "api_key", "credentialsenvvar": "KEY"}, f"api_key {SECRET}"),
        (
            {"type": "api_key", "credentialsenvvar": "KEY", "valuePrefix": "SSWS "},
            f"SSWS {SECRET}",
        ),
        (
            {"type": "api_key", "credentialsenvvar": "KEY", "valuePrefix": "Token token="},
            f"Token token={SECRET}",
        ),
        ({"type": "basic", "credentialsenvvar": "KEY"}, f"Basic {SECRET}"),
        (
            {"type": "basic", "username_var": "NAME", "password_var": "KEY"},
            f"Basic {base64.b64encode(b'me:' + SECRET.encode()).decode()}",
        ),
        (
            {"type": "basic", "api_key_var": "NAME", "api_secret_var": "KEY"},
            f"Basic {base64.b64encode(b'me:' + SECRET.encode()).decode()}",
        ),
    ],
)
def test_each_simple_login_of_the_registry_sets_its_header(auth: dict[str, Any], sent: str) -> None:
    made = authorize(auth, {"KEY": SECRET, "NAME": "me"})
    assert header(made) == sent
    assert SECRET not in repr(made) and "KEY" in made.origin


def test_a_custom_login_sets_headers_and_parameters_one_after_the_other() -> None:
    auth = {
        "type": "custom", "location": "header", "name": "DD-API-KEY", "credentialsenvvar": "A",
        "successor": {
            "type": "custom", "location": "query", "name": "app key", "credentialsenvvar": "B",
        },
    }  # fmt: skip
    with pytest.raises(TidegateError, match="not a header"):
        authorize(auth | {"successor": {**auth["successor"], "name": "app key"}}, {})  # type: ignore[dict-item]
    auth["successor"]["name"] = "app_key"  # type: ignore[index]
    made = authorize(auth, {"A": "first", "B": "sec&ond"})
    assert header(made, "DD-API-KEY") == "first"
    assert made.url == f"{REQUEST.url}&app_key=sec%26ond"
    assert made.secrets == ("first", "sec&ond")
    assert "sec" not in repr(made)


def test_the_header_of_a_credential_takes_the_place_of_one_that_a_value_has_set() -> None:
    request = ApiRequest("GET", "https://a.example/", (("x-key", "mine"),), None, False)
    auth = {"type": "custom", "name": "X-Key", "credentialsenvvar": "A"}
    made = run(credentials({"A": "ours"}).authorize(request, use(auth)))
    assert [each for each in made.headers if each[0].lower() == "x-key"] == [("X-Key", "ours")]


def test_a_secret_is_read_again_for_each_request(tmp_path: Path) -> None:
    environment = {"KEY": "old", "HOME": "/nonexistent"}
    subject = Credentials(CloudSettings(), TokenServer((500, b"")), environment=environment)
    auth = {"type": "bearer", "credentialsenvvar": "KEY"}
    assert header(run(subject.authorize(REQUEST, use(auth)))) == "Bearer old"
    environment["KEY"] = "new"
    assert header(run(subject.authorize(REQUEST, use(auth)))) == "Bearer new"
    path = tmp_path / "token"
    path.write_text("from-a-file\n")
    settings = {
        "providers": {"example": {"auth": {"type": "bearer", "credentialsfilepath": str(path)}}}
    }
    assert header(run(credentials(settings=settings).authorize(REQUEST, use(auth)))) == (
        "Bearer from-a-file"
    )


def test_a_program_prints_the_secret_and_its_failure_names_it_alone() -> None:
    def login(code: str) -> dict[str, Any]:
        command = [sys.executable, "-c", code]
        login = {"type": "bearer", "credentialscommand": command}
        return {"providers": {"example": {"auth": login}}}

    subject = credentials(settings=login("print('printed')"))
    assert header(run(subject.authorize(REQUEST, use({})))) == "Bearer printed"
    for code in (f"print('{SECRET}'); raise SystemExit(3)", "pass", "print('x' * 100_000)"):
        with pytest.raises(TidegateError) as failure:
            run(credentials(settings=login(code)).authorize(REQUEST, use({})))
        assert failure.value.code is Code.CREDENTIAL_UNAVAILABLE
        assert sys.executable in failure.value.message
        assert SECRET not in failure.value.message


@pytest.mark.parametrize(
    ("auth", "named"),
    [
        ({"type": "bearer", "credentialsenvvar": "NO_SUCH"}, "NO_SUCH"),
        ({"type": "basic", "username_var": "NAME", "password_var": "NO_SUCH"}, "NO_SUCH"),
        ({"type": "bearer"}, "names no secret"),
        ({"type": "aws_signing_v4", "keyIDenvvar": "NAME"}, "AWS_SECRET_ACCESS_KEY"),
        ({"type": "azure_default"}, "AZURE_TENANT_ID"),
    ],
)  # fmt: skip
def test_a_credential_that_is_missing_is_named(auth: dict[str, Any], named: str) -> None:
    with pytest.raises(TidegateError) as failure:
        authorize(auth, {"NAME": "me"})
    assert failure.value.code is Code.CREDENTIAL_UNAVAILABLE
    assert named in failure.value.message


def test_a_secret_that_would_add_a_header_is_refused_and_not_shown() -> None:
    with pytest.raises(TidegateError) as failure:
        authorize({"type": "bearer", "credentialsenvvar": "KEY"}, {"KEY": f"{SECRET}\r\nHost: x"})
    assert SECRET not in str(failure.value.message) and "KEY" in failure.value.message


@pytest.mark.parametrize(
    "local",
    [
        {"credentialsfilepath": "/etc/hostname"},
        {"credentialscommand": ["/bin/echo", "x"]},
        {"credentialsfilepathenvvar": "PATH_OF_SECRET"},
    ],
)
def test_a_document_names_no_file_and_no_program_of_this_machine(local: dict[str, Any]) -> None:
    with pytest.raises(TidegateError, match="names no secret"):
        authorize({"type": "bearer", **local}, {"PATH_OF_SECRET": "/etc/hostname"})


@pytest.mark.parametrize("key", ["password", "api_key", "api_secret", "client_secret"])
def test_settings_hold_no_secret_themselves(key: str) -> None:
    settings = {"providers": {"example": {"auth": {"type": "basic", key: SECRET}}}}
    with pytest.raises((TidegateError, msgspec.ValidationError)) as failure:
        msgspec.convert(settings, CloudSettings)
    assert key in str(failure.value) and SECRET not in str(failure.value)


def test_a_refused_credential_is_named_with_its_account() -> None:
    settings = {
        "providers": {
            "example": {
                "accounts": {"prod": {"auth": {"type": "bearer", "credentialsenvvar": "PROD"}}}
            }
        }
    }
    subject = credentials({"PROD": SECRET}, settings=settings)
    made = run(subject.authorize(REQUEST, use({}, "prod")))
    error = subject.refused(use({}, "prod"), made, 401)
    assert error.code is Code.CREDENTIAL_REFUSED
    assert "PROD" in error.message and "prod" in error.message and "401" in error.message
    assert SECRET not in error.message
    with pytest.raises(TidegateError, match="no account other"):
        run(subject.authorize(REQUEST, use({}, "other")))


CLIENT = {
    "type": "oauth2", "grant_type": "client_credentials",
    "token_url": "https://{{ .__env__DOMAIN }}.example.com/token",
    "client_id_env_var": "ID", "client_secret_env_var": "KEY", "scopes": ["a", "b"],
}  # fmt: skip


def test_a_token_is_got_once_and_again_before_it_ends() -> None:
    server = TokenServer(
        (200, {"access_token": "one", "expires_in": 600}),
        (200, {"access_token": "two", "expires_in": 600}),
    )
    now = [NOW]
    subject = credentials({"DOMAIN": "acme", "ID": "me", "KEY": SECRET}, server, now=now)

    async def several() -> list[str | None]:
        made = await asyncio.gather(*(subject.authorize(REQUEST, use(CLIENT)) for _ in range(5)))
        return [header(each) for each in made]

    assert run(several()) == ["Bearer one"] * 5
    assert len(server.requests) == 1
    assert server.requests[0].url == "https://acme.example.com/token"
    assert server.fields() == {"grant_type": "client_credentials", "scope": "a b"}
    assert header(server.requests[0]) == (
        f"Basic {base64.b64encode(b'me:' + SECRET.encode()).decode()}"
    )
    now[0] += 541
    assert header(run(subject.authorize(REQUEST, use(CLIENT)))) == "Bearer two"


@pytest.mark.parametrize("value", ["evil.example/", "a/../..", "x#", "evil.example:80?"])
def test_a_variable_in_the_address_of_a_token_stays_one_label(value: str) -> None:
    server = TokenServer((200, {"access_token": "one"}))
    with pytest.raises(TidegateError):
        authorize(CLIENT, {"DOMAIN": value, "ID": "me", "KEY": SECRET}, server)
    assert not server.requests


@pytest.mark.parametrize(
    "reply",
    [
        (400, {"error": "invalid_client", "error_description": f"bad secret {SECRET}"}),
        (200, {"access_token": 5}),
        (200, b"<html>"),
        (302, b""),
        (200, {"access_token": "a\nb"}),
    ],
)
def test_a_token_that_is_refused_or_unusable_is_an_error_without_the_secret(
    reply: tuple[int, Any],
) -> None:
    with pytest.raises(TidegateError) as failure:
        authorize(CLIENT, {"DOMAIN": "acme", "ID": "me", "KEY": SECRET}, TokenServer(reply))
    assert SECRET not in failure.value.message
    assert failure.value.code in (Code.CREDENTIAL_REFUSED, Code.PROVIDER_REPLY)


def test_a_service_account_of_google_signs_its_claims() -> None:
    key = generate_private_key(65_537, 2_048)
    pem = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode()
    account = {
        "type": "service_account", "client_email": "me@example.iam", "private_key": pem,
        "private_key_id": "k1", "token_uri": "https://oauth2.googleapis.com/token",
    }  # fmt: skip
    server = TokenServer((200, {"access_token": "google", "expires_in": 3_600}))
    auth = {"type": "service_account", "credentialsenvvar": "KEY", "sub": "boss@example.com"}
    made = authorize(auth, {"KEY": json.dumps(account)}, server)
    assert header(made) == "Bearer google"
    claims = jwt.decode(
        server.fields()["assertion"],
        key.public_key(),
        algorithms=["RS256"],
        audience="https://oauth2.googleapis.com/token",
        options={"verify_exp": False, "verify_iat": False},
    )
    assert claims["iss"] == "me@example.iam" and claims["sub"] == "boss@example.com"
    assert claims["scope"] == "https://www.googleapis.com/auth/cloud-platform"
    assert claims["exp"] - claims["iat"] == 3_600
    for broken in ("no json", "[]", json.dumps(account | {"private_key": "x"})):
        with pytest.raises(TidegateError) as failure:
            authorize(auth, {"KEY": broken}, server)
        assert failure.value.code is Code.CREDENTIAL_UNAVAILABLE and "KEY" in failure.value.message


def test_azure_takes_the_client_of_the_environment_and_the_audience_of_the_host(
    tmp_path: Path,
) -> None:
    server = TokenServer((200, {"access_token": "entra", "expires_in": "3599"}))
    environment = {"AZURE_TENANT_ID": "t-1", "AZURE_CLIENT_ID": "c-1"}
    made = authorize(
        {"type": "azure_default"}, environment | {"AZURE_CLIENT_SECRET": SECRET}, server
    )
    assert header(made) == "Bearer entra"
    assert server.requests[0].url == "https://login.microsoftonline.com/t-1/oauth2/v2.0/token"
    assert server.fields()["scope"] == "https://management.azure.com/.default"
    assert server.fields()["client_secret"] == SECRET
    token = tmp_path / "federated"
    token.write_text("assertion")
    subject = credentials(environment | {"AZURE_FEDERATED_TOKEN_FILE": str(token)}, server)
    vault = ApiRequest("GET", "https://v.vault.azure.net/keys", (), None, False)
    run(subject.authorize(vault, use({"type": "azure_default"})))
    assert server.fields()["scope"] == "https://vault.azure.net/.default"
    assert server.fields()["client_assertion"] == "assertion"


AWS = {
    "type": "aws_signing_v4", "credentialsenvvar": "AWS_SECRET_ACCESS_KEY",
    "keyIDenvvar": "AWS_ACCESS_KEY_ID",
}  # fmt: skip
STS = b"""<AssumeRoleResponse xmlns="https://sts.amazonaws.com/doc/2011-06-15/"><AssumeRoleResult>
<Credentials><AccessKeyId>ASIAROLE</AccessKeyId><SecretAccessKey>role-secret</SecretAccessKey>
<SessionToken>role-token</SessionToken><Expiration>2023-11-15T00:00:00Z</Expiration></Credentials>
</AssumeRoleResult></AssumeRoleResponse>"""


def test_aws_signs_for_the_service_and_region_with_the_session_token() -> None:
    environment = {"AWS_ACCESS_KEY_ID": "AKIDME", "AWS_SECRET_ACCESS_KEY": SECRET}
    made = authorize(AWS, environment | {"AWS_SESSION_TOKEN": "session"})
    day = datetime.fromtimestamp(NOW, UTC).strftime("%Y%m%d")
    assert f"AKIDME/{day}/eu-west-1/dynamodb/aws4_request" in (header(made) or "")
    assert header(made, "X-Amz-Security-Token") == "session"
    assert SECRET in made.secrets and "AWS_SESSION_TOKEN" in made.origin


def test_a_role_is_assumed_once_and_its_credential_signs() -> None:
    server = TokenServer((200, STS))
    auth = AWS | {
        "type": "aws_assume_role", "aws_role_arn": "arn:aws:iam::1:role/r",
        "aws_role_external_id": "ext", "aws_role_session_name": "me",
    }  # fmt: skip
    subject = credentials({"AWS_ACCESS_KEY_ID": "AKIDME", "AWS_SECRET_ACCESS_KEY": SECRET}, server)
    for _ in range(2):
        made = run(subject.authorize(REQUEST, use(auth)))
        assert "Credential=ASIAROLE/" in (header(made) or "")
        assert header(made, "X-Amz-Security-Token") == "role-token"
    assert len(server.requests) == 1
    assert server.fields()["RoleArn"] == "arn:aws:iam::1:role/r"
    assert server.fields()["ExternalId"] == "ext"
    assert "Credential=AKIDME/" in (header(server.requests[0]) or "")
    error = TokenServer((403, b"<ErrorResponse><Error><Code>ExpiredToken</Code></Error>"))
    with pytest.raises(TidegateError, match="ExpiredToken") as failure:
        authorize(auth, {"AWS_ACCESS_KEY_ID": "A", "AWS_SECRET_ACCESS_KEY": "S"}, error)
    assert "AWS_SECRET_ACCESS_KEY" in failure.value.message


PROFILES = """
[default]
region = eu-central-1
[profile keys]
aws_access_key_id = AKIDFILE
aws_secret_access_key = file-secret
aws_session_token = file-token
[profile role]
role_arn = arn:aws:iam::2:role/audit
source_profile = keys
[profile loop]
role_arn = arn:aws:iam::2:role/loop
source_profile = loop2
[profile loop2]
role_arn = arn:aws:iam::2:role/loop
source_profile = loop
[profile program]
credential_process = "{python}" -c "print('{output}')"
[profile signed-on]
sso_session = corp
sso_account_id = 123456789012
sso_role_name = Reader
[sso-session corp]
sso_region = us-east-1
sso_start_url = https://corp.awsapps.com/start
[profile device]
role_arn = arn:aws:iam::2:role/mfa
source_profile = keys
mfa_serial = arn:aws:iam::1:mfa/me
"""


@pytest.fixture
def home(tmp_path: Path) -> Path:
    folder = tmp_path / ".aws"
    (folder / "sso" / "cache").mkdir(parents=True)
    printed = {
        "Version": 1, "AccessKeyId": "AKIDPROC", "SecretAccessKey": "proc",
        "Expiration": "2033-01-01T00:00:00Z",
    }  # fmt: skip
    text = PROFILES.replace("{python}", sys.executable)
    text = text.replace("{output}", json.dumps(printed).replace('"', '\\"'))
    (folder / "config").write_text(text)
    (folder / "credentials").write_text(
        "[default]\naws_access_key_id = AKIDDEFAULT\naws_secret_access_key = default-secret\n"
    )
    return tmp_path


def of_profile(home: Path, name: str, server: TokenServer | None = None) -> AuthorizedRequest:
    settings = {"providers": {"example": {"auth": {"type": "aws_signing_v4", "profile": name}}}}
    subject = credentials({"HOME": str(home)}, server, settings)
    return run(subject.authorize(REQUEST, use(AWS)))


def test_profiles_hold_keys_assume_roles_and_run_programs(home: Path) -> None:
    made = of_profile(home, "keys")
    assert "Credential=AKIDFILE/" in (header(made) or "")
    assert header(made, "X-Amz-Security-Token") == "file-token"
    assert made.origin == "the AWS profile keys"
    server = TokenServer((200, STS))
    assert "Credential=ASIAROLE/" in (header(of_profile(home, "role", server)) or "")
    assert "Credential=AKIDFILE/" in (header(server.requests[0]) or "")
    assert "Credential=AKIDPROC/" in (header(of_profile(home, "program")) or "")


def test_without_variables_the_default_profile_counts(home: Path) -> None:
    made = authorize(AWS, {"HOME": str(home)})
    assert "Credential=AKIDDEFAULT/" in (header(made) or "")
    made = authorize(AWS, {"HOME": str(home), "AWS_PROFILE": "keys"})
    assert "Credential=AKIDFILE/" in (header(made) or "")
    with pytest.raises(TidegateError, match="AWS_SECRET_ACCESS_KEY"):
        authorize(AWS, {"HOME": str(home), "AWS_ACCESS_KEY_ID": "AKIDHALF"})


def test_single_sign_on_uses_the_login_of_the_cache_until_it_expires(home: Path) -> None:
    import hashlib

    name = hashlib.sha1(b"corp").hexdigest()
    cache = home / ".aws" / "sso" / "cache" / f"{name}.json"
    with pytest.raises(TidegateError, match="not logged in"):
        of_profile(home, "signed-on")
    cache.write_text(json.dumps({"accessToken": "sso-token", "expiresAt": "2033-01-01T00:00:00Z"}))
    reply = {
        "roleCredentials": {
            "accessKeyId": "ASIASSO", "secretAccessKey": "s", "sessionToken": "t",
            "expiration": 2_000_000_000_000,
        }
    }  # fmt: skip
    server = TokenServer((200, reply))
    assert "Credential=ASIASSO/" in (header(of_profile(home, "signed-on", server)) or "")
    assert header(server.requests[0], "x-amz-sso_bearer_token") == "sso-token"
    assert "account_id=123456789012" in server.requests[0].url
    cache.write_text(
        json.dumps({"accessToken": "sso-token", "expiresAt": "2020-01-01T00:00:00UTC"})
    )
    with pytest.raises(TidegateError, match="expired") as failure:
        of_profile(home, "signed-on", server)
    assert "aws sso login --profile signed-on" in failure.value.hint
    assert "sso-token" not in failure.value.message


@pytest.mark.parametrize(
    ("name", "problem"),
    [("none", "no profile none"), ("loop", "leads back"), ("device", "mfa_serial")],
)
def test_a_profile_that_cannot_be_used_is_named(home: Path, name: str, problem: str) -> None:
    with pytest.raises(TidegateError, match=problem) as failure:
        of_profile(home, name)
    assert failure.value.code is Code.CREDENTIAL_UNAVAILABLE
