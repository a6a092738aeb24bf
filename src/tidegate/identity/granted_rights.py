"""Whether anyone has been given rights on a state: before that, its first user needs no consent."""

from __future__ import annotations

from tidegate.identity.tokens import Tokens
from tidegate.store.api import State

_RIGHTS = "rights.given"
_FOREVER = 2.0**52
"""Unix seconds that never come."""


class GrantedRights:
    """What is known of the state on that."""

    def __init__(self, state: State, tokens: Tokens) -> None:
        self._state = state
        self._tokens = tokens

    @property
    def exist(self) -> bool:
        """Whether tokens or sources are or were there, or a server has started on the state.

        Raises: TidegateError STATE_FAILED.
        """
        return self._is_noted() or bool(self._tokens.list()) or bool(self._state.sources.list())

    def note(self) -> None:
        """Have them exist from now on. Every start calls it; the first writes.

        Raises: TidegateError STATE_FAILED.
        """
        if not self._is_noted():
            self._state.shared.lock_sealed(_RIGHTS, _FOREVER, self._state.now())

    def _is_noted(self) -> bool:
        return self._state.shared.sealed_until(_RIGHTS, self._state.now()) is not None
