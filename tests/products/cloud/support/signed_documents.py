"""Provider documents that are signed, and their archives; the certificate is made here."""

from __future__ import annotations

import io
import tarfile
from base64 import b64encode
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed25519
from cryptography.x509.oid import NameOID

NOW = datetime(2026, 6, 1, 12, 30, 15, 123_456, tzinfo=UTC)
KEY = ed25519.Ed25519PrivateKey.generate()


def certificate(key: ed25519.Ed25519PrivateKey | ec.EllipticCurvePrivateKey = KEY) -> bytes:
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "tests")])
    algorithm = None if isinstance(key, ed25519.Ed25519PrivateKey) else hashes.SHA256()
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(NOW - timedelta(days=10))
        .not_valid_after(NOW + timedelta(days=10))
        .sign(key, algorithm)
    )
    return made.public_bytes(serialization.Encoding.PEM)


def sign(content: bytes, at: datetime = NOW, key: ed25519.Ed25519PrivateKey = KEY) -> bytes:
    since = at - datetime(1, 1, 1, tzinfo=UTC)
    seconds = since.days * 86_400 + since.seconds
    time = b"\x01" + seconds.to_bytes(8, "big") + (since.microseconds * 1_000).to_bytes(4, "big")
    time += b"\xff\xff"
    return b64encode(time + key.sign(content + time))


def archive(files: Mapping[str, bytes], **odd: str) -> io.BytesIO:
    """A `.tgz` of `files`; `odd` are links by name."""
    target = io.BytesIO()
    with tarfile.open(fileobj=target, mode="w:gz") as tar:
        for name, content in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(content)
            tar.addfile(member, io.BytesIO(content))
        for name, place in odd.items():
            member = tarfile.TarInfo(name)
            member.type, member.linkname = tarfile.SYMTYPE, place
            tar.addfile(member)
    target.seek(0)
    return target


def signed(**files: bytes) -> dict[str, bytes]:
    paths = {name.replace("__", "/") + ".yaml": content for name, content in files.items()}
    signatures = {f"{path}.sig": sign(content) for path, content in paths.items()}
    return {f"v1.0.0/{path}": content for path, content in (paths | signatures).items()}
