"""The revisions of the protocol, as data: what each has, and which one a client gets.

Sources: the published schema of each revision and the pages `basic/lifecycle` and
`basic/versioning` of its specification.
"""

from __future__ import annotations

import msgspec

from tidegate.protocol.model import RevisionPolicy


class Revision(msgspec.Struct, frozen=True):
    """What one revision has. `modern` is the stateless era that began with 2026-07-28."""

    name: str
    modern: bool = False
    batches: bool = False
    annotations: bool = True
    audio: bool = True
    titles: bool = True
    structured: bool = True
    progress_messages: bool = True
    priming: bool = False
    meta_in_lists: bool = True
    null_ids: bool = True
    """Whether an error reply to an unknown id says `null` (JSON-RPC) or has no id (the schema)."""


REVISIONS: dict[str, Revision] = {
    revision.name: revision
    for revision in (
        Revision(
            "2024-11-05",
            annotations=False,
            audio=False,
            titles=False,
            structured=False,
            progress_messages=False,
            meta_in_lists=False,
        ),
        Revision("2025-03-26", batches=True, titles=False, structured=False, meta_in_lists=False),
        Revision("2025-06-18"),
        Revision("2025-11-25", priming=True, null_ids=False),
        Revision("2026-07-28", modern=True, null_ids=False),
    )
}
ALL = tuple(REVISIONS)
MODERN = tuple(name for name, revision in REVISIONS.items() if revision.modern)


def negotiate(policy: RevisionPolicy, requested: str | None) -> Revision:
    """The revision that `initialize` answers: the one asked for, else what the policy says.

    Without a fallback of its own, a policy gives the newest it accepts that is not above the one
    asked for: a client refuses an answer newer than it knows.
    """
    accepted = [name for name in policy.accepted if not REVISIONS[name].modern]
    if requested in accepted:
        return REVISIONS[requested]
    if policy.fallback is not None:
        return REVISIONS[policy.fallback]
    older = [name for name in accepted if requested is not None and name <= requested]
    return REVISIONS[max(older or accepted)]
