"""Finds all libraries that some libraries need, each in one version.

Follows Maven's "Introduction to the Dependency Mechanism": of several versions the one that is
nearest to what was asked for counts, and of equally near ones the first. What is needed to compile
or run is taken; what is for tests, provided elsewhere or optional is not.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple

from tidegate.errors import Code, TidegateError
from tidegate.products.jdbc.maven.coordinates import (
    NEWEST,
    Coordinate,
    is_classifier,
    make_coordinate,
)
from tidegate.products.jdbc.maven.pom import Dependency, DependencyKey, Model, ModelBuilder, Warn

MOST_LIBRARIES = 500
_MOST_RELOCATIONS = 8
_JARS = frozenset({"jar", "bundle", "maven-plugin", "ejb", "eclipse-plugin", "test-jar"})
"""Types of a dependency, or kinds of packaging, whose file is a jar."""
_NOT_NEEDED = frozenset({"test", "provided", "system", "import"})


class Library(NamedTuple):
    """One that is needed. `needed_by` is the way to it from what was asked for, for messages;
    without `has_jar` it only lists what it needs itself."""

    coordinate: Coordinate
    classifier: str
    has_jar: bool
    needed_by: tuple[str, ...]

    @property
    def path(self) -> str:
        """Of its jar in a repository."""
        return self.coordinate.path("jar", self.classifier)


class Resolution(NamedTuple):
    """`left_out` names optional libraries that were not taken, with what could use them."""

    libraries: tuple[Library, ...]
    left_out: tuple[str, ...]


class _Wanted(NamedTuple):
    dependency: Dependency
    excluded: frozenset[tuple[str, str]]
    managed: Mapping[DependencyKey, Dependency]
    needed_by: tuple[str, ...]


Newest = Callable[[Coordinate], Coordinate]
"""The library in the version that RELEASE or LATEST means now. Raises: TidegateError."""


def resolve(
    asked: Iterable[Coordinate], builder: ModelBuilder, newest: Newest, warn: Warn
) -> Resolution:
    """All libraries that are needed, with those that were asked for first.

    Raises: TidegateError DRIVER_UNRESOLVED that names the library that cannot be resolved, and what
    the two functions raise.
    """
    return _Resolver(builder, newest, warn).run(asked)


class _Resolver:
    def __init__(self, builder: ModelBuilder, newest: Newest, warn: Warn) -> None:
        self._builder = builder
        self._newest = newest
        self._warn = warn
        self._chosen: dict[tuple[str, str, str], Library] = {}
        self._left_out: dict[str, None] = {}
        self._queue: deque[_Wanted] = deque()

    def run(self, asked: Iterable[Coordinate]) -> Resolution:
        for coordinate in asked:
            wanted = Dependency(*coordinate)
            self._queue.append(_Wanted(wanted, frozenset(), {}, ()))
        while self._queue:
            self._take(self._queue.popleft())
        taken = {str(each.coordinate).rpartition(":")[0] for each in self._chosen.values()}
        left_out = [text for text in self._left_out if text.partition(" ")[0] not in taken]
        libraries = dict.fromkeys(self._chosen.values())
        return Resolution(tuple(libraries), tuple(left_out))

    def _take(self, wanted: _Wanted) -> None:
        dependency = wanted.dependency
        name = dependency.group, dependency.artifact, dependency.classifier
        if name in self._chosen:
            return
        coordinate, model = self._located(wanted)
        moved = coordinate.group, coordinate.artifact, dependency.classifier
        if moved != name and _is_excluded(moved[:2], wanted.excluded):
            return
        known = self._chosen.get(moved)
        if known is not None:
            self._chosen[name] = known
            return
        has_jar = dependency.type in _JARS and (
            model.packaging in _JARS or bool(dependency.classifier)
        )
        if not has_jar and dependency.type != "pom" and model.packaging != "pom":
            self._warn(f"{coordinate} is a file of the type {dependency.type[:40]}, and left out")
            return
        classifier = dependency.classifier or ("tests" if dependency.type == "test-jar" else "")
        if classifier and not is_classifier(classifier):
            raise _unresolved(wanted, "it has a classifier that is no plain name")
        if len(self._chosen) >= MOST_LIBRARIES:
            raise _unresolved(wanted, f"more than {MOST_LIBRARIES} libraries are needed")
        library = Library(coordinate, classifier, has_jar, wanted.needed_by)
        self._chosen[name] = self._chosen[moved] = library
        self._want_all(wanted, library, model)

    def _located(self, wanted: _Wanted) -> tuple[Coordinate, Model]:
        """The library, where it is now. Raises: TidegateError DRIVER_UNRESOLVED."""
        dependency = wanted.dependency
        origin = f"the POM of {wanted.needed_by[-1]}" if wanted.needed_by else ""
        if not dependency.version:
            raise _unresolved(wanted, "no POM says in which version")
        names = dependency.group, dependency.artifact, dependency.version
        coordinate = make_coordinate(*names, origin=origin)
        for _ in range(_MOST_RELOCATIONS):
            if coordinate.version in NEWEST:
                coordinate = self._newest(coordinate)
            model = self._builder.build(coordinate)
            if model.relocation is None or model.relocation == coordinate:
                return coordinate, model
            coordinate = model.relocation
        raise _unresolved(wanted, "it was moved too many times")

    def _want_all(self, wanted: _Wanted, library: Library, model: Model) -> None:
        needed_by = (*wanted.needed_by, str(library.coordinate))
        is_first = not wanted.needed_by
        managed = model.managed if is_first else wanted.managed
        excluded = wanted.excluded | frozenset(wanted.dependency.exclusions)
        for each in model.dependencies:
            needed = each if is_first else _managed(each, managed)
            if needed.scope == "system":
                self._warn(
                    f"{needed.name}, which {library.coordinate} expects on the machine, is left out"
                )
            if needed.scope in _NOT_NEEDED or _is_excluded(needed.key[:2], excluded):
                continue
            if needed.optional:
                self._left_out[f"{needed.name} (optional for {library.coordinate})"] = None
                continue
            self._queue.append(_Wanted(needed, excluded, managed, needed_by))


def _managed(dependency: Dependency, managed: Mapping[DependencyKey, Dependency]) -> Dependency:
    """What the first POM manages counts for all libraries below it."""
    rule = managed.get(dependency.key)
    if rule is None:
        return dependency
    return dependency._replace(
        version=rule.version or dependency.version,
        scope=rule.scope or dependency.scope,
        exclusions=dependency.exclusions + rule.exclusions,
    )


def _is_excluded(name: tuple[str, ...], excluded: Iterable[tuple[str, str]]) -> bool:
    return any(
        group in ("*", name[0]) and artifact in ("*", name[1]) for group, artifact in excluded
    )


def _unresolved(wanted: _Wanted, reason: str) -> TidegateError:
    by = f", which {' > '.join(wanted.needed_by)} needs," if wanted.needed_by else ""
    name = wanted.dependency.name[:120]
    return TidegateError(
        Code.DRIVER_UNRESOLVED,
        f"{name}{by} cannot be resolved: {reason}.",
        hint=f"Add a coordinate of {name} with its version, after a comma.",
    )
