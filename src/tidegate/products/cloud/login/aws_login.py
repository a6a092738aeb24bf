"""Gets the credential of a login at AWS: keys, profiles, roles, single sign-on, programs."""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable, Mapping
from datetime import UTC, datetime

from tidegate.errors import TidegateError
from tidegate.paths import expand
from tidegate.products.cloud.auth_settings import AuthSettings
from tidegate.products.cloud.documents.secret_values import (
    credential,
    file,
    output,
    unavailable,
    variable,
)
from tidegate.products.cloud.login import token_requests
from tidegate.products.cloud.login.aws_profiles import AwsProfile, AwsRole, read_profile
from tidegate.products.cloud.login.aws_signature import AwsCredential
from tidegate.products.cloud.login.token_cache import TokenCache
from tidegate.products.cloud.login.token_requests import Token


class AwsLogin:
    """Credentials for AWS. Those that are got with another one are kept in `tokens`."""

    def __init__(
        self, tokens: TokenCache, environment: Mapping[str, str], clock: Callable[[], float]
    ) -> None:
        self._tokens = tokens
        self._environment = environment
        self._clock = clock

    async def credential(self, auth: AuthSettings) -> tuple[AwsCredential, str]:
        """The credential of a login, and in words where it came from.

        Raises: TidegateError CREDENTIAL_UNAVAILABLE; as `TokenCache.token`.
        """
        found, origin = await self._base(auth)
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

    async def _base(self, auth: AuthSettings) -> tuple[AwsCredential, str]:
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
            token = await self._tokens.token(
                ("sso", repr(login), access),
                lambda: token_requests.sso_role(login, access),
                f"{origin} (single sign-on; log in with `aws sso login --profile {profile.name}`)",
            )
            return _aws(token)
        if profile.process:
            return await self._of_process(profile, origin)
        raise unavailable(f"{origin} holds no credential")

    async def _of_process(self, profile: AwsProfile, origin: str) -> AwsCredential:
        inputs = ("process", profile.name, profile.process)
        kept = self._tokens.find(inputs)
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
            self._tokens.keep(inputs, kept)
        return _aws(kept)

    def _sso_token(self, profile: str, cache_file: str) -> str:
        home = expand(self._environment.get("HOME") or "~")
        path = home / ".aws" / "sso" / "cache" / cache_file
        again = f"Run `aws sso login --profile {profile}`."
        try:
            entries = json.loads(file(str(path)).value)
            token, ends = entries["accessToken"], entries["expiresAt"]
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
        found = await self._tokens.token(
            ("role", repr(role), *parts),
            lambda: token_requests.assumed_role(
                role, base, token, datetime.fromtimestamp(self._clock(), UTC)
            ),
            f"{origin} for the role {role.arn}",
        )
        return _aws(found)


def _aws(token: Token) -> AwsCredential:
    assert isinstance(token.value, AwsCredential)  # noqa: S101 - the request's kind decides
    return token.value
