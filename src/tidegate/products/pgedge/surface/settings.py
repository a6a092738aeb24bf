"""The settings of the surface `postgres`: the section `[surface.postgres]`."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec

Seconds = Annotated[float, msgspec.Meta(ge=0)]


class PostgresSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What is particular to the surface `postgres`.

    `source` is the database of calls that name none; without it a caller with one source uses that.
    `error_detail` says how much of an error callers see: `development` all that the database says,
    `production` a code and a correlation id that finds the rest in the audit log, `auto`
    development on stdio and on a loopback address, else production. `server_info` is the name that
    clients see: `tidegate`, or `document` for the one in the document that this surface follows.
    A call waits `ready_wait_s` seconds for a database that cannot be reached yet. `prompts` is a
    folder with prompts of your own, a TOML file each.
    """

    source: str | None = None
    error_detail: Literal["auto", "development", "production"] = "auto"
    server_info: Literal["tidegate", "document"] = "tidegate"
    ready_wait_s: Seconds = 5.0
    prompts: str | None = None
