"""Archives of providers are unpacked whole, verified, and only where they belong."""

from __future__ import annotations

import gzip
import io
from base64 import b64encode
from datetime import timedelta
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric import ec, ed25519

from products.cloud.support.signed_documents import NOW, archive, certificate, sign, signed
from tidegate.errors import Code, TidegateError
from tidegate.products.cloud.documents.archive import unpack_provider
from tidegate.products.cloud.documents.signatures import Verifier


def test_a_signed_archive_is_unpacked_and_replaces_what_was_there(tmp_path: Path) -> None:
    verifier = Verifier(certificate())
    first = archive(signed(provider=b"name: old", services__a=b"x"))
    unpack_provider(first, "shop", "v1.0.0", tmp_path, verifier)
    second = archive(signed(provider=b"name: new"))
    directory = unpack_provider(second, "shop", "v1.0.0", tmp_path, verifier)
    assert directory == tmp_path / "shop" / "v1.0.0"
    assert (directory / "provider.yaml").read_bytes() == b"name: new"
    assert not (directory / "services").exists()
    assert [each.name for each in (tmp_path / "shop").iterdir()] == ["v1.0.0"]


@pytest.mark.parametrize(
    ("files", "problem"),
    [
        ({"v1.0.0/services/a.yaml": b""}, "it has no provider.yaml"),
        ({"v2.0.0/provider.yaml": b""}, "`v2.0.0/provider.yaml`, which is no provider document"),
        ({"v1.0.0/../../evil.yaml": b""}, "which is no provider document"),
        ({"/etc/provider.yaml": b""}, "which is no provider document"),
        ({"v1.0.0/services/../../x.yaml": b""}, "which is no provider document"),
        ({"v1.0.0/run.sh": b""}, "which is no provider document"),
    ],
)
def test_an_archive_with_other_files_writes_nothing(
    tmp_path: Path, files: dict[str, bytes], problem: str
) -> None:
    with pytest.raises(TidegateError, match=problem) as caught:
        unpack_provider(archive(files), "shop", "v1.0.0", tmp_path, None)
    assert caught.value.code is Code.DOCUMENT_UNTRUSTED
    assert not list(tmp_path.iterdir())


def test_what_a_desktop_leaves_in_an_archive_is_left_out_and_all_documents_are_there(
    tmp_path: Path,
) -> None:
    files = {
        "v1.0.0/provider.yaml": b"name: shop",
        "v1.0.0/.DS_Store": b"x",
        "v1.0.0/services/._a.yaml": b"x",
        "__MACOSX/v1.0.0/._provider.yaml": b"x",
        "._v1.0.0": b"x",
        "v1.0.0/services/a.yaml": b"a",
        "v1.0.0/services/a/b.yaml": b"ab",
        "v1.0.0/resources/c.yaml": b"c",
    }
    directory = unpack_provider(archive(files), "shop", "v1.0.0", tmp_path, None)
    written = {str(each.relative_to(directory)) for each in directory.rglob("*") if each.is_file()}
    assert written == {"provider.yaml", "services/a.yaml", "services/a/b.yaml", "resources/c.yaml"}


def test_a_link_in_an_archive_is_refused(tmp_path: Path) -> None:
    evil = archive({"v1.0.0/provider.yaml": b""}, **{"v1.0.0/services/a.yaml": "/etc/passwd"})
    with pytest.raises(TidegateError, match="which is no provider document"):
        unpack_provider(evil, "shop", "v1.0.0", tmp_path, None)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    "content",
    [b"", b"<html>", gzip.compress(b"no tar" * 200), archive({"v1.0.0/a": b"x"}).read()[:40]],
    ids=["nothing", "a page", "no tar", "cut off"],
)
def test_what_is_no_archive_is_refused(tmp_path: Path, content: bytes) -> None:
    with pytest.raises(TidegateError) as caught:
        unpack_provider(io.BytesIO(content), "shop", "v1.0.0", tmp_path, None)
    assert caught.value.code is Code.DOCUMENT_UNTRUSTED


def test_a_document_without_its_signature_is_refused(tmp_path: Path) -> None:
    files = signed(provider=b"name: shop", services__a=b"x")
    del files["v1.0.0/services/a.yaml.sig"]
    with pytest.raises(TidegateError, match=r"services/a\.yaml has no signature"):
        unpack_provider(archive(files), "shop", "v1.0.0", tmp_path, Verifier(certificate()))
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("signature", "problem"),
    [
        (sign(b"other"), "not that of this content"),
        (sign(b"content", key=ed25519.Ed25519PrivateKey.generate()), "not that of this content"),
        (sign(b"content", NOW - timedelta(days=1_500)), "signed at 2022-04-23"),
        (sign(b"content", NOW + timedelta(days=11)), "the certificate is valid from"),
        (b"***", "not base64"),
        (b64encode(b"short"), "another form"),
        (b"", "another form"),
    ],
)
def test_a_signature_that_does_not_hold_is_refused(signature: bytes, problem: str) -> None:
    with pytest.raises(TidegateError, match=problem) as caught:
        Verifier(certificate()).verify(b"content", signature, "shop provider.yaml")
    assert caught.value.code is Code.DOCUMENT_UNTRUSTED
    assert "shop provider.yaml" in caught.value.message


def test_the_time_of_a_signature_is_read_as_go_writes_it() -> None:
    assert Verifier(certificate()).verify(b"content", sign(b"content") + b"\n", "a") == NOW


@pytest.mark.parametrize(
    "pem", [b"", b"no certificate", certificate(ec.generate_private_key(ec.SECP256R1()))]
)
def test_a_certificate_of_another_kind_is_refused(pem: bytes) -> None:
    with pytest.raises(TidegateError) as caught:
        Verifier(pem)
    assert caught.value.code is Code.DOCUMENT_UNTRUSTED
