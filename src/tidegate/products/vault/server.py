"""One OpenBao or Vault: the login, what is asked, and its refusals in words that hold no secret."""

from __future__ import annotations

import logging
import os
import threading
import time
from collections.abc import Callable
from functools import lru_cache, partial
from pathlib import Path
from typing import Any, NamedTuple, cast

import hvac
import hvac.exceptions
import requests

from tidegate.config.addresses import check_private_url
from tidegate.errors import TidegateError
from tidegate.products.vault.bounded_session import BoundedSession, TooLargeError
from tidegate.products.vault.references import VaultRefusal
from tidegate.products.vault.settings import VaultSettings
from tidegate.secrets.redaction import redact
from tidegate.secrets.references import resolve_option

GIVE_BACK_S, AWAY_S = 2.0, 30.0
_MOST_TEXT = 200

logger = logging.getLogger("tidegate.vault")


class _Token(NamedTuple):
    """A token, with the time on `time.monotonic` from which on it is made again, and its end; None:
    it has none that is known."""

    text: str
    renew_at: float | None = None
    ends_at: float | None = None


class VaultLease(NamedTuple):
    """What a path gives on lease. It ends with the token that took it, or earlier; `give_back` ends
    it at once."""

    answer: dict[str, Any]
    ends_at: float | None
    give_back: Callable[[], None] | None


class VaultServer:
    """The server of the settings. Used by several threads."""

    def __init__(self, settings: VaultSettings) -> None:
        self._settings = settings
        self._lock = threading.Lock()
        self._token: _Token | None = None
        self._away_until = 0.0
        """Nothing is given back before: it did not answer the last time."""

    @property
    def place(self) -> str:
        """How errors name it."""
        return self._address() or "the vault"

    def read(self, path: str) -> dict[str, Any]:
        """What the API has at a path. Raises: VaultRefusal."""
        token = self._known_token()
        try:
            return self._get(path, token)
        except hvac.exceptions.Forbidden as error:
            if not self._logs_in:
                raise self._refusal(error) from None
        except (hvac.exceptions.VaultError, requests.RequestException) as error:
            raise self._refusal(error) from None
        # A token of a login may have been taken back, or used up.
        return self._asked(path, self._new_token())

    def lease(self, path: str) -> VaultLease:
        """What a path gives on lease. Raises: VaultRefusal."""
        began = time.monotonic()
        token = self._new_token()
        if not self._logs_in:
            token = self._lasting(token)
        answer = self._asked(path, token)
        ends = [] if token.ends_at is None else [token.ends_at]
        lease_s, id = answer.get("lease_duration"), answer.get("lease_id")
        if isinstance(lease_s, int) and lease_s > 0:
            ends.append(began + lease_s)
        give_back = partial(self._give_back, path, token, id) if isinstance(id, str) else None
        return VaultLease(answer, min(ends, default=None), give_back)

    def _give_back(self, path: str, token: _Token, id: str) -> None:
        """End a lease before its time, together with the token if that was made for it alone. Never
        raises."""
        with self._lock:
            if time.monotonic() < self._away_until:
                return
            if self._logs_in and self._token == token:
                self._token = None
        try:
            client = self._client(token.text, GIVE_BACK_S)
            try:
                if self._logs_in:
                    client.auth.token.revoke_self()
                else:
                    client.sys.revoke_lease(id)
            finally:
                client.adapter.close()
        except (hvac.exceptions.VaultError, requests.RequestException, VaultRefusal) as error:
            if isinstance(error, requests.RequestException):
                with self._lock:
                    self._away_until = time.monotonic() + AWAY_S
            why = error.why if isinstance(error, VaultRefusal) else self._refusal(error).why
            logger.info("The lease of %s ends by itself: %s", path, why)

    @property
    def _logs_in(self) -> bool:
        return self._settings.approle is not None or self._settings.kubernetes is not None

    def _asked(self, path: str, token: _Token) -> dict[str, Any]:
        try:
            return self._get(path, token)
        except (hvac.exceptions.VaultError, requests.RequestException) as error:
            raise self._refusal(error) from None

    def _get(self, path: str, token: _Token) -> dict[str, Any]:
        client = self._client(token.text)
        try:
            answer: Any = client.read(path)
        except RecursionError:
            raise VaultRefusal(f"{self.place} gave what is no answer of its API") from None
        finally:
            client.adapter.close()
        if answer is None:
            raise VaultRefusal(f"{self.place} has nothing there")
        return self._table(answer)

    def _table(self, answer: Any) -> dict[str, Any]:
        if not isinstance(answer, dict):
            status = getattr(answer, "status_code", "?")
            raise VaultRefusal(
                f"{self.place} answered with HTTP status {status}",
                "A redirect is not followed: name the server itself in `vault.address`.",
            )
        return cast("dict[str, Any]", answer)

    def _known_token(self) -> _Token:
        """A token that is not half over. Raises: VaultRefusal."""
        with self._lock:
            token = self._token
        if token is not None and (token.renew_at is None or time.monotonic() < token.renew_at):
            return token
        return self._new_token()

    def _new_token(self) -> _Token:
        """The token that the settings name, or one of a new login. Raises: VaultRefusal."""
        settings = self._settings
        if not self._logs_in:
            return _Token(self._given_token())
        client = self._client("")
        answer: Any
        began = time.monotonic()
        try:
            if settings.approle is not None:
                secret = _resolved(settings.approle.secret_id)
                answer = client.auth.approle.login(
                    _resolved(settings.approle.role_id),
                    secret,
                    use_token=False,
                    mount_point=settings.approle.mount,
                )
            else:
                assert settings.kubernetes is not None  # noqa: S101 - for the type checker
                answer = client.auth.kubernetes.login(
                    settings.kubernetes.role,
                    _file(settings.kubernetes.token_file),
                    use_token=False,
                    mount_point=settings.kubernetes.mount,
                )
        except (hvac.exceptions.VaultError, requests.RequestException) as error:
            raise self._refusal(error, "the login at ") from None
        finally:
            client.adapter.close()
        token = _token_of(self._table(answer).get("auth"), began)
        if token is None:
            raise VaultRefusal(f"the login at {self.place} gave no token")
        with self._lock:
            self._token = token
        return token

    def _lasting(self, token: _Token) -> _Token:
        """A token of the settings with its end, renewed if half of its time is over."""
        client = self._client(token.text)
        try:
            began = time.monotonic()
            data = cast("dict[str, Any]", client.auth.token.lookup_self()["data"])
            left_s, whole_s = data.get("ttl") or 0, data.get("creation_ttl") or 0
            if not left_s:
                return token
            if data.get("renewable") and left_s < whole_s / 2:
                began = time.monotonic()
                answer = cast("dict[str, Any]", client.auth.token.renew_self())
                left_s = answer["auth"]["lease_duration"]
            return token._replace(ends_at=began + left_s)
        except (hvac.exceptions.VaultError, requests.RequestException, LookupError, TypeError):
            return token  # a policy may forbid to ask
        finally:
            client.adapter.close()

    def _given_token(self) -> str:
        """Raises: VaultRefusal."""
        if self._settings.token is not None:
            return _resolved(self._settings.token)
        token = os.environ.get("BAO_TOKEN") or os.environ.get("VAULT_TOKEN")
        if not token:
            raise VaultRefusal(
                f"there is no login for {self.place}",
                "Set `vault.token`, `vault.approle` or `vault.kubernetes`, or the variable"
                " VAULT_TOKEN.",
            )
        return token

    def _client(self, token: str, timeout_s: float | None = None) -> Any:
        address = self._address()
        if not address:
            raise VaultRefusal(
                "the settings name no vault", "Set `vault.address`, or the variable VAULT_ADDR."
            )
        try:
            check_private_url(address, "vault.address")
        except TidegateError as error:
            raise VaultRefusal(f"{address[:80]} is no address to trust", error.hint) from None
        session = BoundedSession(timeout_s or self._settings.timeout_s)
        session.trust_env = False  # no proxy, no .netrc: the token is for this server
        session.verify = self._settings.ca_file or _authorities()
        return hvac.Client(
            address,
            token,
            verify=session.verify,
            timeout=cast("int", timeout_s or self._settings.timeout_s),  # any number will do
            session=session,
            allow_redirects=False,
            namespace=self._settings.namespace or _variable("NAMESPACE"),
        )

    def _address(self) -> str:
        return (self._settings.address or _variable("ADDR") or "").rstrip("/")

    def _refusal(self, error: Exception, before: str = "") -> VaultRefusal:
        """The failure of a request, in words. No text of the library is repeated that could name
        more than the server's own error."""
        place = f"{before}{self.place}"
        if isinstance(error, requests.exceptions.SSLError):
            return VaultRefusal(
                f"{place} has a certificate that is not trusted",
                "Set `vault.ca_file` to the authority that signed it.",
            )
        if isinstance(error, TooLargeError):
            return VaultRefusal(f"{place} gave more than any answer of its API has")
        if isinstance(error, requests.exceptions.Timeout):
            return VaultRefusal(f"{place} did not answer within {self._settings.timeout_s:g} s")
        if isinstance(error, requests.RequestException):
            return VaultRefusal(f"{place} cannot be reached")
        if isinstance(error, hvac.exceptions.VaultDown):
            return VaultRefusal(f"{place} is sealed or does not serve")
        if isinstance(error, hvac.exceptions.Forbidden):
            return VaultRefusal(
                f"{place} refused it: permission denied",
                "Check that the token is valid, and that its policy allows to read the path.",
            )
        text = redact(" ".join(str(error.args[0] if error.args else "").split()))[:_MOST_TEXT]
        return VaultRefusal(f"{place} refused it: {text or type(error).__name__}")


@lru_cache(maxsize=16)
def server_of(settings: VaultSettings) -> VaultServer:
    """The server of these settings, with the token that it has given."""
    return VaultServer(settings)


def _token_of(auth: Any, began: float) -> _Token | None:
    if not isinstance(auth, dict):
        return None
    answer = cast("dict[str, Any]", auth)
    text, left_s = answer.get("client_token"), answer.get("lease_duration")
    if not isinstance(text, str) or not text:
        return None
    if not isinstance(left_s, int) or left_s <= 0:
        return _Token(text)
    return _Token(text, began + left_s / 2, began + left_s)


def _resolved(reference: str) -> str:
    """Raises: VaultRefusal, which names the reference's place."""
    try:
        return resolve_option(reference).strip()
    except TidegateError as error:
        raise VaultRefusal(f"its login is not there: {error.message.rstrip('.')}") from None


def _file(path: str) -> str:
    try:
        return Path(path).read_text("utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is not text"
        raise VaultRefusal(
            f"the token of the service account, {path}, is not there: {why}"
        ) from None


def _variable(name: str) -> str | None:
    return os.environ.get(f"BAO_{name}") or os.environ.get(f"VAULT_{name}") or None


def _authorities() -> str | bool:
    """Where the authorities are that the variables name; the library's own else."""
    return _variable("CACERT") or True
