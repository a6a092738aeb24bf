"""Whether an actor's allowlist admits a source. The one place that reads it."""

from __future__ import annotations

from tidegate.model.actors import Actor
from tidegate.model.sources import Source


def admits(actor: Actor, source: Source) -> bool:
    """True if the source is listed by name or carries one of the listed tags, or there is no list.

    Says nothing of scope, nor of what the source itself admits.
    """
    names, tags = actor.sources, actor.tags
    if names is None and tags is None:
        return True
    if names is not None and source.name in names:
        return True
    return tags is not None and not tags.isdisjoint(source.tags)
