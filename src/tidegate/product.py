"""What a product adds to the kernel, and where products are found.

A product is one folder in `products`, or a package of its own, with a value of `Product`. The
kernel knows its own engines (SQLite, PostgreSQL) and surface (core), and names no product.
Everything here is data: a place in the code is written as `module:attribute` and imported when it
is needed, so that a product costs no time before it is used.

A package of its own names its product in its metadata:

    [project.entry-points."tidegate.products"]
    snowflake = "tidegate_snowflake.product:PRODUCT"

Packages are searched for only when something named is not built in, or when all are listed:
to read the metadata of every installed package takes longer than to start the gate. No package may
have an entry of a name that is taken here, or by another package: it cannot be used then.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Container, Mapping
from functools import cache
from importlib import import_module
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal, NamedTuple, TypeVar

from tidegate.errors import Code, TidegateError

T = TypeVar("T")

GROUP = "tidegate.products"
"""The group of entry points of packages, and the package of the products that are here."""


NONE: Mapping[str, Any] = MappingProxyType({})


class DatabaseFiles(NamedTuple):
    """The files that are databases of an engine: how their names end, and the bytes that each of
    them has at a place, by which a file of any name is known."""

    endings: tuple[str, ...]
    at: int = 0
    mark: bytes = b""

    def has(self, beginning: bytes) -> bool:
        """Whether a file that begins so is one, by its mark."""
        return bool(self.mark) and beginning[self.at :].startswith(self.mark)


class EngineEntry(NamedTuple):
    """The module and class of an engine, and what is known of it before it is imported.

    `extra` is the optional dependency that brings its driver. `port` is where its servers listen by
    default; an engine with a port can be reached through an SSH tunnel. `identities`: see
    `engines.api.Capabilities`. `language` is the module that defines the engine's `LANGUAGE`
    (`model.language.Language`). `options` are the names that a source's `options` may have,
    `NAME.*` for any that begins so; the engine reads them with `resolve_options`. `compares_rows`:
    it finds out whether a change was about every row of its table (`Permit.whole_changes`); else
    the text alone decides. `reads_only`: a source on it cannot have the access `write`.
    `own_functions`: a source on it may have `functions`: the engine knows in its database which
    functions users wrote, and that database keeps a read from changing anything.

    `pool` is how many connections, or processes, a source on it has at most, unless its option
    `pool_option` says it; 0: it has no such bound. Workers of a gate divide them.
    `tells_limit`: its server says how many connections it admits (`engines.api.LimitedEngine`).

    `plan_limits`: the settings of a source on it that limit plans, of `max_plan_cost` and
    `max_plan_rows`: its databases have these figures (`Dialect.plan_figures`). `figures_hide`:
    not where the source has masks or filters, as nothing in its plans may follow from statistics.

    `plain_options`: those of `options` that name no file and no program and hold no secret, so that
    a page may set them.

    `other_dialects`: those that `dialect_reader` may give besides. No package may define them.

    `trivial_queries`: by dialect, the shortest query of one value where `SELECT 1` is none.
    `files` are those that its URLs name, if they do. `is_folder`: its databases are folders, with
    nothing beside them. `table_form`: how rules name
    its tables, where that is not `schema.table` but a path like `provider.service.resource`; its
    catalog then has the tables of one schema at a time.
    `writes_by_settings`: a source that is named on the command line admits changes where the
    setting `allow_writes` does, without `--allow-writes`.

    Places (`module:function`) of functions that read a URL without opening it: `dialect_reader`
    gives the dialect where one engine speaks several; `locator` gives what a listing shows of a URL
    that is written in a way of its own (`engines.common.url.Location`); `path_reader` gives the
    absolute path of the file or folder that it names, None where it names none. `memory_reader`
    says whether a URL is of a database in the memory of one process. `exclusive_reader` gives, of
    a URL and whether its source may change it, the path that no two processes may have open so,
    None where they may. `extras_reader` gives the further extras that what is at a URL now needs.
    `reader` reads a URL and the source's options as the engine does, and raises TidegateError for
    what it cannot be opened with.
    `absolute_url` gives a URL with its file as an absolute path. `preparer`, async, gives from
    `gateway.handlers.HandlerParts`, a source and a report the source as it is opened.
    `shared_settings` gives, of the settings and the state's directory, the text that each source
    without one gets as its option `settings`. `session_gate` takes an `App` and gives the gateway
    that sessions of wire protocols on such a source use in place of the usual one.
    """

    engine: str
    dialect: str
    module: str
    attribute: str
    extra: str | None = None
    port: int | None = None
    identities: bool = False
    language: str = "tidegate.sql.language"
    options: tuple[str, ...] = ()
    plain_options: tuple[str, ...] = ()
    compares_rows: bool = False
    reads_only: bool = False
    own_functions: bool = False
    plan_limits: tuple[str, ...] = ()
    figures_hide: bool = False
    other_dialects: tuple[str, ...] = ()
    files: DatabaseFiles | None = None
    is_folder: bool = False
    trivial_queries: Mapping[str, str] = NONE
    table_form: str = ""
    writes_by_settings: bool = False
    dialect_reader: str = ""
    locator: str = ""
    path_reader: str = ""
    memory_reader: str = ""
    extras_reader: str = ""
    pool: int = 0
    pool_option: str = "pool"
    tells_limit: bool = False
    exclusive_reader: str = ""
    reader: str = ""
    absolute_url: str = ""
    preparer: str = ""
    shared_settings: str = ""
    session_gate: str = ""

    def dialect_of(self, url: str) -> str:
        """The dialect that the database at `url` speaks. The URL is not opened."""
        return load(self.dialect_reader)(url) if self.dialect_reader else self.dialect

    def path_of(self, url: str) -> str | None:
        """The absolute path of the file or folder that `url` names. Raises: TidegateError."""
        return load(self.path_reader)(url) if self.path_reader else None

    def is_in_memory(self, url: str) -> bool:
        """Whether each process would have a database of its own at `url`. Raises: TidegateError."""
        return bool(self.memory_reader) and load(self.memory_reader)(url)

    def exclusive_path(self, url: str, *, changes: bool) -> str | None:
        """The path that one process has alone while it has `url` open, to change it or not; None
        where others may have it open, too. Raises: TidegateError."""
        return load(self.exclusive_reader)(url, changes) if self.exclusive_reader else None

    def more_extras(self, url: str) -> Collection[str]:
        """The extras that what is at `url` needs, besides `extra`. Raises: TidegateError."""
        return load(self.extras_reader)(url) if self.extras_reader else ()

    def has_option(self, name: str) -> bool:
        """Whether a source may have the option."""
        return name in self.options or f"{name.partition('.')[0]}.*" in self.options


class Variant(NamedTuple):
    """A surface as its document wants it at another HTTP path: `name` is given to the surface's
    function as `variant`, and `conventions` is the place of the path's HTTP conventions."""

    path: str
    name: str
    conventions: str


class SurfaceEntry(NamedTuple):
    """Where a surface is: its module, the place of the struct of its settings if it has any, the
    realm of its HTTP challenges (RFC 9110), which its document may name, and its `variants`.
    `check` is the place of the function that checks what its settings name, such as files.
    `statement_rules` is the place of the function that makes of its settings the rules for sources
    of the engine of the same name, whatever surface they are used through. `extended`: its settings
    have `extended`, for tools that are newer than its document. `in_demo`: the demo serves it.
    `keeps_choices`: later calls of a caller depend on what it has chosen or opened by earlier ones
    (`ToolContext.gate.choices`)."""

    module: str
    settings: str | None = None
    realm: str = "tidegate"
    variants: tuple[Variant, ...] = ()
    check: str | None = None
    statement_rules: str | None = None
    extended: bool = False
    in_demo: bool = False
    keeps_choices: bool = False


CommandGroup = Literal["start", "ask", "databases", "people", "after"]
"""What a person wants of a command: to start and serve; to ask; to add databases and what they
need; to say who may do what, and answer calls that wait; to see what was done, and take it back."""


class CommandEntry(NamedTuple):
    """A command: the place of the function that adds its arguments to the parser, the group in
    which the first screen of `tidegate` lists it, and an example of it, or of each of its actions,
    by their words."""

    place: str
    group: CommandGroup
    examples: Mapping[str, str] = NONE


class UrlAdvice(NamedTuple):
    """What to say of a URL of another library: a sentence, and what to write instead."""

    message: str
    hint: str


class SecretEntry(NamedTuple):
    """A kind of references to secrets that are kept elsewhere, `${KIND:NAME}`; `form` is how one is
    written, and `section` the section of the settings that says how the place is reached. Places:
    `check` of a `secrets.readers.CheckName`, `read` of a `secrets.readers.ReadSecrets`."""

    form: str
    check: str
    read: str
    section: str = ""
    extra: str = ""


class DemoSource(NamedTuple):
    """A further source of the demo, for the option of the product's name: the place of the function
    that makes it from the file of the shop and the state's directory, the option's help, and a
    query with a part of its answer."""

    place: str
    help: str
    query: str
    answer: str


class Product(NamedTuple):
    """One product.

    `engines`: by the scheme of their URLs, or by a longer prefix that ends in a colon (`jdbc:h2:`).
    `surfaces`, by name. `dialects`: the module with the `DIALECT` of each name.
    `vocabularies`: by a dialect that is no SQL, the module with the functions of
    `search.vocabulary.Vocabulary`. `commands`: by the word of the command line.
    `extras`: by the optional dependencies of this package that only the product uses, a module that
    each brings. `settings`: by the name of a section of the settings, the place of its struct, a
    `config.sections.Section`. `url_advice`: by the scheme of another library's URLs. `steps`: by
    the name of the step of the gate before which they come (`gateway.steps`), the places of
    functions of the `CallContext`; those of a package are passed by calls on sources of its own
    engines alone. `secrets`: by the kind of a reference, how the secret is read.

    `command_hooks`: the place of a `cli.hooks.CommandHooks`. `settings_format`: the place of a
    `config.loading.SettingsFormat`, of settings that are written for another program. `listener`:
    the place of a function that gives a `serve.edges.Listener` where the product's settings ask
    for one, which is called if these are given. `service`: the place of a function that gives of an
    `App` a `service.Service` in the same way. `parent_listener`: the place of a function that gives
    a `serve.parent_edges.ParentListener`, which serves in the parent of workers at the address of
    the product's section; the workers do not listen there then. `pages`: the place of a function
    that gives the pages of people on the HTTP server (`serve.edges.Pages`), which are below
    `pages_path`.
    """

    name: str
    engines: Mapping[str, EngineEntry] = NONE
    surfaces: Mapping[str, SurfaceEntry] = NONE
    dialects: Mapping[str, str] = NONE
    vocabularies: Mapping[str, str] = NONE
    commands: Mapping[str, CommandEntry] = NONE
    extras: Mapping[str, str] = NONE
    settings: Mapping[str, str] = NONE
    url_advice: Mapping[str, UrlAdvice] = NONE
    demo_source: DemoSource | None = None
    steps: Mapping[str, str] = NONE
    secrets: Mapping[str, SecretEntry] = NONE
    command_hooks: str = ""
    settings_format: str = ""
    listener: str = ""
    service: str = ""
    parent_listener: str = ""
    pages: str = ""
    pages_path: str = ""


@cache
def built_in() -> tuple[Product, ...]:
    """The products in `products`, by name."""
    found = sorted(Path(__file__).parent.glob("products/*/product.py"))
    return tuple(import_module(f"{GROUP}.{each.parent.name}.product").PRODUCT for each in found)


@cache
def installed() -> tuple[Product, ...]:
    """The products of other packages, by the names of their entry points.

    Raises: TidegateError CONFIG_INVALID for one that cannot be imported or is no product.
    """
    from importlib.metadata import entry_points  # takes 40 ms, with the search

    found: list[Product] = []
    for point in sorted(entry_points(group=GROUP), key=lambda each: each.name):
        try:
            product = point.load()
        except Exception as error:  # whatever a package of others raises
            raise unusable(point.name, f"{type(error).__name__}: {error}") from error
        if not isinstance(product, Product):
            raise unusable(point.name, f"`{point.value}` is no Product")
        found.append(product)
    return tuple(found)


def found_already() -> tuple[Product, ...]:
    """The products that are here, and those of packages if these were searched for."""
    return (*built_in(), *(installed() if installed.cache_info().currsize else ()))


def own_entries(part: Callable[[Product], Mapping[str, T]]) -> dict[str, T]:
    """The entries of one part of all products that are here."""
    return {name: entry for product in built_in() for name, entry in part(product).items()}


def add_installed(
    known: dict[str, T],
    part: Callable[[Product], Mapping[str, T]],
    what: str,
    reserved: Container[str] = (),
) -> bool:
    """Add the entries of installed packages; whether there are any that were not known. `what` is
    what errors call an entry, `reserved` are further names that no package may have.

    Raises: TidegateError CONFIG_INVALID for a name that is taken: what is here would mean another
    thing as soon as packages were searched for.
    """
    before = len(known)
    for product in installed():
        for name, entry in part(product).items():
            if name in reserved or known.setdefault(name, entry) != entry:
                raise unusable(product.name, f"its {what} `{name}` is taken")
    return len(known) > before


def unusable(name: str, why: str) -> TidegateError:
    """The error for a product of a package that cannot be used."""
    return TidegateError(
        Code.CONFIG_INVALID,
        f"The product `{name}` of an installed package cannot be used: {why}.",
        hint="Repair or uninstall the package that has the entry point.",
    )


def load(place: str) -> Any:
    """What is at a place `module:attribute`. Raises: ImportError, AttributeError."""
    module, _, attribute = place.partition(":")
    return getattr(import_module(module), attribute)
