"""The surfaces that exist, by name: each is one folder and one line here.

A surface's folder has a function `surface(gate, *, config, on_rejected_call)` that makes a
`Surface`. One with settings of its own names their struct, which also fills the section
`[surface.NAME]`; `surface` then takes it as `settings`. Nothing is imported before it is needed.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from importlib import import_module
from typing import Any, NamedTuple

import msgspec

from tidegate.config.loading import convert_table
from tidegate.config.model import Config
from tidegate.errors import Code, TidegateError
from tidegate.model.sources import Source
from tidegate.model.statement_rules import StatementRules
from tidegate.surfaces.api import OnRejectedCall
from tidegate.surfaces.surface import Surface
from tidegate.surfaces.tool_context import Gate


class Variant(NamedTuple):
    """A surface as its document wants it at another HTTP path: `name` is given to the surface's
    function as `variant`, and `conventions` is the `module:class` of the path's HTTP conventions.
    """

    path: str
    name: str
    conventions: str


class Entry(NamedTuple):
    """Where a surface is: its module, the `module:struct` of its settings if it has any, the realm
    of its HTTP challenges (RFC 9110), which its document may name, and its `variants`. `check` is
    the `module:function` that looks at what its settings name, such as files. `statement_rules` is
    the `module:function` that makes of its settings the rules for sources of the engine of the same
    name, whatever surface they are used through."""

    module: str
    settings: str | None = None
    realm: str = "tidegate"
    variants: tuple[Variant, ...] = ()
    check: str | None = None
    statement_rules: str | None = None


SURFACES: dict[str, Entry] = {
    "core": Entry("tidegate.surfaces.core"),
    "workbench": Entry(
        "tidegate.surfaces.workbench",
        settings="tidegate.surfaces.workbench.settings:WorkbenchSettings",
        realm="TablePro MCP",
    ),
    "postgres": Entry(
        "tidegate.surfaces.postgres",
        settings="tidegate.surfaces.postgres.settings:PostgresSettings",
        variants=(
            Variant("/mcp/v1", "document", "tidegate.edges.http.plain_json:PlainJsonConventions"),
        ),
        check="tidegate.surfaces.postgres.prompts:check_prompts",
    ),
    "jdbc": Entry(
        "tidegate.surfaces.jdbc", settings="tidegate.surfaces.jdbc.settings:JdbcSettings"
    ),
    "datalog": Entry(
        "tidegate.surfaces.datalog",
        settings="tidegate.surfaces.datalog.settings:DatalogSettings",
    ),
    "cloud": Entry(
        "tidegate.surfaces.cloud",
        settings="tidegate.surfaces.cloud.settings:CloudSurfaceSettings",
        check="tidegate.surfaces.cloud.tools:check_names",
        statement_rules="tidegate.surfaces.cloud.settings:statement_rules",
    ),
}


def check_surface(name: str) -> None:
    """Raises: TidegateError CONFIG_INVALID if there is no such surface."""
    if name in SURFACES:
        return
    from difflib import get_close_matches

    near = get_close_matches(name.lower(), SURFACES, 1)
    meant = f"Did you mean {near[0]}? " if near else ""
    raise TidegateError(
        Code.CONFIG_INVALID,
        f"There is no surface {name!r}",
        hint=f"{meant}Choose from {', '.join(SURFACES)}.",
    )


def check_surfaces(config: Config) -> None:
    """Check the names of the surfaces to serve, and every `[surface.NAME]` section: a surface is
    made by its first request, which is too late to find a mistake.

    Raises: TidegateError CONFIG_INVALID.
    """
    for name in (*config.surfaces, *config.surface):
        check_surface(name)
    for name in config.surface:
        settings, check = read_settings(name, config), SURFACES[name].check
        if check is not None:
            _function(check)(settings)


def statement_rules(config: Config) -> Callable[[Source], StatementRules | None]:
    """Gives the rules for classes of statements of a source, which a surface's settings make."""

    @cache
    def rules_of(engine: str) -> StatementRules | None:
        entry = SURFACES.get(engine)
        if entry is None or entry.statement_rules is None:
            return None
        return _function(entry.statement_rules)(read_settings(engine, config))

    return lambda source: rules_of(source.engine)


def _function(place: str) -> Callable[..., Any]:
    module, _, name = place.partition(":")
    return getattr(import_module(module), name)


def settings_model(name: str) -> type[msgspec.Struct] | None:
    """The struct of a surface's own settings; None if it has none."""
    place = SURFACES[name].settings
    if place is None:
        return None
    module, _, struct = place.partition(":")
    return getattr(import_module(module), struct)


def read_settings(name: str, config: Config) -> msgspec.Struct | None:
    """A surface's own settings from its section. Raises: TidegateError CONFIG_INVALID."""
    model = settings_model(name)
    section = config.surface.get(name, {})
    if model is None:
        if section:
            raise TidegateError(
                Code.CONFIG_INVALID,
                f"The surface {name} has no settings of its own",
                hint=f"Remove the section `surface.{name}`.",
            )
        return None
    return convert_table(section, model, f"surface.{name}")


def open_surface(
    name: str,
    gate: Gate,
    config: Config,
    on_rejected_call: OnRejectedCall | None = None,
    variant: str | None = None,
) -> Surface:
    """A surface by name, imported now, in one of its variants if one is named.

    Raises: TidegateError CONFIG_INVALID.
    """
    check_surface(name)
    module: Any = import_module(SURFACES[name].module)
    own = read_settings(name, config)
    more: dict[str, Any] = {} if own is None else {"settings": own}
    if variant is not None:
        more["variant"] = variant
    return module.surface(gate, config=config, on_rejected_call=on_rejected_call, **more)
