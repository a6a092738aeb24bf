"""The first source of a state, from a URL in a variable that a desktop client sets.

A person who types a URL into a client's form agrees to that database being read, as with `setup`.
It admits nothing new: only a state that never held rights takes it, as it takes the first source
of a script (decision 22); it is for reading; the same function saves and records it.
"""

from __future__ import annotations

import argparse
import os
from functools import partial

from tidegate.app import App
from tidegate.cli.commands.source import save_new
from tidegate.cli.local_actor import with_app
from tidegate.cli.new_source import (
    check_whole,
    free_name,
    save_source,
    source_of,
    url_as_given,
)
from tidegate.cli.settings import load_for_state
from tidegate.cli.source_check import require_success, try_source
from tidegate.cli.terminal import print_status
from tidegate.config.sources import SourceSettings
from tidegate.errors import Code, TidegateError
from tidegate.gateway.configured_sources import source_from_settings
from tidegate.model.sources import Source
from tidegate.secrets.url_logins import split_password

_UNFILLED = "${"
"""What a form leaves where nothing was typed: the reference itself."""


def add_first_source(variable: str, arguments: argparse.Namespace) -> None:
    """Save the database whose URL is in the variable, for reading, unless the state has it already
    or has ever held rights; then say where a person adds it. The variable is removed, so that no
    process that is started later has it.

    Raises: TidegateError if it cannot be reached; then the state is as before, and the next start
    tries again.
    """
    given = os.environ.pop(variable, "").strip()
    if not given or given.startswith(_UNFILLED):
        return
    url, password = split_password(url_as_given(given))
    if password is not None:
        check_whole(url)
    config = load_for_state(arguments)
    saved, is_new = with_app(App.open(config), _look)
    if source_of(url, saved) is not None:
        return
    if not is_new:
        _name_console(variable)
        return
    settings = SourceSettings(free_name(url, ()), url, access="read")
    source_from_settings(settings)
    tried = try_source(config, settings, "bridge", password)
    require_success(tried, anyway=None, undone="Nothing was saved.", ways=variable)
    asked = argparse.Namespace(**vars(arguments), passphrase_file=None, password_stdin=False)
    try:
        save_source(config, tried, "file", partial(save_new, arguments=asked))
    except TidegateError as error:
        if error.code is not Code.OPERATOR_CONSENT:
            raise
        _name_console(variable)  # another process was first


async def _look(app: App) -> tuple[tuple[Source, ...], bool]:
    """The saved sources, and whether the state never held rights and asks for no passphrase."""
    is_new = not app.granted_rights.exist and not app.operator_passphrase.is_set
    return app.state.sources.list(), is_new


def _name_console(variable: str) -> None:
    print_status(
        f"note: the database in {variable} was not added: this state has held rights before, so a "
        "person adds it. `tidegate console` opens the console, which says how."
    )
