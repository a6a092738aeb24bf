"""A keyring that does not answer: whoever asked gets an error in time, and the event loop runs."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Generator

import keyring
import pytest
from keyring.backend import KeyringBackend

from support.eventually import HANG_S
from tidegate.config import system_keyring
from tidegate.config.system_keyring import keyring_secrets, read_secret, save_secret
from tidegate.errors import Code, TidegateError
from tidegate.secrets.readers import Reading
from tidegate.secrets.references import at_hand, resolve


class WaitingKeyring(KeyringBackend):
    """A keyring that waits for a person before it answers, and holds what it is given."""

    priority = 1  # pyright: ignore[reportAssignmentType]

    def __init__(self) -> None:
        super().__init__()
        self.unlocked = threading.Event()
        self.held: dict[tuple[str, str], str] = {}

    def get_password(self, service: str, username: str) -> str | None:
        assert self.unlocked.wait(HANG_S)
        return self.held.get((service, username))

    def set_password(self, service: str, username: str, password: str) -> None:
        self.held[service, username] = password


class ForgetfulKeyring(WaitingKeyring):
    """A keyring that takes everything and keeps nothing."""

    def set_password(self, service: str, username: str, password: str) -> None:
        pass


@pytest.fixture
def waiting() -> Generator[WaitingKeyring]:
    before = keyring.get_keyring()
    backend = WaitingKeyring()
    keyring.set_keyring(backend)
    yield backend
    backend.unlocked.set()
    keyring.set_keyring(before)


def test_a_keyring_that_waits_for_a_person_is_an_error_in_time(waiting: WaitingKeyring) -> None:
    for _ in range(2):  # the second finds the first one still waiting
        with pytest.raises(TidegateError) as raised:
            read_secret("shop", within_s=0.1)
        assert raised.value.code is Code.KEYRING_FAILED
        assert "did not answer" in raised.value.message


async def test_the_event_loop_runs_while_the_keyring_waits(
    waiting: WaitingKeyring, monkeypatch: pytest.MonkeyPatch
) -> None:
    waiting.held["tidegate", "shop"] = "a b"

    async def opened() -> str:
        async with keyring_secrets("postgresql://me:${KEYRING:shop}@db/x"):
            return resolve("postgresql://me:${KEYRING:shop}@db/x")

    task = asyncio.create_task(opened())
    for _ in range(100):
        await asyncio.sleep(0)
    assert not task.done()
    waiting.unlocked.set()
    assert await task == "postgresql://me:a%20b@db/x"
    with pytest.raises(TidegateError, match="cannot be used here"):
        resolve("postgresql://me:${KEYRING:shop}@db/x")


def test_a_keyring_that_keeps_nothing_is_found_out(waiting: WaitingKeyring) -> None:
    forgetful = ForgetfulKeyring()
    forgetful.unlocked.set()
    keyring.set_keyring(forgetful)
    with pytest.raises(TidegateError, match="did not keep"):
        save_secret("shop", "x")
    assert system_keyring.keyring_title()


def test_a_secret_that_was_at_hand_is_gone_after_the_block() -> None:
    shop = ("KEYRING", "shop")
    with at_hand({shop: Reading("s3cret")}):
        with at_hand({shop: Reading("other")}):
            assert resolve("postgresql://u:${KEYRING:shop}@h/d") == "postgresql://u:other@h/d"
        assert resolve("postgresql://u:${KEYRING:shop}@h/d") == "postgresql://u:s3cret@h/d"
    with pytest.raises(TidegateError):
        resolve("postgresql://u:${KEYRING:shop}@h/d")
