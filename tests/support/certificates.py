"""Certificates for the tests, made on the spot and good for a day."""

from __future__ import annotations

import datetime
import ipaddress
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

_PEM = serialization.Encoding.PEM


class Authority:
    """Signs certificates; its own is in `file`. `kept` names the files of one that exists."""

    def __init__(self, folder: Path, name: str, kept: tuple[Path, Path] | None = None) -> None:
        self._folder = folder
        if kept is not None:
            self.file, key_file = kept
            self._certificate = x509.load_pem_x509_certificate(self.file.read_bytes())
            key = serialization.load_pem_private_key(key_file.read_bytes(), None)
            assert isinstance(key, ec.EllipticCurvePrivateKey)
            self._key = key
            return
        self._key = ec.generate_private_key(ec.SECP256R1())
        subject = _name(name)
        self._certificate = (
            _begun(subject, subject, self._key)
            .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
            .sign(self._key, hashes.SHA256())
        )
        self.file = folder / f"{name}.pem"
        self.file.write_bytes(self._certificate.public_bytes(_PEM))

    def sign(self, name: str, *hosts: str) -> tuple[Path, Path]:
        """A certificate for `name`, good for the hosts; its file and its key's."""
        key = ec.generate_private_key(ec.SECP256R1())
        builder = _begun(_name(name), self._certificate.subject, key)
        if hosts:
            names = x509.SubjectAlternativeName([_host(host) for host in hosts])
            builder = builder.add_extension(names, critical=False)
        certificate = builder.sign(self._key, hashes.SHA256())
        file, key_file = self._folder / f"{name}.crt", self._folder / f"{name}.key"
        file.write_bytes(certificate.public_bytes(_PEM))
        form, cipher = serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        key_file.touch(0o600)
        key_file.write_bytes(key.private_bytes(_PEM, form, cipher))
        return file, key_file


def _name(text: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, text)])


def _host(text: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(text))
    except ValueError:
        return x509.DNSName(text)


def _begun(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePrivateKey
) -> x509.CertificateBuilder:
    now = datetime.datetime.now(datetime.UTC)
    return (
        x509.CertificateBuilder(issuer, subject, key.public_key(), x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=1))
    )
