"""Hashes of passphrases: what they cost those who guess, and whose they are."""

from __future__ import annotations

import hashlib
import subprocess
import sys

import pytest

from tidegate.identity.operator_passphrase import fits, hash_passphrase

PASSPHRASE = "correct horse"
SALT = b"0123456789abcdef"
STARTED = f"""
from tidegate.identity.operator_passphrase import hash_passphrase
print(hash_passphrase({PASSPHRASE!r}, {SALT!r}).hex())
"""


def scrypt(bits: int) -> bytes:
    """A hash of some cost, made without ours."""
    made = hashlib.scrypt(
        PASSPHRASE.encode(), salt=SALT, n=2**bits, r=8, p=1, maxmem=2**26, dklen=32
    )
    return bytes([bits]) + made


def test_a_guess_costs_32_megabytes() -> None:
    """In a process of its own, as the tests make theirs cheap."""
    made = subprocess.run([sys.executable, "-c", STARTED], capture_output=True, check=True)
    assert bytes.fromhex(made.stdout.decode()) == scrypt(15)


@pytest.mark.parametrize("bits", [1, 8, 15])
def test_a_hash_of_another_cost_stays_good(bits: int) -> None:
    assert fits(PASSPHRASE, SALT, scrypt(bits))


def test_a_hash_fits_one_passphrase_and_one_salt() -> None:
    made = hash_passphrase(PASSPHRASE, SALT)
    assert fits(PASSPHRASE, SALT, made)
    assert not fits(PASSPHRASE + " ", SALT, made)
    assert not fits(PASSPHRASE, b"another salt....", made)


@pytest.mark.parametrize("hashed", [b"", b"\x0f", b"\x00", b"\xff" * 33, scrypt(1)[:-1]])
def test_what_is_no_hash_fits_nothing(hashed: bytes) -> None:
    assert not fits(PASSPHRASE, SALT, hashed)
