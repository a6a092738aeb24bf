"""The login of a source, read again where it is refused: a password that its URL refers to may have
been changed since the source was opened.

A server locks accounts after a few failures. So the reference is read once for each refusal, and
another login is tried only where it gives something else than what was refused.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Generic, TypeVar

from tidegate.engines.common.errors import ACCOUNT, LOGIN
from tidegate.engines.registry import secrets_of
from tidegate.errors import TidegateError
from tidegate.model.sources import Source

TargetT = TypeVar("TargetT")
OpenedT = TypeVar("OpenedT")


class RenewedLogin(Generic[TargetT]):
    """What a source connects to. `target` holds the secrets as they were read last."""

    def __init__(self, source: Source, read: Callable[[Source], TargetT]) -> None:
        """Reads the references of the source. Raises: as `read`."""
        self._source = source
        self._read = read
        self.target = read(source)

    async def open(self, connect: Callable[[TargetT], Awaitable[OpenedT]]) -> OpenedT:
        """What `connect` gives for the target, or for what the references say now if the server
        refuses the login. Raises: as `connect`."""
        tried = self.target
        try:
            return await connect(tried)
        except TidegateError as error:
            if error.details.get("cause") not in (ACCOUNT, LOGIN) or not await self._renew(tried):
                raise
        return await connect(self.target)

    async def _renew(self, tried: TargetT) -> bool:
        """Whether there is another target than the one that was tried."""
        if self.target == tried:  # else another connection has read it meanwhile
            try:
                async with secrets_of(self._source):
                    self.target = self._read(self._source)
            except TidegateError:
                return False  # the refusal says more than that a file is gone
        return self.target != tried
