"""Stand-ins for Slack and for a Teams workflow: servers of HTTPS on this machine that take the
published form of a message and nothing else, and say what a person would see of it.

They are labelled as such since no account of either is at hand. The forms are those of Slack's
pages on incoming webhooks, text objects and the block `section`, and of Microsoft's pages on
Adaptive Cards 1.2 and on workflows that post a card when a webhook request is received.
"""

from __future__ import annotations

import html
import json
import queue
import re
from collections.abc import Callable, Iterable
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

from support.eventually import HANG_S
from support.webhook_receiver import Answer, Receiver

MOST_BLOCKS = 50
MOST_TEXT = 3_000
MOST_FALLBACK = 4_000
"""What Slack advises; it cuts at 40,000."""
MOST_TEAMS_BYTES = 21_000
"""Teams documents 28 kB, and some have seen it end here."""

_SLACK_KEYS = frozenset(
    {
        "text", "blocks", "attachments", "thread_ts", "mrkdwn", "parse", "link_names",
        "unfurl_links", "unfurl_media", "response_type", "replace_original", "metadata",
    }
)  # fmt: skip
_MARKUP = re.compile(r"<([^<>]*)>")
_LINK_NAME = re.compile(r"(?<!\w)[@#]\w")
_URL = re.compile(r"(?i)\b[a-z][a-z0-9+.-]*://\S|\bwww\.|\bmailto:|\b[\w.+-]+@\w+\.\w")
_CARD_FUNCTION = re.compile(r"\{\{|\$\{|</?at>")
_MARKDOWN_LINK = re.compile(r"\[[^\]]*\]\([^)]*\)")


class Seen(NamedTuple):
    """What people see of a message: its text, and its links, each with the words it has."""

    text: str
    links: list[tuple[str, str]]
    alert: str = ""
    """What a notification says."""


class WrongForm(ValueError):
    """Why the service would not take a message; the first word is the error that it answers."""


def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object whose keys are given once."""
    made = dict(pairs)
    if len(made) != len(pairs):
        raise WrongForm("invalid_payload: a key is given twice")
    return made


def parse(body: bytes) -> dict[str, Any]:
    message = json.loads(body.decode("utf-8"), object_pairs_hook=unique)
    check(isinstance(message, dict), "invalid_payload: it is no object")
    return message


def check(holds: bool, why: str) -> None:
    if not holds:
        raise WrongForm(why)


def check_keys(value: dict[str, Any], needed: Iterable[str], allowed: Iterable[str] = ()) -> None:
    missing, more = {*needed} - {*value}, {*value} - {*needed, *allowed}
    check(not missing and not more, f"invalid_blocks: {missing} is missing, {more} is unknown")


def check_inert(text: str) -> None:
    """Fails for a text of which a program could make a link or a mention."""
    check(_URL.search(text) is None, f"a link could be made of {text!r}")
    check(_LINK_NAME.search(text) is None, f"a mention could be made of {text!r}")
    check(text.isprintable(), f"something is hidden in {text!r}")


# Slack


def read_slack(body: bytes) -> Seen:
    """What Slack shows of this message. Raises: WrongForm."""
    message = parse(body)
    more = {*message} - _SLACK_KEYS
    check(not more, f"invalid_payload: {more} is unknown")
    text = message.get("text")
    check(isinstance(text, str) and 0 < len(text) <= MOST_FALLBACK, "no_text: it is no text")
    for name in ("mrkdwn", "link_names", "unfurl_links", "unfurl_media"):
        check(message.get(name) is False, f"{name} is not switched off")
    check(message.get("parse") == "none", "URLs in the text become links")
    check(not _MARKUP.search(text), f"markup in the text for notifications: {text!r}")
    check_inert(html.unescape(text))
    blocks = message.get("blocks")
    check(isinstance(blocks, list) and 0 < len(blocks) <= MOST_BLOCKS, "invalid_blocks: how many")
    shown: list[str] = []
    links: list[tuple[str, str]] = []
    for block in blocks:
        said, found = _section(block)
        shown.append(said)
        links += found
    return Seen("\n".join(shown), links, html.unescape(text))


def _section(block: Any) -> tuple[str, list[tuple[str, str]]]:
    check_keys(block, ("type", "text"), ("block_id",))  # no element that a person could press
    check(block["type"] == "section", f"invalid_blocks: {block['type']}")
    given = block["text"]
    option = {"plain_text": "emoji", "mrkdwn": "verbatim"}[given["type"]]
    check_keys(given, ("type", "text"), (option,))
    text = given["text"]
    check(isinstance(text, str) and 0 < len(text) <= MOST_TEXT, "invalid_blocks: the text's length")
    check("<" not in text or given["type"] == "mrkdwn", f"not escaped: {text!r}")
    if given["type"] == "plain_text":
        check(given.get("emoji") is False, "colons become emoji")
        check_inert(html.unescape(text))
        return html.unescape(text), []
    check(given.get("verbatim") is True, "names and URLs in the text become links")
    links: list[tuple[str, str]] = []
    for found in _MARKUP.findall(text):
        check(found[:1] not in ("!", "@", "#"), f"it notifies: <{found}>")
        url, _, words = found.partition("|")
        links.append((html.unescape(url), words))
    return _MARKUP.sub("", text), links


# Teams


def read_teams(body: bytes) -> Seen:
    """What Teams shows of this message. Raises: WrongForm."""
    check(len(body) <= MOST_TEAMS_BYTES, f"RequestEntityTooLarge: {len(body)} bytes")
    message = parse(body)
    check_keys(message, ("type", "attachments"))
    check(message["type"] == "message" and len(message["attachments"]) == 1, "no envelope")
    (attachment,) = message["attachments"]
    check_keys(attachment, ("contentType", "content"), ("contentUrl",))
    kind = attachment["contentType"]
    check(kind == "application/vnd.microsoft.card.adaptive", f"contentType: {kind}")
    check(attachment.get("contentUrl") is None, "a card has no contentUrl")
    card = attachment["content"]
    check_keys(card, ("type", "version", "body"), ("$schema", "actions", "fallbackText"))
    check(card["type"] == "AdaptiveCard", f"type: {card['type']}")
    check(re.fullmatch(r"1\.[2-5]", card["version"]) is not None, f"version: {card['version']}")
    shown = [_rich_text(element) for element in card["body"]]
    links: list[tuple[str, str]] = []
    for action in card.get("actions", []):
        check_keys(action, ("type", "title", "url"))
        check(action["type"] == "Action.OpenUrl", f"it does more than open a page: {action}")
        links.append((action["url"], action["title"]))
    check(bool(shown), "an empty card")
    return Seen("\n".join(shown), links)


def _rich_text(element: Any) -> str:
    check_keys(element, ("type", "inlines"))
    check(element["type"] == "RichTextBlock", f"markdown is read in a {element['type']}")
    parts: list[str] = []
    for run in element["inlines"]:
        check_keys(run, ("type", "text"))
        check(run["type"] == "TextRun" and isinstance(run["text"], str), f"no run: {run}")
        text = run["text"]
        check(_CARD_FUNCTION.search(text) is None, f"a function of cards: {text!r}")
        check(_MARKDOWN_LINK.search(text) is None, f"a link of markdown: {text!r}")
        check_inert(text)
        parts.append(text)
    return "".join(parts)


# Servers


class Chat(Receiver):
    """A chat: it takes what has its form, and refuses the rest in its own words."""

    FORMAT: ClassVar[str]
    CHANNEL: ClassVar[str]
    read: ClassVar[Callable[[bytes], Seen]]

    def __init__(self, folder: Path, answers: Iterable[Answer]) -> None:
        super().__init__(folder, answers)
        self._given = list(answers)
        self._seen: queue.Queue[Seen | WrongForm] = queue.Queue()
        self.headers: list[dict[str, str]] = []
        self.url_file = folder / "webhook.url"

    @property
    def url(self) -> str:
        return f"https://127.0.0.1:{self.port}{self.CHANNEL}"

    def settings(self, **changes: Any) -> dict[str, Any]:
        self.url_file.write_text(self.url + "\n")
        given = {
            "format": self.FORMAT,
            "url": f"${{FILE:{self.url_file}}}",
            "addresses": ["127.0.0.1"],
            "ca_file": str(self.authority.file),
        }
        return {**given, **changes}

    def next_seen(self) -> Seen:
        """What is seen of the next message; fails if none comes, or it has not the form."""
        seen = self._seen.get(timeout=HANG_S)
        if isinstance(seen, WrongForm):
            raise seen
        return seen

    @property
    def is_quiet(self) -> bool:
        return self._seen.empty()

    def take(self, handler: BaseHTTPRequestHandler) -> None:
        body = handler.rfile.read(int(handler.headers["content-length"]))
        headers = {name.lower(): value for name, value in handler.headers.items()}
        self.paths.append(handler.path)
        self.headers.append(headers)
        try:
            check(headers["content-type"] == "application/json", "invalid_payload: the type")
            check("webhook-signature" not in headers, "a signature goes to no chat")
            seen: Seen | WrongForm = type(self).read(body)
        except (WrongForm, KeyError, TypeError, ValueError) as error:
            seen = error if isinstance(error, WrongForm) else WrongForm(f"invalid_payload: {error}")
        self._seen.put(seen)
        if self._given:
            answer = self._given[0] if len(self._given) == 1 else self._given.pop(0)
            answer(handler)
        else:
            self.answer(handler, seen)

    def answer(self, handler: BaseHTTPRequestHandler, seen: Seen | WrongForm) -> None:
        raise NotImplementedError


class SlackStandIn(Chat):
    FORMAT = "slack"
    CHANNEL = "/services/T0STANDIN/B0STANDIN/s3cr3tOfTheChannel"
    read = staticmethod(read_slack)

    def answer(self, handler: BaseHTTPRequestHandler, seen: Seen | WrongForm) -> None:
        if isinstance(seen, WrongForm):
            say(400, str(seen).partition(":")[0])(handler)
        else:
            say(200, "ok")(handler)


class TeamsStandIn(Chat):
    FORMAT = "teams"
    CHANNEL = (
        "/workflows/0standin0/triggers/manual/paths/invoke?api-version=2016-06-01"
        "&sp=%2Ftriggers%2Fmanual%2Frun&sv=1.0&sig=s3cr3t-OfTheChannel_"
    )
    read = staticmethod(read_teams)

    def answer(self, handler: BaseHTTPRequestHandler, seen: Seen | WrongForm) -> None:
        say(400 if isinstance(seen, WrongForm) else 202, "")(handler)


CHATS: tuple[type[Chat], ...] = (SlackStandIn, TeamsStandIn)
SECRET_PARTS = ("s3cr3t", "T0STANDIN", "0standin0")


def say(status: int, text: str) -> Answer:
    """Answers with a status and a text."""

    def answer(handler: BaseHTTPRequestHandler) -> None:
        handler.send_response(status)
        handler.send_header("content-type", "text/html")
        handler.send_header("content-length", str(len(text)))
        handler.end_headers()
        handler.wfile.write(text.encode())

    return answer
