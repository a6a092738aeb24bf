"""The surfaces that exist, by name: each is one folder, and one entry in its product's
`product.py`.

A surface's folder has a function `surface(gate, *, config, on_rejected_call)` that makes a
`Surface`. One with settings of its own names their struct, which also fills the section
`[surface.NAME]`; `surface` then takes it as `settings`. Nothing is imported before it is needed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from importlib import import_module
from typing import Any, cast

import msgspec

from tidegate import product
from tidegate.config.loading import convert_table
from tidegate.config.model import Config
from tidegate.engines.registry import installed_product_of
from tidegate.errors import Code, TidegateError
from tidegate.model.sources import Source
from tidegate.model.statement_rules import StatementRules
from tidegate.product import Product, SurfaceEntry, load, own_entries
from tidegate.surfaces.api import OnRejectedCall
from tidegate.surfaces.surface import Surface
from tidegate.surfaces.tool_context import Gate


def _surfaces(each: Product) -> Mapping[str, SurfaceEntry]:
    return each.surfaces


SURFACES: dict[str, SurfaceEntry] = {
    "core": SurfaceEntry("tidegate.surfaces.core", in_demo=True),
    **own_entries(_surfaces),
}
"""Surfaces by name. Those of installed packages come in when one is named that is not here, or when
all are served."""

_OWN = dict(SURFACES)


def add_installed() -> None:
    """Add the surfaces of installed packages. Raises: TidegateError CONFIG_INVALID."""
    product.add_installed(SURFACES, _surfaces, "surface")


def check_surface(name: str) -> None:
    """Raises: TidegateError CONFIG_INVALID if there is no such surface."""
    if name not in SURFACES:
        add_installed()
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
            load(check)(settings)


def statement_rules(config: Config) -> Callable[[Source], StatementRules | None]:
    """Gives the rules for classes of statements of a source, which a surface's settings make."""

    @cache
    def rules_of(engine: str) -> StatementRules | None:
        package = installed_product_of(engine)
        if package is not None:
            add_installed()
        entry = (_OWN if package is None else package.surfaces).get(engine)
        if entry is None or entry.statement_rules is None:
            return None
        return load(entry.statement_rules)(read_settings(engine, config))

    return lambda source: rules_of(source.engine)


def settings_model(name: str) -> type[msgspec.Struct] | None:
    """The struct of a surface's own settings; None if it has none."""
    place = SURFACES[name].settings
    if place is None:
        return None
    return cast("type[msgspec.Struct]", load(place))


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
