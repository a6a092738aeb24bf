"""Names of libraries, and their paths."""

from __future__ import annotations

import pytest

from tidegate.errors import Code, TidegateError
from tidegate.products.jdbc.maven.coordinates import (
    make_coordinate,
    parse_coordinate,
    parse_coordinates,
)


def test_a_coordinate_says_where_its_files_are() -> None:
    coordinate = parse_coordinate(" org.example.db:driver:1.2-rc+3 ")
    assert str(coordinate) == "org.example.db:driver:1.2-rc+3"
    assert coordinate.path("pom") == "org/example/db/driver/1.2-rc+3/driver-1.2-rc+3.pom"
    assert coordinate.path("jar", "all").endswith("/driver-1.2-rc+3-all.jar")


def test_several_coordinates_are_written_with_commas() -> None:
    assert [str(each) for each in parse_coordinates("a:b:1, c:d:2")] == ["a:b:1", "c:d:2"]


@pytest.mark.parametrize(
    "text",
    [
        *("", "a", "a:b", "a:b:", ":b:1", "a::1", "a:b:1:c", "a:b:1,"),
        *("../x:b:1", "a:../b:1", "a:b:../1", "a..b:c:1", ".a:b:1", "a.:b:1", "a:b:1..2"),
        *("a/b:c:1", "a:b/c:1", "a:b:1/2", "a\\b:c:1", "a:b:1\0", "a:b c:1", "a:b:%2e%2e"),
        *("ä:b:1", "a:b:" + "1" * 200, "a:${b}:1"),
    ],
)
def test_what_is_no_coordinate_is_refused(text: str) -> None:
    with pytest.raises(TidegateError) as caught:
        parse_coordinates(text)
    assert caught.value.code is Code.ARGUMENT_INVALID


@pytest.mark.parametrize("version", ["[1,2)", "(,1]", "[1,2),[3,4)", "[1,)"])
def test_a_range_is_refused_by_name(version: str) -> None:
    with pytest.raises(TidegateError, match="is a range"):
        make_coordinate("a", "b", version)


def test_a_range_of_one_version_is_that_version() -> None:
    assert make_coordinate("a", "b", "[1.5]").version == "1.5"


def test_a_snapshot_is_refused() -> None:
    with pytest.raises(TidegateError, match="SNAPSHOT, whose content changes"):
        parse_coordinate("a:b:1.0-SNAPSHOT")
