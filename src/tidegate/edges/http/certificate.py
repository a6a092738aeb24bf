"""The server's certificate for HTTPS, which can be exchanged while connections are open.

Each handshake takes the certificate that was loaded last; open connections keep theirs. A pair of
files that cannot be used changes nothing.
"""

from __future__ import annotations

import ssl
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

from cryptography import x509
from cryptography.hazmat.primitives.hashes import MD5, SHA1, SHA256

from tidegate.config.errors import invalid
from tidegate.config.model import TlsSettings
from tidegate.system.file_rights import may_all_read, may_all_write


class ServerCertificate:
    """The certificate and key of `settings`, for a server that speaks TLS 1.2 and 1.3.

    `context` is what a listener gets. `protocols` are those of ALPN. With `client_ca`, a PEM file,
    a client must have a certificate of that authority.

    Raises: TidegateError CONFIG_INVALID that names the file and what is wrong with it.
    """

    def __init__(
        self,
        settings: TlsSettings,
        *,
        protocols: Sequence[str] = ("http/1.1",),
        client_ca: str | None = None,
    ) -> None:
        self._settings = settings
        self._protocols = list(protocols)
        self._client_ca = client_ca
        self._current, self.expires_at = self._load()
        plain_http = "http/1.1" in self._protocols
        self.context = (_Context if plain_http else ssl.SSLContext)(ssl.PROTOCOL_TLS_SERVER)
        self._set_up(self.context)
        self.context.sni_callback = self._choose

    def reload(self) -> None:
        """Take what the files hold now for further connections. Raises: TidegateError
        CONFIG_INVALID; the certificate stays as it was then."""
        self._current, self.expires_at = self._load()

    def _load(self) -> tuple[ssl.SSLContext, datetime]:
        context, expires_at = _load(self._settings)
        self._set_up(context)
        return context, expires_at

    def _set_up(self, context: ssl.SSLContext) -> None:
        """What must hold of the context that takes a connection, and of the one that it gets."""
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        context.set_alpn_protocols(self._protocols)
        if self._client_ca is None:
            return
        path = Path(self._client_ca)
        _certificate(_read(path, "authority of client certificates"), path)
        context.verify_mode = ssl.CERT_REQUIRED
        context.load_verify_locations(path)

    def end_point(self, connection: ssl.SSLObject) -> bytes:
        """What a client's login can be bound to (`tls-server-end-point` of RFC 5929): the hash of
        the certificate that the connection got; empty if its signature names no hash function."""
        context = connection.context
        return context.end_point if isinstance(context, _LoadedContext) else b""

    def _choose(
        self, connection: ssl.SSLObject | ssl.SSLSocket, name: str | None, initial: ssl.SSLContext
    ) -> None:
        connection.context = self._current


_TEXT = b"This port speaks HTTPS. Write https:// in the address.\n"
_WITHOUT_TLS = (
    b"HTTP/1.1 400 Bad Request\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Length: %d\r\n"
    b"Connection: close\r\n\r\n%b" % (len(_TEXT), _TEXT)
)


class _Handshake(ssl.SSLObject):
    """The server's end of one connection. A client that sends plain HTTP gets a plain answer, once,
    and nothing that it sends is read; the time for a handshake ends the connection."""

    outgoing: ssl.MemoryBIO | None = None
    _is_plain = False

    def do_handshake(self) -> None:
        if self._is_plain:
            raise ssl.SSLWantReadError
        try:
            super().do_handshake()
        except ssl.SSLError as error:
            if error.reason != "HTTP_REQUEST" or self.outgoing is None:
                raise
            self._is_plain = True
            self.outgoing.write(_WITHOUT_TLS)
            raise ssl.SSLWantReadError from None


class _Context(ssl.SSLContext):
    sslobject_class = _Handshake

    def wrap_bio(
        self, incoming: ssl.MemoryBIO, outgoing: ssl.MemoryBIO, *rest: Any, **named: Any
    ) -> ssl.SSLObject:
        found = super().wrap_bio(incoming, outgoing, *rest, **named)
        if isinstance(found, _Handshake):
            found.outgoing = outgoing
        return found


class _LoadedContext(ssl.SSLContext):
    """A context with a certificate."""

    end_point = b""


def _end_point(certificate: x509.Certificate) -> bytes:
    function = certificate.signature_hash_algorithm
    if function is None:
        return b""
    return certificate.fingerprint(SHA256() if isinstance(function, (MD5, SHA1)) else function)


def _load(settings: TlsSettings) -> tuple[ssl.SSLContext, datetime]:
    """A context with the pair of files, and when the certificate ends (UTC)."""
    cert, key = Path(settings.cert), Path(settings.key)
    certificate = _certificate(_read(cert, "certificate"), cert)
    _read(key, "key")
    status = key.stat()
    if may_all_read(status) or may_all_write(status):
        raise invalid(
            f"Every account can read or write the key `{key}`.", hint=f"Run `chmod o-rwx {key}`."
        )
    context = _LoadedContext(ssl.PROTOCOL_TLS_SERVER)
    context.end_point = _end_point(certificate)
    try:
        context.load_cert_chain(cert, key, password=_refuse_encrypted)
    except _EncryptedKeyError:
        raise invalid(
            f"The key `{key}` is encrypted.", hint="Use a key without a passphrase."
        ) from None
    except ssl.SSLError as error:
        if error.reason == "KEY_VALUES_MISMATCH":
            raise invalid(
                f"The key `{key}` does not belong to the certificate `{cert}`.",
                hint="Name the key with which the certificate was requested.",
            ) from None
        raise invalid(
            f"The key `{key}` cannot be used with the certificate `{cert}`.",
            hint="Both must be PEM files; the server's own certificate is the first.",
        ) from None
    return context, certificate.not_valid_after_utc


def _read(path: Path, what: str) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise invalid(
            f"Cannot read the {what} `{path}`: {error.strerror}.",
            hint="Check the path and who may read it.",
        ) from None


def _certificate(content: bytes, path: Path) -> x509.Certificate:
    try:
        return x509.load_pem_x509_certificate(content)
    except ValueError:
        raise invalid(
            f"`{path}` is not a certificate in PEM format.",
            hint="It begins with `-----BEGIN CERTIFICATE-----`; the chain follows it.",
        ) from None


class _EncryptedKeyError(Exception):
    """The key needs a passphrase, for which a server must not wait."""


def _refuse_encrypted() -> str:
    raise _EncryptedKeyError
