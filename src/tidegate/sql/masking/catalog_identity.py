"""A catalog as a key of what is kept about it."""

from __future__ import annotations

from tidegate.model.schema import Catalog


class KnownCatalog:
    """A catalog, by its identity: to look it up costs nothing, and a new one is another."""

    __slots__ = ("catalog",)

    def __init__(self, catalog: Catalog) -> None:
        self.catalog = catalog

    def __hash__(self) -> int:
        return id(self.catalog)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, KnownCatalog) and other.catalog is self.catalog
