"""The same messages for a channel of Slack or Teams: one sentence, and the link to the Inbox.

A sentence holds names that an agent chose: of its client, and of tables that it made. In a channel
such a name must notify no one, and be no link and no formatting. So names are only where the
published format reads no markup (`plain_text` of Slack, `TextRun` of Adaptive Cards); and what
either of them, or a program that makes links of plain text, could act on is shown in its full-width
form, which people read the same. Our own words alone are where markup counts.

Nothing here answers: the link opens the Inbox, which has its own login.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import msgspec

from tidegate.approvals.place import name_opener
from tidegate.webhook.messages import ASKED, DIGEST, TEST

_FULL_WIDTH = str.maketrans({char: chr(ord(char) + 0xFEE0) for char in "<>&@#|[]*~`:/$"})
_OPENS = "Open the Inbox"
_ENDED = {"allowed": "Allowed", "denied": "Denied"}
_MOST_LISTED_BYTES = 12_000
"""Of the sentences in one message. Teams takes 28 kB in all, and some have seen 21."""
MOST_SLACK_TEXT = 3_000
"""Characters in one text object of Slack."""


def render(format: str, body: bytes) -> bytes:
    """A message of `messages`, as a channel of this format takes it."""
    message: dict[str, Any] = msgspec.json.decode(body)
    lines = _lines(message["type"], message["data"])
    link: str | None = message["data"]["link"]
    return msgspec.json.encode((_slack if format == "slack" else _teams)(lines, link))


def disarm(text: str) -> str:
    """A text in which a chat finds nothing to act on."""
    text = re.sub(r"\{{2,}", lambda found: "\uff5b" * len(found[0]), text.translate(_FULL_WIDTH))
    return re.sub(r"(?i)\b(www)\.", "\\1\uff0e", text)


def _lines(type: str, data: Mapping[str, Any]) -> list[str]:
    """What the message says. The first line alone is enough for a notification."""
    if type == TEST:
        return [str(data["sentence"])]
    if type == ASKED:
        return [f"A call waits for approval: {disarm(data['sentence'])}"]
    if type == DIGEST:
        return _digest(data)
    return [f"{_ENDED.get(data['state'], 'Ended without an answer')}: {disarm(data['sentence'])}"]


def _digest(data: Mapping[str, Any]) -> list[str]:
    count = int(data["count"])
    lines = ["1 call waits for approval" if count == 1 else f"{count:,} calls wait for approval"]
    size = 0
    for question in data["questions"]:
        line = disarm(question["sentence"])
        size += len(line.encode())
        if size > _MOST_LISTED_BYTES:
            break
        lines.append(line)
    more = count - (len(lines) - 1)
    return [*lines, f"and {more:,} more"] if more else lines


def _slack(lines: list[str], link: str | None) -> dict[str, Any]:
    """Block Kit, for an incoming webhook of Slack."""
    blocks = [_section("plain_text", line[:MOST_SLACK_TEXT], emoji=False) for line in lines]
    if link is None:
        blocks.append(_section("plain_text", f"It is answered in {name_opener()}.", emoji=False))
    else:
        blocks.append(_section("mrkdwn", f"<{_escape(link)}|{_OPENS}>", verbatim=True))
    return {
        # For notifications and screen readers, and not shown beside the blocks. Slack would read
        # markup here, and make links of what looks like one.
        "text": _escape(lines[0]),
        "mrkdwn": False,
        "parse": "none",
        "link_names": False,
        "unfurl_links": False,
        "unfurl_media": False,
        "blocks": blocks,
    }


def _section(type: str, text: str, **options: bool) -> dict[str, Any]:
    return {"type": "section", "text": {"type": type, "text": text, **options}}


def _escape(text: str) -> str:
    """What Slack reads as this text, also where it reads markup."""
    for char, shown in (("&", "&amp;"), ("<", "&lt;"), (">", "&gt;"), ("|", "%7C")):
        text = text.replace(char, shown)
    return text


def _teams(lines: list[str], link: str | None) -> dict[str, Any]:
    """An Adaptive Card, in the envelope that a Teams workflow takes."""
    if link is None:
        lines = [*lines, f"It is answered in {name_opener()}."]
    card: dict[str, Any] = {
        "$schema": "http://adaptivecards.io/schemas/adaptive-card.json",
        "type": "AdaptiveCard",
        "version": "1.2",
        "fallbackText": "Tidegate has a message about calls that wait for approval.",
        "body": [
            {"type": "RichTextBlock", "inlines": [{"type": "TextRun", "text": line}]}
            for line in lines
        ],
    }
    if link is not None:
        card["actions"] = [{"type": "Action.OpenUrl", "title": _OPENS, "url": link}]
    attachment = {
        "contentType": "application/vnd.microsoft.card.adaptive",
        "contentUrl": None,
        "content": card,
    }
    return {"type": "message", "attachments": [attachment]}
