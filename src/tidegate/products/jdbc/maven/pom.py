"""Reads POMs: what a library needs, after its parents and BOMs have had their say.

Follows Maven's "Introduction to the POM" and "Introduction to the Dependency Mechanism". Profiles
are not applied: they depend on the machine that builds.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple

import msgspec

from tidegate.errors import Code, TidegateError
from tidegate.products.jdbc.maven.coordinates import Coordinate, make_coordinate
from tidegate.products.jdbc.maven.xml_documents import read_document
from tidegate.xml_tree import Element

_MOST_PARENTS = 32
_MOST_IMPORTS = 32
_LONGEST = 4_096
_PROPERTY = re.compile(r"\$\{([^${}]{1,200})\}")

DependencyKey = tuple[str, str, str, str]
"""Group, artifact, type and classifier: what one library is, whatever its version."""


class Dependency(NamedTuple):
    """A dependency as a POM has it. Empty: not said there. `exclusions` are (group, artifact), `*`
    for any."""

    group: str
    artifact: str
    version: str = ""
    type: str = "jar"
    classifier: str = ""
    scope: str = ""
    optional: bool = False
    exclusions: tuple[tuple[str, str], ...] = ()

    @property
    def key(self) -> DependencyKey:
        return self.group, self.artifact, self.type, self.classifier

    @property
    def name(self) -> str:
        """For messages."""
        return ":".join(filter(None, (self.group, self.artifact, self.classifier)))


class Pom(msgspec.Struct, frozen=True):
    """One POM file as it is written."""

    group: str
    artifact: str
    version: str
    packaging: str
    parent: tuple[str, str, str] | None
    properties: Mapping[str, str]
    managed: tuple[Dependency, ...]
    dependencies: tuple[Dependency, ...]
    relocation: tuple[str, str, str] | None
    has_profiles: bool
    """Whether a profile of it has dependencies."""


class Model(msgspec.Struct, frozen=True):
    """What a POM says with its parents and BOMs, all properties replaced."""

    coordinate: Coordinate
    packaging: str = "jar"
    managed: Mapping[DependencyKey, Dependency] = {}
    dependencies: tuple[Dependency, ...] = ()
    relocation: Coordinate | None = None


LoadPom = Callable[[Coordinate], Pom | None]
"""The POM of a library; None if the repository has none. Raises: TidegateError."""
Warn = Callable[[str], None]


def parse_pom(content: bytes, coordinate: Coordinate) -> Pom:
    """Read a POM file. Raises: TidegateError DRIVER_UNRESOLVED."""
    what = f"The POM of {coordinate}"
    root = read_document(content, what)
    if root.name != "project":
        raise TidegateError(
            Code.DRIVER_UNRESOLVED,
            f"{what} is not a POM: its root element is `{root.name[:40]}`.",
            hint="Check that the address is that of a Maven repository.",
        )
    parent = next(root.all("parent"), None)
    moved = next(root.all("distributionManagement", "relocation"), None)
    return Pom(
        group=root.value("groupId"),
        artifact=root.value("artifactId"),
        version=root.value("version"),
        packaging=root.value("packaging") or "jar",
        parent=None if parent is None else _names(parent),
        properties={
            child.name: child.text.strip()
            for element in root.all("properties")
            for child in element.children
        },
        managed=_dependencies(root.all("dependencyManagement", "dependencies", "dependency")),
        dependencies=_dependencies(root.all("dependencies", "dependency")),
        relocation=None if moved is None else _names(moved),
        has_profiles=any(root.all("profiles", "profile", "dependencies", "dependency")),
    )


def _names(element: Element) -> tuple[str, str, str]:
    return element.value("groupId"), element.value("artifactId"), element.value("version")


def _dependencies(elements: Iterable[Element]) -> tuple[Dependency, ...]:
    return tuple(
        [
            Dependency(
                *_names(each),
                type=each.value("type") or "jar",
                classifier=each.value("classifier"),
                scope=each.value("scope"),
                optional=each.value("optional") == "true",
                exclusions=tuple(
                    (out.value("groupId") or "*", out.value("artifactId") or "*")
                    for out in each.all("exclusions", "exclusion")
                ),
            )
            for each in elements
        ]
    )


class ModelBuilder:
    """Builds models, each once. `warn` gets what was left out or tolerated."""

    def __init__(self, load: LoadPom, warn: Warn) -> None:
        self._load = load
        self._warn = warn
        self._models: dict[Coordinate, Model] = {}
        self._importing: list[Coordinate] = []

    def build(self, coordinate: Coordinate) -> Model:
        """The model of a library. One without a POM needs nothing that is known.

        Raises: TidegateError DRIVER_UNRESOLVED, and what `load` raises.
        """
        model = self._models.get(coordinate)
        if model is None:
            model = self._models[coordinate] = self._build(coordinate)
        return model

    def _build(self, coordinate: Coordinate) -> Model:
        pom = self._load(coordinate)
        if pom is None:
            self._warn(f"{coordinate} has no POM: what else it needs is not known")
            return Model(coordinate)
        chain = self._with_parents(pom, coordinate)
        fill = _Filler(chain, coordinate)
        if pom.has_profiles:
            self._warn(f"{coordinate} has profiles with dependencies, which were not applied")
        relocation = None
        if pom.relocation is not None:
            names = [fill(name) for name in pom.relocation]
            given = [name or own for name, own in zip(names, coordinate, strict=True)]
            relocation = make_coordinate(*given, origin=f"the POM of {coordinate}")
        managed = self._managed(chain, fill, coordinate)
        dependencies: dict[DependencyKey, Dependency] = {}
        for each in chain:
            for dependency in each.dependencies:
                filled = fill.dependency(dependency)
                dependencies.setdefault(filled.key, _with_management(filled, managed))
        return Model(
            coordinate, fill(pom.packaging), managed, tuple(dependencies.values()), relocation
        )

    def _with_parents(self, pom: Pom, coordinate: Coordinate) -> list[Pom]:
        """The POM, its parent, and so on. Raises: TidegateError DRIVER_UNRESOLVED."""
        chain = [pom]
        seen = {coordinate}
        while chain[-1].parent is not None:
            fill = _Filler(chain, coordinate)
            parent = make_coordinate(
                *[fill(name) for name in chain[-1].parent], origin=f"the POM of {coordinate}"
            )
            if parent in seen or len(chain) > _MOST_PARENTS:
                raise TidegateError(
                    Code.DRIVER_UNRESOLVED,
                    f"The parents of the POM of {coordinate} form a circle, or are too many.",
                    hint="Use another version of the library, or another repository.",
                )
            seen.add(parent)
            found = self._load(parent)
            if found is None:
                self._warn(f"{parent}, a parent of the POM of {coordinate}, is not there")
                break
            chain.append(found)
        return chain

    def _managed(
        self, chain: list[Pom], fill: _Filler, coordinate: Coordinate
    ) -> dict[DependencyKey, Dependency]:
        """What `dependencyManagement` says: its own entries first, then those of its BOMs."""
        own: dict[DependencyKey, Dependency] = {}
        imported: list[Coordinate] = []
        for each in chain:
            for dependency in each.managed:
                filled = fill.dependency(dependency)
                if filled.scope != "import":
                    own.setdefault(filled.key, filled)
                elif filled.type == "pom":
                    names = filled.group, filled.artifact, filled.version
                    imported.append(make_coordinate(*names, origin=f"the POM of {coordinate}"))
        for bom in imported:
            if bom in self._importing or len(self._importing) > _MOST_IMPORTS:
                raise TidegateError(
                    Code.DRIVER_UNRESOLVED,
                    f"The BOMs that the POM of {coordinate} imports form a circle, or are too"
                    " many.",
                    hint="Use another version of the library, or another repository.",
                )
            self._importing.append(bom)
            try:
                for key, dependency in self.build(bom).managed.items():
                    own.setdefault(key, dependency)
            finally:
                self._importing.pop()
        return own


def _with_management(
    dependency: Dependency, managed: Mapping[DependencyKey, Dependency]
) -> Dependency:
    """What the dependency does not say itself is as it is managed."""
    rule = managed.get(dependency.key)
    if rule is None:
        return dependency
    return dependency._replace(
        version=dependency.version or rule.version,
        scope=dependency.scope or rule.scope,
        optional=dependency.optional or rule.optional,
        exclusions=dependency.exclusions or rule.exclusions,
    )


class _Filler:
    """Replaces `${name}` by properties of a POM and its parents, the nearest first."""

    def __init__(self, chain: list[Pom], coordinate: Coordinate) -> None:
        values: dict[str, str] = {}
        for pom in reversed(chain):
            values.update(pom.properties)
        own = {
            "groupId": coordinate.group,
            "artifactId": coordinate.artifact,
            "version": coordinate.version,
            "packaging": chain[0].packaging,
        }
        parent = chain[0].parent or ("", "", "")
        above = dict(zip(("groupId", "artifactId", "version"), parent, strict=True))
        for prefix in ("project.", "pom.", ""):
            for name, value in own.items():
                # A bare `version` may be a property of its own; `project.version` may not.
                values[prefix + name] = values.get(name, value) if not prefix else value
            for name, value in above.items():
                values[f"{prefix}parent.{name}"] = value
        self._values = values

    def __call__(self, text: str) -> str:
        """The text with values. A name that has none stays as it is, which is no name of a library
        and is refused where it would matter."""
        for _ in range(16):
            filled = _PROPERTY.sub(self._value, text)
            if filled == text or len(filled) > _LONGEST:
                return filled[:_LONGEST].strip()
            text = filled
        return text.strip()

    def _value(self, found: re.Match[str]) -> str:
        value = self._values.get(found[1].strip(), found[0])
        return value if len(value) <= _LONGEST else found[0]

    def dependency(self, dependency: Dependency) -> Dependency:
        return dependency._replace(
            group=self(dependency.group),
            artifact=self(dependency.artifact),
            version=self(dependency.version),
            type=self(dependency.type) or "jar",
            classifier=self(dependency.classifier),
            scope=self(dependency.scope),
            exclusions=tuple((self(group), self(name)) for group, name in dependency.exclusions),
        )
