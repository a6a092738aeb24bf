"""How secrets are kept out of records: `redact` takes what may be one out of a text before that is
written down."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Protocol

MASK = "***"
# Redaction. A statement that mentions a secret by any of these words loses all its literals: which
# of them is the secret cannot be determined without knowing every dialect's every statement.
_MENTIONS = (
    "passw", "passphrase", "pwd", "secret", "credential", "identified", "token", "apikey",
    "api_key", "accesskey", "access_key", "privatekey", "private_key", "crypt", "pgp_", "hmac",
    "authorization", "authorisation", "bearer", "accountkey", "account_key", "jwt",
)  # fmt: skip
_BRIEF = r"(?<![a-z])pass(?:code|key)?(?![a-z])"
# Most statements mention none, and searching for substrings costs a tenth of an alternation, so the
# expressions below are seldom needed. No expression may take more than linear time on hostile text.
_SHAPES = (
    "://", "tg_", "eyJ", "AKIA", "ASIA", "ghp_", "gho_", "ghu_", "ghs_", "ghr_", "glpat", "xox",
    "sk-", "sk_", "-----BEGIN", "github_pat_", "npm_", "AIza",
)  # fmt: skip
_SHAPED = (
    # After the host of a web address, or of this machine, comes a port, unless an @ follows or
    # the path is long. Punctuation may follow, as in a sentence.
    r"(?s)(?P<scheme>(?<![\w+.-])(?!(?:https?://(?:\[[\da-fA-F:.]{2,45}\]|[\w.-]{1,253})"
    r"|[A-Za-z][\w+.-]{1,20}://(?:\[[\da-fA-F:.]{2,45}\]|\d{1,3}(?:\.\d{1,3}){3}|localhost))"
    r":\d{1,5}(?:[/?#][^\s@'\"]{0,200})?[.,;:!)\]}>`]{0,3}(?:[\s'\"]|\Z))"
    r"[A-Za-z][\w+.-]*://[^\s/:@'\"]*:)[^\s@'\"]*"
    r"|(?P<signed>[?&](?i:[\w-]*(?:sig|signature|auth|key)=))[^\s&'\"]*"
    r"|\bgithub_pat_\w{16,}|\bnpm_\w{16,}|\bAIza[\w-]{16,}"
    r"|\btg_[\w-]{20,}|\beyJ[\w-]{10,}[\w.-]*|\b(?:AKIA|ASIA)[A-Z0-9]{12,}"
    r"|\b(?:gh[pousr]|glpat|xox[abprs]|sk)[_-][\w-]{16,}|-----BEGIN [A-Z ]{0,40}KEY-----.*"
)
# Bounded, as each place that a hostile text offers is tried.
_URL_LOGIN = r"(://[^\s/?#@:'\"]{0,128}:)(?!\d{1,5}[/?#])[^\s@'\"]{1,256}(?=@)"
# A login before a host, whatever is in it; what is no port in the beginning of a URL that was cut.
_ANY_LOGIN = r"([A-Za-z][\w+.-]*://)[^\s`'\"]*@|[^\s`'\"]*:[^\s`'\"]*@"
_CUT_LOGIN = r"(://(?!\[)[^\s`'\"/:@*]*):(?![0-9]{1,5}(?![^\s`'\"/?#]))[^\s`'\"]+"
_URL_QUERY = r"(://[^\s`'\"?]*\?)[^\s`'\"]+"
_URL_PARAMETER = r"(?i)://[^\s'\"]{0,512}[?&](?:password|passwd|pwd)=[^\s&'\"]"
_KEY_VALUE = r"(?i)\b(?:password|passwd|pwd)\s{0,8}=\s{0,8}[^\s=]"
_CONNECTION = r"(?i)\b(?:host|hostaddr|server|dbname|database)\s{0,8}=\s{0,8}[^\s=]"
_QUOTED = r"'(?:[^']|'')*(?:'|\Z)|\$(?P<tag>(?:[A-Za-z_]\w*)?)\$.*?(?:\$(?P=tag)\$|\Z)"
_ANY_LITERAL = rf'(?s){_QUOTED}|"(?:[^"]|"")*(?:"|\Z)'
_BARE = (
    r"(?i)((?:passw\w{0,40}|pwd|passphrase|secret\w{0,40}|token|api_?key|access_?key|private_?key"
    r"|\b(?:hex|re|hexre)?key)"
    r"\s*[:=]\s*|\bidentified\s+(?:with\s+\S+\s+)?by\s+(?:password\s+|values\s+)?"
    r"|\b(?:authorization|bearer)\s*:?\s+)([^\s'\"$?:@%;,()*][^\s'\";,)]*)"
)
# Comments and backslashes make it uncertain where a literal ends; then the rest is left out.
_UNCERTAIN = r"\\|--|/\*|#"
_FIRST_QUOTE = r"['\"$\\#]|--|/\*"


def redact(text: str, *, mentions: bool = False) -> str:
    """Text of any kind, such as an error or a value, without anything that may be a secret; equal
    to `text` if there was nothing. For statements there is `sql.redaction`, which knows literals.

    Errs on the side of leaving out: a text that mentions a password, key or token loses all that is
    in quotes. What UTF-8 cannot hold (lone surrogates, as a command line may bring) becomes `?`.
    Bounded work: give it a text cut to the size that is kept, and say by `mentions` whether what
    was cut off mentions a secret.
    """
    # Long texts seldom come twice, and the cache must stay small.
    if len(text) <= 2_048 and not mentions:
        return _redact_cached(text)
    return _redact(text, mentions=mentions)


def _redact(text: str, *, mentions: bool = False) -> str:
    if not text.isascii():
        text = text.encode("utf-8", "replace").decode()
    text = mask_shapes(text)
    if not mentions and not mentions_secret(text):
        return text
    if re.search(_UNCERTAIN, text):
        first = re.search(_FIRST_QUOTE, text)
        head = text[: first.start()] if first else text
        return re.sub(_BARE, rf"\1{MASK}", head) + MASK
    return re.sub(_BARE, rf"\1{MASK}", re.sub(_ANY_LITERAL, f"'{MASK}'", text))


_redact_cached = lru_cache(maxsize=1_024)(_redact)


def mask_shapes(text: str) -> str:
    """The text without what has the shape of a secret: a password in a URL, a signature, a key or
    token of a known kind."""
    if any(map(text.__contains__, _SHAPES)):
        return re.sub(_SHAPED, _shaped, text)
    return text


def mask_url_logins(text: str) -> str:
    """The text without the passwords of URLs, `user:password@`, wherever they are in it."""
    return re.sub(_URL_LOGIN, rf"\1{MASK}", text) if "://" in text else text


def mask_addresses(text: str) -> str:
    """The text without the logins and queries of URLs, also of one that was cut. Shows less than
    `mask_url_logins`: for a setting that should have neither. Not for hostile text: its work is
    not linear."""
    text = re.sub(_ANY_LOGIN, rf"\1{MASK}@", text)
    return re.sub(_URL_QUERY, rf"\1{MASK}", re.sub(_CUT_LOGIN, rf"\1:{MASK}", text))


def holds_login(text: str) -> bool:
    """Whether a text in plain language holds a password in the form in which databases are
    connected to: in a URL, or as `host=... password=...`."""
    if "://" in text and (re.search(_URL_LOGIN, text) or re.search(_URL_PARAMETER, text)):
        return True
    return bool(re.search(_KEY_VALUE, text) and re.search(_CONNECTION, text))


class Redactor(Protocol):
    """What a language does: a text of it without what may be a secret."""

    def redact(self, text: str, dialect: str, *, mentions: bool = False) -> str: ...


def cut_and_redact(
    text: str, most: int, language: Redactor | None, dialect: str
) -> tuple[str, bool]:
    """The first `most` characters of a statement without secrets, and whether it held any.

    What is cut off counts: its alias or its column can be what says that a literal is a secret.
    """
    kept = text[:most]
    mentions = len(text) > most and mentions_secret(text)
    if language is None:
        redacted = redact(kept, mentions=mentions)
    else:
        redacted = language.redact(kept, dialect, mentions=mentions)
    return redacted, mentions or redacted != kept


def mentions_secret(text: str) -> bool:
    """Whether the text has a word that goes with a secret, in any case of letters."""
    lowered = text.lower()
    if any(map(lowered.__contains__, _MENTIONS)):
        return True
    if "pass" in lowered and re.search(_BRIEF, lowered):
        return True
    # The key of an encrypted SQLite file: `PRAGMA key = 'x'`, `ATTACH 'file' AS name KEY 'x'`.
    return "key" in lowered and ("pragma" in lowered or "attach" in lowered)


def _shaped(found: re.Match[str]) -> str:
    return (found["scheme"] or found["signed"] or "") + MASK
