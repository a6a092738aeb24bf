"""Settings that are read again while a gate serves: what takes effect at once, and what waits.

A call looks first whether the settings file has changed, so it runs by the settings of its moment.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING

import msgspec

from tidegate.config.model import Config
from tidegate.config.reload import ConfigWatcher, PendingRestart
from tidegate.errors import TidegateError
from tidegate.gateway.configured_sources import load_sources
from tidegate.gateway.source_connections import ConfiguredSources

if TYPE_CHECKING:
    from tidegate.app import App


def follow_settings(
    app: App, following: ConfigWatcher, load: Callable[[], Config], tell: Callable[[str], None]
) -> Callable[[], None]:
    """Check on every call whether the settings file has changed, and apply what `load` gives then.
    `tell` gets lines for the server's log: settings that cannot be used, and those that take effect
    when the server restarts.

    Returns a function that reads the settings now, whether they have changed or not.
    """
    awaited = PendingRestart(app.config)
    wait_s = app.config.approvals.wait_s
    reported = ""

    def read() -> tuple[Config, ConfiguredSources]:
        try:
            config = load()
            return config, load_sources(config, app.directory)
        except TidegateError as error:
            nonlocal reported
            if error.message != reported:
                reported = error.message
                tell(f"the settings have changed and cannot be used: {reported}")
            raise

    def look() -> ConfiguredSources | None:
        found = following.look(read)
        if found is None:
            return None
        config, made = found
        nonlocal reported
        reported = ""
        try:
            app.server_audit.record_settings_change(config)
        except TidegateError:
            following.forget()
            raise
        app.approvals.settings = msgspec.structs.replace(config.approvals, wait_s=wait_s)
        app.undo_log.settings = config.undo
        app.bridge_tokens.settings = config.bridge
        for listener in app.settings_listeners:
            listener(config)
        if unreported := awaited.unreported(config):
            tell(f"these changes take effect when the server restarts: {', '.join(unreported)}")
        return made

    def reread() -> None:
        following.forget()
        with suppress(TidegateError):  # which `read` has reported
            app.connections.sources()

    def refresh() -> None:
        if following.has_changed:
            with suppress(TidegateError):  # the call itself is refused
                app.connections.sources()

    app.connections.watch_settings(look)
    app.refresh_settings = refresh
    return reread
