"""Attributes of a Datalog database in shorthand, and corrections of their names."""

from __future__ import annotations

import pytest

from tidegate.model.profiles import ColumnProfile
from tidegate.model.schema import Catalog, ColumnInfo, ForeignKey, Table
from tidegate.products.datalog.attributes import heading, table_line, unknown_attributes
from tidegate.products.datalog.language.query import judge_query
from tidegate.products.datalog.language.reader import read

PERSON = Table(
    "",
    "person",
    "table",
    (
        ColumnInfo(":person/name", "string", extra="unique identity, 4 facts"),
        ColumnInfo(":person/likes", "string", extra="many, full text, 9 facts"),
        ColumnInfo(":person/boss", "ref", extra="component, 3 facts"),
        ColumnInfo(":person/ssn", "string", extra="4 facts", masked="nothing"),
    ),
    foreign_keys=(ForeignKey(":person/boss", (":person/boss",), "person", ()),),
    approximate_rows=4,
)
CATALOG = Catalog("facts", "", ("",), (PERSON,), "1", dialect="datalog")


def test_a_namespace_is_one_line_with_whole_names() -> None:
    profile = {":person/likes": ColumnProfile(("tea",), more=True)}
    assert table_line(PERSON, profile) == (
        "person(:person/name string unique, :person/likes string many fulltext {tea,…},"
        " :person/boss ref component>person, :person/ssn string masked:nothing) ~4 entities"
    )
    assert table_line(PERSON, {}, only=[":person/name"]) == (
        "person(:person/name string unique, :person/boss ref component>person, +2 more) ~4 entities"
    )
    assert ":person/name" in heading([PERSON])
    assert heading([Table("", "x", "table", (PERSON.columns[3],))]) == ""


@pytest.mark.parametrize(
    ("named", "note"),
    [
        ({"person/name", "db/ident", "db.install/x"}, ""),
        ({"person/nmae"}, "no entity has :person/nmae (nearest: :person/name)"),
        ({"people/likes"}, "no entity has :people/likes (nearest: :person/likes)"),
        ({"Person/Name"}, "no entity has :Person/Name (nearest: :person/name)"),
        ({"zip"}, "no entity has :zip"),
        ({"a", "b", "c"}, "no entity has :a; no entity has :b; and 1 more"),
        ({"\u202ename"}, "no entity has :·name (nearest: :person/name)"),
        ({"x" * 5_000}, f"no entity has :{'x' * 100}"),
    ],
)
def test_an_unknown_attribute_is_said_with_the_nearest(named: set[str], note: str) -> None:
    assert unknown_attributes(named, CATALOG) == note


@pytest.mark.parametrize(
    ("query", "placed"),
    [
        ("[:find ?e :where [?e :a :color/red]]", {"a"}),
        ("[:find ?e :where [[:user/mail 1] :a ?e]]", {"a"}),
        ("[:find (pull ?e [:b {:c/_d [:e]}]) :where (not [?e :a])]", {"a", "b", "c/d", "e"}),
        ("[:find ?v :where [?e _ _] [(get-else $ ?e :f 0) ?v]]", {"f"}),
    ],
)
def test_only_what_stands_where_an_attribute_does_is_looked_up(
    query: str, placed: set[str]
) -> None:
    assert judge_query(read(query)).placed == placed
