"""The settings of embeddings: the model that makes vectors of texts, and those of some columns."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec

from tidegate.config.errors import invalid
from tidegate.secrets.references import READ_ANYWHERE, check_references, is_reference

ProviderName = Literal["local", "openai", "voyage", "ollama", "hash-test", "none"]


class ModelSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One model. `api_key` is a reference to a secret, such as `${ENV:OPENAI_API_KEY}`.

    `provider`: `local` runs on this machine and needs the extra `embeddings`; `openai` is every
    server that speaks OpenAI's `/embeddings` at `base_url`; `hash-test` is for tests; with `none`
    there are no vectors, and searches use words alone. `dimensions` is checked, and asked for where
    a model has several. `query_prefix` and `document_prefix` are put before texts, for models that
    want that. `retries` are tries after the first one; `timeout_s` is for each. `model_path` is the
    ONNX file of `local`, if it is not the installed one.
    """

    provider: ProviderName = "local"
    model: str | None = None
    base_url: str | None = None
    api_key: str | None = None
    dimensions: Annotated[int, msgspec.Meta(ge=1, le=16_000)] | None = None
    query_prefix: str = ""
    document_prefix: str = ""
    timeout_s: Annotated[float, msgspec.Meta(gt=0, le=600)] = 60.0
    retries: Annotated[int, msgspec.Meta(ge=0, le=10)] = 3
    model_path: str | None = None

    def __post_init__(self) -> None:
        if self.api_key is not None:
            if not is_reference(self.api_key):
                raise invalid(
                    "`api_key` of `embeddings` holds a key.",
                    hint="Write `${ENV:NAME}` or `${FILE:/path}` in its place.",
                )
            check_references(self.api_key, READ_ANYWHERE)
        if self.base_url is not None:
            from urllib.parse import urlsplit  # imported lazily: only an address needs it

            address = urlsplit(self.base_url)
            if address.scheme not in ("http", "https") or not address.hostname:
                raise invalid(
                    f"`base_url` of `embeddings` is no address: {self.base_url[:80]!r}.",
                    hint="Write it as https://host/v1.",
                )
            if address.username is not None or address.query:
                raise invalid(
                    "`base_url` of `embeddings` has a login or a query in it.",
                    hint="Put the key into `api_key`, as a reference.",
                )


class ColumnSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What made the vectors of one column. `column` is `schema.table.column` or `table.column` of
    the source; `text` is the column whose texts they are of, if the name does not tell; `use` has
    the model, if it is another one than that of `embeddings`."""

    source: str
    column: str
    text: str | None = None
    use: ModelSettings | None = None

    def __post_init__(self) -> None:
        if self.column.count(".") not in (1, 2) or not all(self.column.split(".")):
            raise invalid(
                f"`{self.column[:80]}` of `embeddings.columns` names no column.",
                hint="Write table.column or schema.table.column.",
            )


class EmbeddingSettings(ModelSettings, frozen=True, forbid_unknown_fields=True):
    """The model of all columns of vectors, except those that `columns` lists.

    `characters_per_day` and `seconds_per_day` bound what one caller may have embedded in a day
    (UTC), `calls_per_minute` how often it may ask for vectors. Commands of the command line count
    and are not bounded.
    """

    columns: tuple[ColumnSettings, ...] = ()
    characters_per_day: Annotated[int, msgspec.Meta(ge=1)] = 20_000_000
    seconds_per_day: Annotated[float, msgspec.Meta(gt=0)] = 3_600.0
    calls_per_minute: Annotated[int, msgspec.Meta(ge=1)] = 300
