"""Secrets that take time to read, at hand for what follows: those of the keyring, of programs and
of servers. Nothing is imported or waited for where a text refers to none of them."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import AbstractAsyncContextManager, asynccontextmanager, nullcontext

from tidegate.secrets.readers import read_elsewhere
from tidegate.secrets.references import at_hand, elsewhere_in, keyring_entries_of, resolve_option


def secrets_of(*texts: str) -> AbstractAsyncContextManager[None]:
    """While the block runs, `resolve` has the secrets that the texts refer to.

    Raises, when it is entered: TidegateError KEYRING_FAILED, SECRET_UNAVAILABLE, ENGINE_MISSING.
    """
    if not any("${" in text for text in texts):
        return nullcontext()
    return _at_hand(texts)


@asynccontextmanager
async def _at_hand(texts: tuple[str, ...]) -> AsyncGenerator[None]:
    elsewhere = elsewhere_in(texts)
    with at_hand(await read_elsewhere(elsewhere) if elsewhere else {}):
        if not any(map(keyring_entries_of, texts)):
            yield
            return
        from tidegate.config.system_keyring import keyring_secrets

        async with keyring_secrets(*texts):
            yield


async def read_option(text: str) -> str:
    """As `resolve_option`, while the event loop goes on. Raises: as `secrets_of`, SOURCE_URL."""
    async with secrets_of(text):
        return resolve_option(text)
