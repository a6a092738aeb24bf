"""The section `[language]`: questions in plain language, the language model that writes SQL, and
what it may learn of a source. The language of a source is another thing (`model/language.py`)."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Annotated, ClassVar, Literal

import msgspec

from tidegate.config.errors import invalid
from tidegate.config.sections import Section
from tidegate.secrets.references import READ_ANYWHERE, check_references, is_reference

Share = Literal["names", "comments", "values"]
Provider = Literal["openai", "anthropic", "ollama"]

DEFAULT_URLS: dict[Provider, str] = {
    "openai": "https://api.openai.com/v1",
    "anthropic": "https://api.anthropic.com/v1",
    "ollama": "http://127.0.0.1:11434",
}


class ModelSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A model that is reached over HTTP.

    `provider` is whose API the server has: `openai` for every server with its chat completions,
    `anthropic` or `ollama`. `base_url` is the provider's own by default. `api_key` is a reference
    to the key (`${ENV:NAME}` or `${FILE:/path}`), never the key. One request may take `timeout_s`
    seconds and is sent again `retries` times where that can help. `temperature` is not sent unless
    it is set.
    """

    provider: Provider
    model: str
    base_url: str | None = None
    api_key: str | None = None
    timeout_s: Annotated[float, msgspec.Meta(gt=0)] = 60.0
    retries: Annotated[int, msgspec.Meta(ge=0, le=10)] = 2
    max_tokens: Annotated[int, msgspec.Meta(ge=16)] = 2_048
    temperature: Annotated[float, msgspec.Meta(ge=0)] | None = None

    def __post_init__(self) -> None:
        if not self.model.strip():
            raise invalid("`language.model.model` is empty.", hint="Name the model to use.")
        if self.api_key is not None and not is_reference(self.api_key, READ_ANYWHERE):
            raise invalid(
                "`language.model.api_key` is not a reference to a secret.",
                hint="Write `${ENV:NAME}` or `${FILE:/path}`.",
            )
        check_references(self.api_key or "", READ_ANYWHERE)
        if not re.fullmatch(r"https?://[^\s@?#]+", self.address):
            raise invalid(
                "`language.model.base_url` is not an http or https URL without a login.",
                hint="Write it as https://host/v1, and the key in `language.model.api_key`.",
            )

    @property
    def address(self) -> str:
        """The base URL without a slash at its end."""
        return (self.base_url or DEFAULT_URLS[self.provider]).rstrip("/")


class SourceLanguageSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What differs for one source. `knowledge` is the path of its knowledge file."""

    share: Share | None = None
    knowledge: str | None = None


class LanguageSettings(Section, frozen=True, forbid_unknown_fields=True):
    """How questions in plain language become SQL.

    Without a `model`, and with `sampling`, the model of the caller's client is asked where the
    client offers it. `share` is what a model may learn of a source: `names` (tables, columns,
    types, keys), `comments` as well, or `values` that are typical of columns as well; never masked
    columns, nor what the caller cannot see. With `embeddings` the tables of a schema that does not
    fit are also found by vectors of the model in `embeddings`, which gets no more than `share`
    says. `schema_bytes` bounds the schema in a prompt. `rounds`
    is how often a statement may be repaired. A statement whose plan costs more than `max_cost`, in
    the units of the database's planner, is shown and not run. `tokens_per_day` and
    `seconds_per_day` bound what one caller may use of the model in a day (UTC), `calls_per_minute`
    how often it may ask it; one question may ask it `rounds` times more. `sources` has what
    differs, by the source's name.
    """

    NAME: ClassVar[str] = "language"

    model: ModelSettings | None = None
    sampling: bool = False
    share: Share = "comments"
    embeddings: bool = False
    schema_bytes: Annotated[int, msgspec.Meta(ge=1_000)] = 24_000
    rounds: Annotated[int, msgspec.Meta(ge=0, le=3)] = 3
    max_cost: Annotated[float, msgspec.Meta(gt=0)] = 10_000_000.0
    tokens_per_day: Annotated[int, msgspec.Meta(ge=1)] = 1_000_000
    seconds_per_day: Annotated[float, msgspec.Meta(gt=0)] = 3_600.0
    calls_per_minute: Annotated[int, msgspec.Meta(ge=1)] = 60
    sources: dict[str, SourceLanguageSettings] = {}  # noqa: RUF012 - msgspec copies it

    def source_names(self) -> Iterable[tuple[str, str]]:
        for name in self.sources:
            yield "language.sources", name

    def share_of(self, source: str) -> Share:
        """What a model may learn of the source."""
        own = self.sources.get(source)
        return (own.share if own is not None else None) or self.share
