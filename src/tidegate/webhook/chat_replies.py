"""What the reply of a chat means, and what the operator can do about a refusal.

Of a reply no more is shown than its status and, of Slack, the word that is its error: one of those
that Slack documents, so that nothing else gets from there into our log.
"""

from __future__ import annotations

from collections.abc import Mapping

_URL = "`approvals.webhook.url`"
_NEW_AT_SLACK = f"make a webhook of Slack again, and put its URL where {_URL} says"
_FORM = "Slack does not take the form of the message: report this"
_WORDS: Mapping[str, str] = {
    "action_prohibited": "an administrator of Slack does not let webhooks post there",
    "channel_is_archived": f"its channel is archived; {_NEW_AT_SLACK}",
    "channel_not_found": f"its channel is gone; {_NEW_AT_SLACK}",
    "invalid_blocks": _FORM,
    "invalid_blocks_format": _FORM,
    "invalid_payload": _FORM,
    "invalid_token": f"Slack does not know the URL; {_NEW_AT_SLACK}",
    "missing_text_or_fallback_or_attachments": _FORM,
    "no_active_hooks": f"the webhook was switched off; {_NEW_AT_SLACK}",
    "no_service": f"there is no such webhook any more; {_NEW_AT_SLACK}",
    "no_service_id": f"Slack does not know the URL; {_NEW_AT_SLACK}",
    "no_team": f"its workspace is gone; {_NEW_AT_SLACK}",
    "no_text": _FORM,
    "posting_to_general_channel_denied": "not everyone may post in that channel",
    "rate_limited": "too many messages came there",
    "rollup_error": "Slack has a fault",
    "team_disabled": "its workspace was disabled",
    "too_many_attachments": _FORM,
    "user_not_found": f"its user is gone; {_NEW_AT_SLACK}",
}
_FLOW = f"check in Teams that the workflow is on, and that {_URL} leads to its URL of today"
_TEAMS: Mapping[int, str] = {
    400: "the workflow does not take the message: make it of the template that posts a card when a"
    " webhook request is received",
    401: f"the workflow does not admit the URL; {_FLOW}, with anyone as its caller",
    403: f"the workflow does not admit the URL; {_FLOW}",
    404: f"there is no such workflow any more; {_FLOW}",
    410: f"there is no such workflow any more; {_FLOW}",
    413: "the message is too large for it: report this",
}


def read_reply(format: str, status: int, body: bytes) -> str:
    """Why a message that was answered so counts as not sent; empty if it was."""
    is_taken = 200 <= status < 300
    if format == "teams":
        advice = _TEAMS.get(status, "")
        return "" if is_taken else _say(status, "", advice)
    word = body[:100].strip().decode("ascii", "replace")
    if is_taken:
        taken = word == "ok"
        return "" if taken else f"it answered with HTTP status {status}, and not `ok` as Slack does"
    return _say(status, word if word in _WORDS else "", _WORDS.get(word, ""))


def _say(status: int, word: str, advice: str) -> str:
    said = f"it answered with HTTP status {status}{f' and `{word}`' if word else ''}"
    return f"{said}: {advice}" if advice else said
