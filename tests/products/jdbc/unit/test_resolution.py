"""What a library needs, found from POMs in memory."""

from __future__ import annotations

from collections.abc import Iterable

import pytest

from support.maven_repository import managed, pom_of
from tidegate.errors import Code, TidegateError
from tidegate.products.jdbc.maven.coordinates import Coordinate, parse_coordinate, parse_coordinates
from tidegate.products.jdbc.maven.pom import ModelBuilder, Pom, parse_pom
from tidegate.products.jdbc.maven.resolution import Resolution, resolve


class Poms:
    """POMs by coordinate. `warnings` are those of the last resolution."""

    def __init__(self) -> None:
        self.content: dict[str, bytes] = {}
        self.warnings: list[str] = []
        self.newest = "9"

    def add(self, coordinate: str, inside: str = "", needs: Iterable[str] = ()) -> None:
        self.content[coordinate] = pom_of(coordinate, inside, needs)

    def _load(self, coordinate: Coordinate) -> Pom | None:
        content = self.content.get(str(coordinate))
        return None if content is None else parse_pom(content, coordinate)

    def resolve(self, asked: str) -> Resolution:
        self.warnings = []
        warn = self.warnings.append
        builder = ModelBuilder(self._load, warn)
        return resolve(
            parse_coordinates(asked), builder, lambda each: each._replace(version=self.newest), warn
        )

    def jars(self, asked: str) -> list[str]:
        return [str(each.coordinate) for each in self.resolve(asked).libraries if each.has_jar]

    def refuse(self, asked: str, reason: str) -> TidegateError:
        with pytest.raises(TidegateError, match=reason) as caught:
            self.resolve(asked)
        assert caught.value.code is Code.DRIVER_UNRESOLVED
        return caught.value


@pytest.fixture
def poms() -> Poms:
    return Poms()


def parent(coordinate: str) -> str:
    group, artifact, version = coordinate.split(":")
    return (
        f"<parent><groupId>{group}</groupId><artifactId>{artifact}</artifactId>"
        f"<version>{version}</version></parent>"
    )


def test_what_a_library_needs_comes_along_with_what_that_needs(poms: Poms) -> None:
    poms.add("g:driver:1", needs=["g:b:2", "h:c:3 scope=runtime"])
    poms.add("g:b:2", needs=["h:d:4 scope=compile"])
    poms.add("h:c:3")
    poms.add("h:d:4")
    assert poms.jars("g:driver:1") == ["g:driver:1", "g:b:2", "h:c:3", "h:d:4"]
    assert not poms.warnings


@pytest.mark.parametrize("scope", ["test", "provided", "system"])
def test_what_is_not_needed_to_run_is_left_out(poms: Poms, scope: str) -> None:
    poms.add("g:driver:1", needs=[f"g:b:2 scope={scope}"])
    assert poms.jars("g:driver:1") == ["g:driver:1"]


def test_what_is_optional_is_left_out_and_named(poms: Poms) -> None:
    poms.add("g:driver:1", needs=["g:b:2 optional", "g:c:3"])
    poms.add("g:c:3", needs=["g:d:4 optional", "g:driver:0 optional"])
    found = poms.resolve("g:driver:1")
    assert [each.coordinate.artifact for each in found.libraries] == ["driver", "c"]
    assert found.left_out == (
        "g:b (optional for g:driver:1)",
        "g:d (optional for g:c:3)",
    )


def test_the_nearest_of_several_versions_counts(poms: Poms) -> None:
    poms.add("g:driver:1", needs=["g:a:1", "g:c:1"])
    poms.add("g:a:1", needs=["g:c:2", "g:d:1"])
    for each in ("g:c:1", "g:c:2", "g:d:1"):
        poms.add(each)
    assert poms.jars("g:driver:1") == ["g:driver:1", "g:a:1", "g:c:1", "g:d:1"]


def test_the_first_of_equally_near_versions_counts(poms: Poms) -> None:
    poms.add("g:driver:1", needs=["g:a:1", "g:b:1"])
    poms.add("g:a:1", needs=["g:c:2"])
    poms.add("g:b:1", needs=["g:c:3"])
    poms.add("g:c:2")
    assert "g:c:2" in poms.jars("g:driver:1")


def test_what_is_asked_for_is_nearer_than_what_that_needs(poms: Poms) -> None:
    poms.add("g:driver:1", needs=["g:c:[1,2)"])
    poms.add("g:c:1.5")
    poms.refuse("g:driver:1", "g:c:.* is a range")
    assert poms.jars("g:driver:1,g:c:1.5") == ["g:driver:1", "g:c:1.5"]


def test_excluded_libraries_stay_out_however_deep(poms: Poms) -> None:
    poms.add("g:driver:1", needs=["g:a:1 without=h:*", "g:b:1 without=*:*"])
    poms.add("g:a:1", needs=["g:c:1"])
    poms.add("g:c:1", needs=["h:d:1", "i:e:1"])
    poms.add("g:b:1", needs=["i:f:1"])
    poms.add("i:e:1")
    assert poms.jars("g:driver:1") == ["g:driver:1", "g:a:1", "g:b:1", "g:c:1", "i:e:1"]


def test_circles_end(poms: Poms) -> None:
    poms.add("g:driver:1", needs=["g:a:1"])
    poms.add("g:a:1", needs=["g:b:1", "g:a:2"])
    poms.add("g:b:1", needs=["g:driver:2", "g:a:1"])
    assert poms.jars("g:driver:1") == ["g:driver:1", "g:a:1", "g:b:1"]


def test_a_parent_gives_versions_properties_and_dependencies(poms: Poms) -> None:
    poms.content["g:driver:1"] = (
        "<project>" + parent("g:top:7") + "<artifactId>driver</artifactId>"
        "<properties><b.version>3</b.version></properties><dependencies><dependency>"
        "<groupId>${project.groupId}</groupId><artifactId>b</artifactId>"
        "<version>${b.version}</version></dependency><dependency><groupId>g</groupId>"
        "<artifactId>c</artifactId></dependency></dependencies></project>"
    ).encode()
    inside = managed("g:c:${c.version}") + "<properties><c.version>${c.major}.5</c.version>"
    inside += "<c.major>4</c.major><b.version>2</b.version></properties>"
    poms.add("g:top:7", inside + parent("g:root:1"), needs=["g:d:${project.parent.version}"])
    poms.add("g:root:1", needs=["g:e:1"])
    assert poms.jars("g:driver:1") == [
        *("g:driver:1", "g:b:3", "g:c:4.5", "g:d:7", "g:e:1"),
    ]


def test_a_missing_parent_is_tolerated_with_a_warning(poms: Poms) -> None:
    poms.add("g:driver:1", parent("g:top:7"), needs=["g:b:2"])
    poms.add("g:b:2")
    assert poms.jars("g:driver:1") == ["g:driver:1", "g:b:2"]
    assert poms.warnings == ["g:top:7, a parent of the POM of g:driver:1, is not there"]


def test_a_library_without_a_pom_comes_alone_with_a_warning(poms: Poms) -> None:
    assert poms.jars("g:driver:1") == ["g:driver:1"]
    assert poms.warnings == ["g:driver:1 has no POM: what else it needs is not known"]


def test_a_dependency_without_any_version_is_refused_by_name(poms: Poms) -> None:
    poms.add("g:driver:1", needs=["g:b"])
    error = poms.refuse("g:driver:1", "g:b, which g:driver:1 needs, cannot be resolved")
    assert "g:b" in error.hint


def test_a_property_that_has_no_value_is_refused_where_it_matters(poms: Poms) -> None:
    poms.add("g:driver:1", needs=["g:b:${nothing}", "g:c:${nothing} scope=test"])
    poms.refuse("g:driver:1", r"g:b:\$\{nothing\}` in the POM of g:driver:1 is not a coordinate")


def test_a_bom_gives_versions_and_own_entries_come_first(poms: Poms) -> None:
    bom = managed("g:bom:1 type=pom scope=import", "g:b:2")
    poms.add("g:driver:1", bom, needs=["g:b", "g:c", "g:d"])
    poms.add("g:bom:1", managed("g:b:9", "g:c:3", "g:deep:1 type=pom scope=import"))
    poms.add("g:deep:1", managed("g:c:9", "g:d:4"))
    assert poms.jars("g:driver:1") == ["g:driver:1", "g:b:2", "g:c:3", "g:d:4"]


def test_the_first_pom_manages_what_is_needed_below_it(poms: Poms) -> None:
    poms.add("g:driver:1", managed("g:c:5", "g:d:1 without=g:e"), needs=["g:b:1"])
    poms.add("g:b:1", managed("g:c:6"), needs=["g:c", "g:d:1"])
    poms.add("g:d:1", needs=["g:e:1"])
    assert poms.jars("g:driver:1") == ["g:driver:1", "g:b:1", "g:c:5", "g:d:1"]


def test_circles_of_parents_and_boms_are_refused(poms: Poms) -> None:
    poms.add("g:driver:1", parent("g:top:1"))
    poms.add("g:top:1", parent("g:driver:1"))
    poms.refuse("g:driver:1", "parents of the POM of g:driver:1 form a circle")
    poms.add("g:other:1", managed("g:bom:1 type=pom scope=import"))
    poms.add("g:bom:1", managed("g:other:1 type=pom scope=import"))
    poms.refuse("g:other:1", "BOMs .* form a circle")


def test_endless_chains_of_parents_are_refused(poms: Poms) -> None:
    for at in range(100):
        poms.add(f"g:p{at}:1", parent(f"g:p{at + 1}:1"))
    poms.refuse("g:p0:1", "too many")


def test_a_library_that_was_moved_is_found_at_its_new_place(poms: Poms) -> None:
    moved = (
        "<distributionManagement><relocation><groupId>new</groupId>"
        "</relocation></distributionManagement>"
    )
    poms.add("old:driver:1", moved)
    poms.add("new:driver:1", needs=["new:b:1", "old:driver:1"])
    poms.add("new:b:1")
    assert poms.jars("old:driver:1") == ["new:driver:1", "new:b:1"]


def test_a_library_that_is_moved_in_a_circle_is_refused(poms: Poms) -> None:
    for here, there in (("a", "b"), ("b", "a")):
        poms.add(
            f"{here}:driver:1",
            f"<distributionManagement><relocation><groupId>{there}</groupId></relocation>"
            "</distributionManagement>",
        )
    poms.refuse("a:driver:1", "moved too many times")


def test_the_newest_version_is_looked_up(poms: Poms) -> None:
    poms.add("g:driver:9")
    assert poms.jars("g:driver:RELEASE") == ["g:driver:9"]
    assert poms.jars("g:driver:LATEST") == ["g:driver:9"]


def test_a_snapshot_that_is_needed_is_refused(poms: Poms) -> None:
    poms.add("g:driver:1", needs=["g:b:2-SNAPSHOT"])
    poms.refuse("g:driver:1", "SNAPSHOT")


def test_classifiers_are_libraries_of_their_own(poms: Poms) -> None:
    poms.add("g:driver:1", needs=["g:b:1", "g:b:1 classifier=linux"])
    poms.add("g:b:1")
    found = poms.resolve("g:driver:1").libraries
    assert [each.path for each in found][1:] == ["g/b/1/b-1.jar", "g/b/1/b-1-linux.jar"]


def test_a_classifier_that_leads_elsewhere_is_refused(poms: Poms) -> None:
    poms.add("g:driver:1", needs=["g:b:1 classifier=../../x"])
    poms.add("g:b:1")
    poms.refuse("g:driver:1", "classifier that is no plain name")


def test_a_pom_has_no_jar_but_what_it_needs_has(poms: Poms) -> None:
    poms.add("g:driver:1", needs=["g:all:1 type=pom"])
    poms.add("g:all:1", "<packaging>pom</packaging>", needs=["g:b:1"])
    poms.add("g:b:1", "<packaging>bundle</packaging>")
    assert poms.jars("g:driver:1") == ["g:driver:1", "g:b:1"]


def test_what_is_no_jar_is_left_out_with_a_warning(poms: Poms) -> None:
    poms.add("g:driver:1", needs=["g:b:1 type=zip"])
    poms.add("g:b:1")
    assert poms.jars("g:driver:1") == ["g:driver:1"]
    assert poms.warnings == ["g:b:1 is a file of the type zip, and left out"]


def test_profiles_are_not_applied_and_said(poms: Poms) -> None:
    profile = (
        "<profiles><profile><dependencies><dependency><groupId>g</groupId><artifactId>b"
        "</artifactId><version>1</version></dependency></dependencies></profile></profiles>"
    )
    poms.add("g:driver:1", profile)
    assert poms.jars("g:driver:1") == ["g:driver:1"]
    assert poms.warnings == ["g:driver:1 has profiles with dependencies, which were not applied"]


def test_a_flood_of_libraries_is_refused(poms: Poms) -> None:
    poms.add("g:driver:1", needs=[f"g:b{at}:1" for at in range(600)])
    poms.refuse("g:driver:1", "more than 500 libraries")


def test_properties_that_grow_without_end_are_cut(poms: Poms) -> None:
    inside = "".join(f"<p{at}>${{p{at + 1}}}${{p{at + 1}}}</p{at}>" for at in range(40))
    inside = f"<properties>{inside}<p40>x</p40><again>${{again}}</again></properties>"
    poms.add("g:driver:1", inside, needs=["g:b:${p0}"])
    poms.refuse("g:driver:1", "is not a coordinate")
    poms.add("g:other:1", inside, needs=["g:b:${again}"])
    poms.refuse("g:other:1", "is not a coordinate")


@pytest.mark.parametrize("name", ["../../etc", "a/b", "..", "a b"])
def test_names_that_lead_elsewhere_are_refused(poms: Poms, name: str) -> None:
    poms.add("g:driver:1", needs=[f"g:{name.replace(' ', '&#32;')}:1"])
    poms.refuse("g:driver:1", "is not a coordinate")


def test_a_web_page_is_no_pom(poms: Poms) -> None:
    poms.content["g:driver:1"] = b"<html><body>Sign in</body></html>"
    poms.refuse("g:driver:1", "is not a POM: its root element is `html`")
    assert parse_coordinate("g:driver:1").group == "g"
