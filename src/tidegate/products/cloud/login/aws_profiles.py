"""Reads AWS's own configuration files: profiles of `~/.aws/config` and `~/.aws/credentials`.

The keys and their precedence are those of the "AWS SDKs and Tools Reference Guide", sections
"Shared config and credentials files" and "Standardized credential providers".
"""

from __future__ import annotations

import configparser
import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import msgspec

from tidegate.paths import expand
from tidegate.products.cloud.documents.secret_values import unavailable

_MOST_BYTES: Final = 1_048_576
_MOST_SOURCES: Final = 5
"""How many roles one after the other a profile may assume."""


class SsoLogin(msgspec.Struct, frozen=True):
    """Where the credential of a profile with single sign-on comes from."""

    cache_key: str
    """What the file with the token is named after: the session, else the start URL."""
    region: str
    account_id: str
    role_name: str

    @property
    def cache_file(self) -> str:
        """The name of the file in `~/.aws/sso/cache`."""
        return f"{hashlib.sha1(self.cache_key.encode()).hexdigest()}.json"


class AwsRole(msgspec.Struct, frozen=True):
    """A role that is assumed with another credential, or with a token of an identity provider."""

    arn: str
    session_name: str = ""
    external_id: str = ""
    duration_s: int = 0
    region: str = ""
    token_file: str = ""
    endpoint: str = ""


class AwsProfile(msgspec.Struct, frozen=True):
    """One profile. The first of its ways that is set is used; `role` in addition to them."""

    name: str
    key_id: str = ""
    secret: str = ""
    session_token: str = ""
    process: str = ""
    sso: SsoLogin | None = None
    role: AwsRole | None = None
    source: AwsProfile | None = None
    """The profile with whose credential `role` is assumed. None: the profile's own."""
    uses_environment: bool = False
    """Whether `role` is assumed with the credential in the environment."""
    region: str = ""

    def __repr__(self) -> str:
        return f"AwsProfile({self.name!r})"


def config_files(environment: Mapping[str, str]) -> tuple[Path, Path]:
    """Where the configuration and the credentials of AWS's tools are."""
    home = expand(environment.get("HOME") or "~")
    config = environment.get("AWS_CONFIG_FILE")
    credentials = environment.get("AWS_SHARED_CREDENTIALS_FILE")
    return (
        expand(config) if config else home / ".aws" / "config",
        expand(credentials) if credentials else home / ".aws" / "credentials",
    )


def read_profile(name: str, environment: Mapping[str, str]) -> AwsProfile | None:
    """The profile `name`; None if no file has it.

    Raises: TidegateError CREDENTIAL_UNAVAILABLE for a file that cannot be read, or a profile that
    needs what cannot be done here.
    """
    config, credentials = config_files(environment)
    sections = _sections(config)
    for section, values in _sections(credentials).items():
        # The credentials file wins, key by key.
        sections.setdefault(f"profile {section}", {}).update(values)
    return _profile(name, sections, ())


def _sections(path: Path) -> dict[str, dict[str, str]]:
    """The sections of a file, those of profiles as `profile NAME`; none if there is no file."""
    try:
        with path.open("rb") as file:
            text = file.read(_MOST_BYTES).decode()
    except FileNotFoundError:
        return {}
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
        raise unavailable(f"AWS's file {path} cannot be read: {reason}", path=str(path)) from None
    parser = configparser.RawConfigParser(default_section="\0", strict=False)
    try:
        parser.read_string(text)
    except configparser.Error as error:
        line = getattr(error, "lineno", None)
        where = f" in line {line}" if line else ""
        raise unavailable(f"AWS's file {path} cannot be read{where}", path=str(path)) from None
    found: dict[str, dict[str, str]] = {}
    for section in parser.sections():
        known = " ".join(section.split())
        if path.name != "credentials" and known == "default":
            known = "profile default"
        found.setdefault(known, {}).update(parser.items(section))
    return found


def _profile(
    name: str, sections: Mapping[str, Mapping[str, str]], seen: tuple[str, ...]
) -> AwsProfile | None:
    values = sections.get(f"profile {name}")
    if values is None:
        return None
    if name in seen or len(seen) >= _MOST_SOURCES:
        raise unavailable(f"the AWS profile {name} leads back to itself by `source_profile`")
    if values.get("mfa_serial"):
        raise unavailable(
            f"the AWS profile {name} asks for a code of a device (`mfa_serial`)",
            hint=f"Log in with `aws sts` or `aws sso login --profile {name}` and use that profile.",
        )
    role = _role(name, values)
    source_name = values.get("source_profile", "")
    source = None
    if role is not None and source_name and source_name != name:
        source = _profile(source_name, sections, (*seen, name))
        if source is None:
            raise unavailable(
                f"the AWS profile {name} names the profile {source_name}, which no file has"
            )
    origin = values.get("credential_source", "")
    if origin and origin != "Environment":
        raise unavailable(
            f"the AWS profile {name} has the `credential_source` {origin[:40]}, which is not "
            "supported"
        )
    return AwsProfile(
        name=name,
        key_id=values.get("aws_access_key_id", ""),
        secret=values.get("aws_secret_access_key", ""),
        session_token=values.get("aws_session_token", ""),
        process=values.get("credential_process", ""),
        sso=_sso(name, values, sections),
        role=role,
        source=source,
        uses_environment=bool(origin),
        region=values.get("region", ""),
    )


def _role(name: str, values: Mapping[str, str]) -> AwsRole | None:
    arn = values.get("role_arn", "")
    if not arn:
        return None
    duration = values.get("duration_seconds", "0")
    if not duration.isdecimal() or len(duration) > 6:
        raise unavailable(f"the AWS profile {name} has a `duration_seconds` that is no number")
    return AwsRole(
        arn=arn,
        session_name=values.get("role_session_name", ""),
        external_id=values.get("external_id", ""),
        duration_s=int(duration),
        region=values.get("region", ""),
        token_file=values.get("web_identity_token_file", ""),
    )


def _sso(
    name: str, values: Mapping[str, str], sections: Mapping[str, Mapping[str, str]]
) -> SsoLogin | None:
    account, role = values.get("sso_account_id", ""), values.get("sso_role_name", "")
    session = values.get("sso_session", "")
    if not (account and role):
        return None
    login = values
    if session:
        found = sections.get(f"sso-session {session}")
        if found is None:
            raise unavailable(
                f"the AWS profile {name} names the session {session}, which no file has"
            )
        login = found
    region, key = login.get("sso_region", ""), session or login.get("sso_start_url", "")
    if not region or not key:
        raise unavailable(f"the AWS profile {name} has no `sso_region` or `sso_start_url`")
    return SsoLogin(key, region, account, role)
