"""Checks of the settings and of each source in them and in the state."""

from __future__ import annotations

import argparse
import asyncio
import os
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import cast

import msgspec

from tidegate.app import App
from tidegate.cli.checks.finding import Finding, failed, fault, note, ok
from tidegate.cli.checks.unused_settings import absent_callers
from tidegate.cli.hooks import command_hooks
from tidegate.cli.local_actor import LocalCaller, ask
from tidegate.cli.settings import config_path, load_for_query
from tidegate.config.loading import is_inline
from tidegate.config.model import Config
from tidegate.config.sections import Section
from tidegate.config.sources import SourceSettings
from tidegate.engines.registry import find, texts_of
from tidegate.errors import Code, TidegateError
from tidegate.gateway.configured_sources import load_sources
from tidegate.model.replies import ConnectionState
from tidegate.model.requests import Connect
from tidegate.model.source_settings import limits_of
from tidegate.model.sources import Source
from tidegate.secrets.readers import entry_of
from tidegate.secrets.references import elsewhere_in, keyring_entries_of
from tidegate.sources.functions import unmatched_functions
from tidegate.sources.report import place_of
from tidegate.sources.risks import account_risks
from tidegate.sources.unfit_rules import unfit_rules
from tidegate.surfaces.registry import check_surfaces

_AT_ONCE = 16


def check_settings(arguments: argparse.Namespace) -> tuple[Config, list[Finding]]:
    """The settings as far as they can be used, and what is wrong with them."""
    path = config_path(arguments)
    bare = Config(state=arguments.state)
    try:
        config = load_for_query(arguments)
        check_surfaces(config)
    except TidegateError as error:
        return bare, [failed("settings", error)]
    if path is None:
        return config, [ok("settings", "no settings file is named; the defaults apply")]
    good: list[SourceSettings] = []
    findings: list[Finding] = []
    for settings in config.sources:
        try:
            load_sources(msgspec.structs.replace(config, sources=(settings,)))
        except TidegateError as error:
            findings.append(failed(f"source {settings.name}", error))
        else:
            good.append(settings)
    named = "the inline settings" if is_inline(path) else path
    if not findings:
        findings = [ok("settings", f"{named} can be used")]
    return msgspec.structs.replace(config, sources=tuple(good)), findings


def needed_extras(config: Config, sources: Sequence[Source]) -> dict[str, list[str]]:
    """For each extra what needs it, in words."""
    needed = extras_of_sources(sources)
    for setting, extras in _extras_of_settings(config):
        for extra in sorted(extras):
            needed.setdefault(extra, []).append(f"the setting `{setting}`")
    if config.state_url or os.environ.get("TIDEGATE_STATE_URL"):
        needed.setdefault("postgres", []).append("the state in PostgreSQL")
    return needed


def extras_of_sources(sources: Iterable[Source]) -> dict[str, list[str]]:
    """For each extra the sources that need it, in words."""
    needed: dict[str, list[str]] = {}
    for source in sources:
        for extra in sorted(_extras_of_source(source)):
            needed.setdefault(extra, []).append(f"the source {source.name}")
    return needed


def _extras_of_source(source: Source) -> set[str]:
    try:
        entry = find(source.url)
    except TidegateError:
        return set()
    needed = _extras_of_secrets(texts_of(source))
    if entry.extra is not None:
        needed.add(entry.extra)
    with suppress(TidegateError):  # what is not there needs nothing
        needed.update(entry.more_extras(source.url))
    return needed


def _extras_of_settings(config: Config) -> Iterator[tuple[str, set[str]]]:
    parts = {name: getattr(config, name) for name in config.__struct_fields__}
    del parts["sources"], parts["sections"]  # the sources' own are known
    for name, part in {**parts, **config.sections}.items():
        needed = _extras_of_secrets(tuple(_texts_in(part)))
        if isinstance(part, Section) and part.needed_extra is not None:
            needed.add(part.needed_extra)
        yield name, needed
    if config.oauth is not None:
        yield "oauth", {"oauth"}


def _extras_of_secrets(texts: Sequence[str]) -> set[str]:
    """What reads the secrets to which the texts refer."""
    entries = [entry_of(kind) for kind, _ in elsewhere_in(texts)]
    kept = {"keyring"} if any(map(keyring_entries_of, texts)) else set[str]()
    return kept | {entry.extra for entry in entries if entry is not None and entry.extra}


def _texts_in(value: object) -> Iterator[str]:
    """The texts in settings, however deep."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, msgspec.Struct):
        for name in value.__struct_fields__:
            yield from _texts_in(getattr(value, name))
    elif isinstance(value, Mapping):
        yield from _texts_in(list(cast("Mapping[object, object]", value).values()))
    elif isinstance(value, (list, tuple)):
        for each in cast("Sequence[object]", value):
            yield from _texts_in(each)


def start_checks(
    app: App, sources: Sequence[Source], patience_s: float
) -> list[tuple[Source, asyncio.Task[list[Finding]]]]:
    """The sources, each with its check, which runs at the same time as the others."""
    places = asyncio.Semaphore(_AT_ONCE)

    async def check(source: Source) -> list[Finding]:
        async with places:
            return await _check_source(app, source, patience_s)

    return [(source, asyncio.create_task(check(source))) for source in sources]


async def _check_source(app: App, source: Source, patience_s: float) -> list[Finding]:
    label = f"source {source.name}"
    if source.access == "none":
        return [note(label, "not tried, because its access is none")]
    began = time.perf_counter()
    try:
        state = await asyncio.wait_for(
            ask(app, "doctor", Connect(), source.name, ConnectionState), patience_s
        )
        took_ms = (time.perf_counter() - began) * 1_000
        rest_s = max(1.0, patience_s - took_ms / 1_000)
        return [
            *_reached(label, source, state, took_ms),
            *await _rules(app, source, rest_s),
            *await _account(app, source, state, rest_s),
            *await _functions(app, source, label),
            *[found for hook in command_hooks() for found in await hook.check_source(app, source)],
        ]
    except TimeoutError:
        return [
            fault(
                label,
                f"{_place(source)} did not answer within {patience_s:g} s",
                "Check that the database is running and reachable",
            )
        ]
    except TidegateError as error:
        where = "" if error.code is Code.SOURCE_URL else f"{_place(source)}: "
        return [fault(label, f"{where}{error.message}", error.hint)]


def _place(source: Source) -> str:
    """Where the source is, without a login."""
    return place_of(source.url).partition("?")[0]


def _reached(
    label: str, source: Source, state: ConnectionState, took_ms: float
) -> Iterator[Finding]:
    server = state.current.server_version if state.current else source.engine
    fences = [f"callers may {'change data' if source.writable else 'only read'}"]
    for count, noun in ((len(source.masks), "mask"), (len(source.filters), "filter")):
        if count:
            fences.append(f"{count} {noun}{'s' if count > 1 else ''}")
    if source.functions:
        count = len(source.functions)
        fences.append(f"reads may call {count} function{'s' if count > 1 else ''} of users")
    if source.run_as is not None:
        fences.append("callers run as roles of their own")
    if source.approval_for != "nothing":
        fences.append(f"a person approves {source.approval_for}")
    fences += [text for _, text in limits_of(source)]
    yield ok(label, f"{server} answers in {took_ms:.0f} ms; {', '.join(fences)}")


async def _functions(app: App, source: Source, label: str) -> list[Finding]:
    """What is wrong with the functions of users that the source lets reads call."""
    remedy = "Correct the name in the source's `functions`, or take it out"
    return [
        fault(label, text, remedy)
        for text in await unmatched_functions(LocalCaller(app, "doctor"), source)
    ]


async def _rules(app: App, source: Source, patience_s: float) -> list[Finding]:
    """Masks and filters that close the source, because the database does not have what they
    name."""
    label = f"source {source.name}"
    try:
        unfit = await asyncio.wait_for(unfit_rules(LocalCaller(app, "doctor"), source), patience_s)
    except TimeoutError:
        return [note(label, "whether its masks and filters fit was not found out in time")]
    where = (
        "the settings file"
        if source.ephemeral
        else f"`tidegate source update {source.name}` with --mask or --filter"
    )
    to_do = f"Correct the rule in {where}: until then nothing of it is read by its callers"
    return [*(fault(label, each, to_do) for each in unfit), *absent_callers(app, source)]


async def _account(
    app: App, source: Source, state: ConnectionState, patience_s: float
) -> list[Finding]:
    """What the account could do if the gate were not there, the worst first."""
    label = f"source {source.name}"
    try:
        risks = await asyncio.wait_for(
            account_risks(LocalCaller(app, "doctor"), source, state), patience_s
        )
    except TimeoutError:
        return [note(label, "what its account could do was not found out in time")]
    if not risks:
        return [ok(label, "its account can do no more than the gate allows")]
    test = f"`tidegate source test {source.name}`"
    more = f" (and {len(risks) - 1} more: {test})" if risks[1:] else ""
    text = f"without the gate: {risks[0].could}{more}"
    remedy = risks[0].remedy
    return [note(label, text, "" if remedy == "none" else f"{remedy}")]
