"""Settings that nothing uses: a misspelt name leaves a login or a rule without effect."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tidegate.app import App
from tidegate.cli.checks.finding import Finding, note
from tidegate.config.model import Config
from tidegate.identity.bridge_tokens import NAME as BRIDGE
from tidegate.identity.builtin_actors import ANONYMOUS, cli, stdio
from tidegate.model.source_settings import Mask, RowFilter
from tidegate.model.sources import Source


def unused_tags(config: Config, sources: Sequence[Source]) -> Iterator[Finding]:
    """The rules for all sources of a tag that no source has."""
    known = {tag for source in sources for tag in source.tags}
    for rule in (*config.masks, *config.filters):
        if rule.tag is not None and rule.tag not in known:
            what = (
                f"mask `{rule.column}`" if isinstance(rule, Mask) else f"filter on `{rule.table}`"
            )
            text = f"the {what} is for sources with the tag `{rule.tag}`, and none has it"
            yield note("settings", text, "Correct the tag, or give it to the source")


def absent_callers(app: App, source: Source) -> Iterator[Finding]:
    """The callers that rules name and that do not exist: a misspelt name leaves a rule without
    effect. Names that an authorization server gives are not known here."""
    if app.config.oauth is not None:
        return
    tokens = {each.name for each in app.tokens.list() if each.revoked_at is None}
    tokens |= {cli().name, stdio().name, ANONYMOUS.name, BRIDGE}
    operators = {each.name.casefold() for each in app.operators.list()}
    for rule in (*source.masks, *source.filters):
        absent = [
            *(f"the token `{n}`" for n in (*rule.tokens, *rule.except_tokens) if n not in tokens),
            *(
                f"the operator `{name}`"
                for name in (*rule.operators, *rule.except_operators)
                if name.casefold() not in operators
            ),
        ]
        for name in dict.fromkeys(absent):
            text = f"the {_named(rule)} names {name}, which is not there"
            yield note(
                f"source {source.name}", text, "Correct the name, or make the token or operator"
            )


def _named(rule: Mask | RowFilter) -> str:
    return f"mask `{rule.column}`" if isinstance(rule, Mask) else f"filter on `{rule.table}`"
