"""`tidegate source edit`: asks for the settings of a saved source, one after the other.

An empty answer keeps the present value. Masks, filters, roles and options are not asked for and
stay.
"""

from __future__ import annotations

import argparse

from tidegate.cli.source_check import absolute_file_url, can_ask
from tidegate.cli.terminal import ask_line, print_status
from tidegate.config.sources import SourceSettings
from tidegate.engines.registry import engine_of
from tidegate.errors import Code, TidegateError
from tidegate.model.source_settings import SourceSetting, source_settings
from tidegate.model.sources import Source
from tidegate.secrets.url_logins import (
    asks_for_password,
    split_authority,
    with_password,
    without_password,
)

_NO_TAG = "none"


def ask_changes(source: Source, arguments: argparse.Namespace) -> bool:
    """Ask, and put the answers that change something into `arguments`, as `source update` has
    them. Returns whether there is one.

    Raises: TidegateError ARGUMENT_INVALID without a terminal, or at the end of the input.
    """
    if not can_ask():
        raise TidegateError(
            Code.ARGUMENT_INVALID,
            "There is no terminal to ask on.",
            hint=f"Use `tidegate source update {source.name}`, which takes the settings as "
            "options.",
        )
    print_status("Enter keeps what is in brackets; Ctrl-C changes nothing.")
    url = _ask_url(source)
    if asks_for_password(without_password(url)):
        arguments.ask_password = _agrees("Type a new password?")
        if arguments.ask_password:
            url = without_password(url)
    changed = arguments.ask_password
    if url != source.url:
        arguments.url = url
        changed = True
    for setting in source_settings():
        if setting.form == "words":
            present: str = getattr(source, setting.name)
            answer = _ask_choice(setting, present)
            if answer != present:
                setattr(arguments, setting.dest, answer)
                changed = True
    tags = _ask_tags(source.tags)
    if set(tags) != set(source.tags):
        arguments.tag = list(tags)
        arguments.clear = [] if tags else ["tags"]
        changed = True
    return changed


def _ask_url(source: Source) -> str:
    """The URL with the reference to the password that it has now, where it is for the same user at
    the same place."""
    shown = without_password(source.url)
    while True:
        answer = absolute_file_url(ask_line("URL", shown))
        if answer == shown:
            return source.url
        try:
            SourceSettings(source.name, answer)
            engine_of(answer)
        except TidegateError as error:
            print_status(f"{error.message} {error.hint}")
            continue
        before, after = split_authority(source.url), split_authority(answer)
        same = before and after and (before.user, before.places) == (after.user, after.places)
        return (
            with_password(answer, before.password)
            if same and before and before.password
            else answer
        )


def _ask_choice(setting: SourceSetting, present: str) -> str:
    choices = ", ".join(setting.words)
    print_status(f"{setting.name}: {setting.about.meaning}")
    while True:
        answer = ask_line(f"{setting.name} ({choices})", present)
        if answer in setting.words:
            return answer
        print_status(f"There is no {answer[:40]!r} here. Choose from {choices}.")


def _ask_tags(present: tuple[str, ...]) -> tuple[str, ...]:
    answer = ask_line(f"tags, with commas between them; {_NO_TAG} removes them", ", ".join(present))
    if answer == _NO_TAG:
        return ()
    return tuple(dict.fromkeys(tag.strip() for tag in answer.split(",") if tag.strip()))


def _agrees(question: str) -> bool:
    return ask_line(f"{question} (y/n)", "n").lower() in ("y", "yes")
