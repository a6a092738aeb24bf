"""Sends the tag of each statement that has ended.

The tag of the last statement of a text goes out when its transaction has been committed: PostgreSQL
tells of what fails there before it says that the statement is done (`exec_simple_query`).
"""

from __future__ import annotations

from tidegate.model.results import Page
from tidegate.products.pgwire import messages
from tidegate.products.pgwire.errors import (
    kept_notice,
    partial_notice,
    source_notice,
    truncation_notice,
    warning,
)
from tidegate.products.pgwire.rows import Client
from tidegate.products.pgwire.session_settings import SessionSettings


class Completions:
    """The tags of one session."""

    def __init__(self, client: Client, settings: SessionSettings) -> None:
        self._client = client
        self._settings = settings
        self._keeps = False
        self._kept: list[bytes] = []

    def send(self, tag: str, page: Page | None = None) -> None:
        """Send the tag of what has ended, after what the source noted, and a warning for each
        cut of its result, and for what it lacks."""
        upstream = None if page is None else page.upstream
        for each in () if page is None else page.notices:
            if self._settings.shows(each.severity):
                self._client.write(source_notice(each))
        for cut in () if page is None else page.truncations:
            self._client.write(truncation_notice(cut, upstream))
        if upstream is not None and upstream.skipped:
            self._client.write(partial_notice(upstream.skipped))
        if upstream is not None and upstream.hits:
            self._client.write(kept_notice(upstream))
        if page is not None and page.budget:
            self._client.write(warning("01000", f"{page.budget}."))
        complete = messages.command_complete(tag)
        if self._keeps:
            self._kept.append(complete)
        else:
            self._client.write(complete)

    def keep(self) -> None:
        """Keep the tags that come until `release` or `drop`."""
        self._keeps = True

    def release(self) -> None:
        """Send what was kept."""
        kept = self._kept
        self.drop()
        for each in kept:
            self._client.write(each)

    def drop(self) -> None:
        """Forget what was kept: it has not come about."""
        self._keeps, self._kept = False, []
