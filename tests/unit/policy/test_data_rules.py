"""Which masks and filters bind whom."""

import pytest
from msgspec import structs

from support.memory_engine.language import LANGUAGE as MEMORY
from tidegate.config.loading import load
from tidegate.errors import Code, TidegateError
from tidegate.model.actors import Actor, RoleGrant, Scope
from tidegate.model.data_rules import DataRules
from tidegate.model.schema import Catalog, ColumnInfo, Counts, ForeignKey, Table
from tidegate.model.source_settings import Mask, RowFilter
from tidegate.model.sources import Source
from tidegate.policy.data_rules import (
    hides_something,
    may_use_table,
    rules_for,
    with_global_rules,
)
from tidegate.policy.visible_metadata import visible_metadata
from tidegate.sql.language import LANGUAGE as SQL

REPORTS = Actor("t1", "reports", Scope.READ_ONLY)
BOOKS = Actor("t2", "books", Scope.READ_ONLY)


def in_sql(actor, one):
    rules = rules_for(actor, one, SQL)
    assert hides_something(actor, one) is (rules is not None)
    return rules


def source(*rules, tags=()):
    masks = tuple(rule for rule in rules if isinstance(rule, Mask))
    filters = tuple(rule for rule in rules if isinstance(rule, RowFilter))
    return Source("s", "shop", "", "sqlite", "sqlite", tags=tags, masks=masks, filters=filters)


def test_a_source_without_rules_hides_nothing():
    assert in_sql(REPORTS, source()) is None


def test_a_rule_binds_every_token_unless_it_says_otherwise():
    one = source(Mask("a.b", "hash"))
    assert in_sql(REPORTS, one) == in_sql(BOOKS, one) == DataRules(masks=(("a.b", "hash"),))


def test_a_rule_of_some_tokens_binds_them_alone():
    one = source(Mask("a.b", tokens=("reports",)))
    assert in_sql(REPORTS, one) is not None
    assert in_sql(BOOKS, one) is None


def test_an_excepted_token_is_not_bound_even_if_it_is_named():
    one = source(Mask("a.b", tokens=("reports", "books"), except_tokens=("books",)))
    assert in_sql(REPORTS, one) is not None
    assert in_sql(BOOKS, one) is None


def person(name, *roles):
    return Actor(f"operator:{name}", name, Scope.READ_ONLY, kind="human", roles=roles)


@pytest.mark.parametrize(
    ("rule", "bound"),
    [
        (Mask("a.b"), "reports books Ann bob"),
        (Mask("a.b", tokens=("reports", "ann")), "reports"),
        (Mask("a.b", except_tokens=("reports", "Ann")), "books Ann bob"),
        (Mask("a.b", operators=("ann",)), "Ann"),
        (Mask("a.b", except_operators=("ANN", "reports")), "reports books bob"),
        (Mask("a.b", roles=("viewer",)), "bob"),
        (Mask("a.b", except_roles=("approver",)), "reports books bob"),
        (Mask("a.b", tokens=("books",), roles=("approver",)), "books Ann"),
        (Mask("a.b", roles=("viewer",), except_operators=("bob",)), ""),
        (RowFilter("a", "b = 1", roles=("viewer", "approver")), "Ann bob"),
    ],
)
def test_a_rule_may_name_operators_and_their_roles_on_the_source(rule, bound):
    elsewhere = frozenset({"crm"})
    ann = person("Ann", RoleGrant("approver", frozenset({"shop"})), RoleGrant("admin", elsewhere))
    bob = person("bob", RoleGrant("viewer"), RoleGrant("approver", elsewhere))
    callers = (REPORTS, BOOKS, ann, bob)
    found = [each.name for each in callers if in_sql(each, source(rule)) is not None]
    assert " ".join(found) == bound


RULES = [
    Mask("a.b", show="hash"),
    Mask("a.c", tokens=("reports",)),
    Mask("a.d", operators=("ann",)),
    Mask("a.e", except_tokens=("reports",)),
    Mask("a.f", except_operators=("ann",)),
    Mask("a.g", roles=("viewer",), tokens=("books",)),
    RowFilter("a", "owner = {actor.name}"),
    RowFilter("a", "b = 1", tokens=("reports",)),
    RowFilter("a", "b = 2", operators=("ann",)),
]


@pytest.mark.parametrize("token", [REPORTS, BOOKS])
@pytest.mark.parametrize("role", ["viewer", "admin"])
def test_what_an_operator_sees_of_a_callers_rows_is_bound_by_the_rules_of_both(token, role):
    ann = person("ann", RoleGrant(role))
    shop = source(*RULES)
    both = in_sql(structs.replace(token, seen_by=ann), shop)
    own, of_ann = in_sql(token, shop), in_sql(ann, shop)
    assert set(both.masks) == {*own.masks, *of_ann.masks}
    assert set(both.filters) == {*own.filters, *of_ann.filters}
    assert both.masks not in (own.masks, of_ann.masks)
    listed = structs.replace(token, tables=frozenset({"a"}), seen_by=ann)
    assert in_sql(listed, shop).only == ("a",)


def test_an_operator_without_a_role_on_the_source_is_bound_by_every_rule_that_excepts_it_not():
    nowhere = person("ann", RoleGrant("admin", frozenset({"crm"})))
    assert in_sql(nowhere, source(Mask("a.b", roles=("viewer",)))) is not None
    assert in_sql(nowhere, source(Mask("a.b", except_roles=("admin",)))) is not None
    assert in_sql(nowhere, source(Mask("a.b", except_operators=("ann",)))) is None


def test_a_rule_of_a_tag_binds_on_sources_of_that_tag():
    rule = Mask("a.b", tag="prod")
    plain = source()
    assert in_sql(REPORTS, with_global_rules(plain, (rule,), ())) is None
    prod = structs.replace(plain, tags=("prod",))
    assert in_sql(REPORTS, with_global_rules(prod, (rule,), ())) is not None


def test_the_actor_stands_in_a_filter_as_a_literal():
    one = source(RowFilter("a", "owner = {actor.name} OR id = {actor.id} AND x = '{1,2}'"))
    actor = Actor("t'9", "o'neil --", Scope.READ_ONLY)
    data_rules = in_sql(actor, one)
    assert data_rules is not None
    assert data_rules.filters[0][1] == "owner = 'o''neil --' OR id = 't''9' AND x = '{1,2}'"


def test_the_actor_stands_in_a_filter_as_the_language_writes_values():
    one = source(RowFilter("a", "owner {actor.name}"))
    data_rules = rules_for(Actor("t", "o'neil >", Scope.READ_ONLY), one, MEMORY)
    assert data_rules is not None
    assert data_rules.filters == (("a", "owner <o'neil \\>>"),)


@pytest.mark.parametrize("where", ["owner = '{actor.name}'", 'owner = "{actor.name}"',
                                   "owner = {actor.nmae}"])  # fmt: skip
def test_a_blank_in_quotes_or_of_no_meaning_is_refused(where):
    with pytest.raises(TidegateError) as caught:
        in_sql(REPORTS, source(RowFilter("a", where)))
    assert caught.value.code is Code.POLICY_MASKED


@pytest.mark.parametrize("name", ["a\\", "a\nb", "ü"])
def test_a_name_that_databases_could_read_differently_is_refused(name):
    with pytest.raises(TidegateError):
        in_sql(Actor("t", name, Scope.READ_ONLY), source(RowFilter("a", "b = {actor.name}")))


@pytest.mark.parametrize(
    ("rules", "said"),
    [
        ('"masks": [{"column": "email"}]', "names no column"),
        ('"masks": [{"column": "a.b", "show": "some"}]', "masks[0].show"),
        ('"masks": [{"colum": "a.b"}]', "masks[0].colum"),
        ('"masks": [{"column": "a.b", "roles": ["boss"]}]', "masks[0].roles"),
        ('"filters": [{"table": "a.b.c", "where": "true"}]', "names no table"),
        ('"filters": [{"table": "a", "where": " "}]', "no condition"),
    ],
)
def test_a_wrong_rule_in_the_settings_is_an_error(rules, said):
    with pytest.raises(TidegateError) as caught:
        load(f'{{"sources": [{{"name": "s", "url": "sqlite:////x", {rules}}}]}}')
    assert said in caught.value.message


def listed(*tables):
    return Actor("t3", "listed", Scope.READ_ONLY, tables=frozenset(tables))


def test_a_list_of_tables_binds_on_a_source_without_rules():
    data_rules = in_sql(listed("orders", "shop:sales.a", "crm:b"), source())
    assert data_rules == DataRules(only=("orders", "sales.a"))


def test_a_list_for_other_sources_admits_nothing_here():
    assert in_sql(listed("crm:b"), source()) == DataRules(only=())


def test_a_looked_up_table_is_on_the_list_by_its_schema_or_a_default_one():
    actor = listed("orders", "sales.a")
    assert may_use_table(actor, source(), "orders", "public", "shop")
    assert may_use_table(actor, source(), "a", "sales", "shop")
    assert not may_use_table(actor, source(), "orders", "sales", "shop")
    assert not may_use_table(actor, source(), "a", "public", "shop")
    assert may_use_table(REPORTS, source(), "a", "public", "shop")


def table(schema, name, *keys):
    return Table(schema, name, "table", foreign_keys=keys, reads=(("s", "secret"),))


def test_a_catalog_shows_listed_tables_and_no_name_of_another():
    key = ForeignKey("k", ("a",), "secret", ("id",))
    own = ForeignKey("o", ("b",), "Orders", ("id",), schema="s")
    tables = (table("s", "Orders", key, own), table("s", "secret"), table("t", "orders"))
    whole = Catalog("d", "s", ("s", "t"), tables, "1")
    seen = visible_metadata(whole, DataRules(only=("orders",)), None)
    assert [(each.schema, each.name) for each in seen.tables] == [("s", "Orders")]
    assert seen.tables[0].foreign_keys == (own,)
    assert seen.schemas == ("s",)
    assert "secret" not in repr(seen)
    counts = Counts({("s", "Orders"): 1, ("s", "secret"): 2})
    assert visible_metadata(counts, DataRules(only=("orders",)), None, whole) == Counts(
        {("s", "Orders"): 1}
    )
    assert visible_metadata(counts, DataRules(only=("orders",)), None) == Counts({})


def test_metadata_names_the_schema_that_the_actor_switched_to():
    whole = Catalog("d", "s", ("s", "t"), (table("s", "a"),), "1")
    assert visible_metadata(whole, None, "t") == structs.replace(whole, default_schema="t")
    assert visible_metadata(whole, None, None) == whole
    counts = Counts({("s", "a"): 1})
    assert visible_metadata(counts, None, "t") == counts


def test_a_default_of_a_masked_column_is_left_out_and_others_stay():
    columns = (
        ColumnInfo("email", "text", default="'a@b'"),
        ColumnInfo("note", "text", default="'none'"),
    )
    whole = Catalog("d", "s", ("s",), (Table("s", "people", "table", columns),), "1")
    seen = visible_metadata(whole, DataRules(masks=(("people.email", "nothing"),)), None)
    assert [each.default for each in seen.tables[0].columns] == [None, "'none'"]
    assert visible_metadata(whole, DataRules(), None) == whole


def test_a_default_is_left_out_of_copies_of_a_masked_table_and_of_views():
    def copied(name, *reads, kind="table", extra=None):
        columns = (ColumnInfo("email", "text", default="'a@b'", extra=extra),)
        return Table("s", name, kind, columns, reads=tuple(("s", read) for read in reads))

    tables = (
        copied("people"),
        copied("part", "people"),
        copied("part_of_part", "other", "part"),
        copied("ring", "ring"),
        copied("other"),
        copied("seen", "other", kind="view"),
        copied("made", "people", extra="generated always"),
    )
    whole = Catalog("d", "s", ("s",), tables, "1")
    seen = visible_metadata(whole, DataRules(masks=(("people.email", "nothing"),)), None)
    shown = {each.name: each.columns[0].default for each in seen.tables}
    hidden = {name for name, default in shown.items() if default is None}
    assert hidden == {"people", "part", "part_of_part", "seen"}


def test_where_rows_are_hidden_no_count_of_rows_is_shown():
    counted = structs.replace(table("s", "a"), approximate_rows=7)
    whole = Catalog("d", "s", ("s",), (counted,), "1")
    seen = visible_metadata(whole, DataRules(filters=(("a", "b = 1"),)), None)
    assert [each.approximate_rows for each in seen.tables] == [None]
    assert visible_metadata(whole, DataRules(masks=(("a.b", "nothing"),)), None) == whole
    counts = Counts({("s", "a"): 7})
    assert visible_metadata(counts, DataRules(filters=(("a", "b = 1"),)), None) == Counts({})


def test_a_name_that_could_be_two_tables_is_none():
    tables = (table("s", "A"), table("s", "a"))
    whole = Catalog("d", "s", ("s",), tables, "1")
    assert [each.name for each in visible_metadata(whole, DataRules(only=("a",)), None).tables] == [
        "a"
    ]
    twins = Catalog("d", "s", ("s",), (table("s", "aA"), table("s", "Aa")), "1")
    assert visible_metadata(twins, DataRules(only=("AA",)), None).tables == ()


@pytest.mark.parametrize(
    ("schema", "database", "may"),
    [
        (None, "shop", True),
        ("", "shop", True),
        ("public", "shop", True),
        ("main", None, True),
        ("shop", "shop", True),
        ("other", "shop", False),
        ("other", None, False),
        ("sales", "shop", False),
    ],
)
def test_a_listed_table_without_a_schema_is_of_the_usual_ones(schema, database, may):
    actor = Actor("t", "n", Scope.READ_ONLY, tables=frozenset({"t", "sales.u"}))
    assert may_use_table(actor, source(), "t", schema, database) is may
    assert may_use_table(actor, source(), "u", schema, database) is (schema == "sales")
    assert not may_use_table(actor, source(), "v", schema, database)
    assert may_use_table(REPORTS, source(), "v", schema, database)


def test_a_table_says_that_rows_of_it_may_be_hidden_and_no_count():
    tables = tuple([Table("s", name, "table", approximate_rows=9) for name in ("people", "notes")])
    whole = Catalog("d", "s", ("s",), tables, "1")
    seen = visible_metadata(whole, DataRules(filters=(("people", "id > 1"),)), None)
    assert [(each.name, each.filtered, each.approximate_rows) for each in seen.tables] == [
        ("people", True, None),
        ("notes", False, None),
    ]
