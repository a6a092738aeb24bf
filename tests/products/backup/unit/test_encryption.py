"""The form of a backup: whatever is changed in it is found, and nothing is read without the
passphrase."""

from __future__ import annotations

import io

import pytest

from tidegate.errors import TidegateError
from tidegate.products.backup import encryption
from tidegate.products.backup.encryption import DecryptingReader, EncryptingWriter

PASSPHRASE = "correct horse 1"


@pytest.fixture(autouse=True)
def cheap(monkeypatch: pytest.MonkeyPatch) -> None:
    """Scrypt at its real cost takes a third of a second each time."""
    monkeypatch.setattr(encryption, "_COST", 2**4)
    monkeypatch.setattr(encryption, "PART", 64)


def encrypted(content: bytes) -> bytes:
    file = io.BytesIO()
    writer = EncryptingWriter(file, PASSPHRASE)
    for begin in range(0, len(content), 50):
        writer.write(content[begin : begin + 50])
    writer.close()
    return file.getvalue()


def decrypted(text: bytes, passphrase: str = PASSPHRASE) -> bytes:
    return DecryptingReader(io.BytesIO(text), passphrase).read()


@pytest.mark.parametrize("size", [0, 1, 63, 64, 65, 128, 1_000])
def test_what_was_written_is_read(size: int) -> None:
    content = bytes(number % 251 for number in range(size))
    text = encrypted(content)
    assert decrypted(text) == content
    reader = DecryptingReader(io.BytesIO(text), PASSPHRASE)
    parts = []
    while part := reader.read(7):
        parts.append(part)
    assert b"".join(parts) == content
    assert content[:16] not in text or size < 2


def test_another_passphrase_reads_nothing() -> None:
    with pytest.raises(TidegateError, match="passphrase"):
        decrypted(encrypted(b"secret"), "correct horse 2")


def test_every_changed_byte_is_found() -> None:
    text = encrypted(b"x" * 150)
    for place in range(len(text)):
        changed = bytearray(text)
        changed[place] ^= 1
        with pytest.raises(TidegateError):
            decrypted(bytes(changed))


def test_every_cut_is_found() -> None:
    text = encrypted(b"x" * 150)
    for size in range(len(text)):
        with pytest.raises(TidegateError):
            decrypted(text[:size])


def test_parts_that_were_moved_or_left_out_are_found() -> None:
    text = encrypted(b"a" * 64 + b"b" * 64 + b"c" * 64)
    begin = len(text) - 3 * 80
    head, one, two, three = (
        text[:begin], text[begin : begin + 80], text[begin + 80 : begin + 160], text[begin + 160 :]
    )  # fmt: skip
    for parts in ((two, one, three), (one, three), (two, three), (one, one, two, three)):
        with pytest.raises(TidegateError):
            decrypted(head + b"".join(parts))


def test_a_short_passphrase_is_refused() -> None:
    with pytest.raises(TidegateError, match="at least"):
        EncryptingWriter(io.BytesIO(), "short")
