"""Rewriting a statement under data rules: what rules must fit, what names mean, what is kept."""

import pytest

from tidegate.errors import Code, TidegateError
from tidegate.model.data_rules import DataRules
from tidegate.model.schema import Catalog, ColumnInfo, Table
from tidegate.model.statements import Statement
from tidegate.sql.masking.rewrite import rewrite, rewrite_explained

KEY = "0123456789abcdef0123456789abcdef"


def _table(name, *columns, schema="public", kind="table", **more):
    return Table(schema, name, kind, tuple(ColumnInfo(c, "text") for c in columns), **more)


PEOPLE = _table("people", "id", "email", "Team")
PLACES = _table("places", "id", "city")
CATALOG = Catalog("db", "public", ("public",), (PEOPLE, PLACES), "1")
MASK = DataRules(masks=(("people.email", "nothing"),))
FILTER = DataRules(filters=(("people", "\"Team\" = 'a'"),))
HIDDEN = (
    '(SELECT "people"."id" AS "id", CAST(NULL AS text) AS "email", "people"."Team" AS "Team"'
    ' FROM "public"."people")'
)


def put(text, data_rules=MASK, catalog=CATALOG, dialect="postgres", **more):
    return rewrite(Statement(text), dialect, data_rules, catalog, KEY, **more).text


def refused(*arguments, **more):
    with pytest.raises(TidegateError) as caught:
        put(*arguments, **more)
    assert caught.value.code is Code.POLICY_MASKED
    return caught.value


def test_only_the_name_of_the_table_is_replaced():
    text = "select  p.Id -- so\n from people p where p.email='a''b' /* as is */"
    assert put(text) == text.replace("people p", f"{HIDDEN} p")


def test_a_table_without_alias_keeps_its_name():
    assert put("SELECT people.id FROM People") == (f'SELECT people.id FROM {HIDDEN} AS "people"')


def test_what_touches_nothing_hidden_stays_the_same_text():
    text = "SELECT city FROM places WHERE id IN (1, 2)"
    assert put(text) is text


def test_a_schema_before_a_column_goes_with_the_table():
    assert put("SELECT public.people.id FROM public.people") == (
        f'SELECT people.id FROM {HIDDEN} AS "people"'
    )


def test_a_filter_stands_inside_and_behind_a_fence():
    text = put("SELECT id FROM people WHERE id = '1'", FILTER)
    assert (
        """FROM "public"."people" WHERE ("Team" = 'a'\n) OFFSET 0 /* as stored */) AS q""" in text
    )


def test_the_strictest_of_several_masks_of_a_column_holds():
    data_rules = DataRules(masks=(("people.email", "partial"), ("public.people.email", "nothing")))
    assert HIDDEN in put("SELECT * FROM people", data_rules)


@pytest.mark.parametrize(
    ("data_rules", "named"),
    [
        (DataRules(masks=(("people.mail", "hash"),)), "people.mail"),
        (DataRules(masks=(("persons.email", "hash"),)), "persons.email"),
        (DataRules(masks=(("other.people.email", "hash"),)), "other.people.email"),
        (DataRules(filters=(("persons", "true"),)), "persons"),
        (DataRules(filters=(("people", "tem = 'a'"),)), "tem"),
        (DataRules(filters=(("people", "true) OR (true"),)), "people"),
        (DataRules(filters=(("people", "true) UNION SELECT (1"),)), "people"),
        (DataRules(filters=(("people", "true; DELETE FROM people"),)), "people"),
        (DataRules(filters=(("people", "true --"),)), None),
        (DataRules(filters=(("people", "nextval('s') > 1"),)), "people"),
        (DataRules(filters=(("people", "evil(id)"),)), "people"),
        (DataRules(filters=(("people", "id IN (SELECT x FROM places)"),)), "x"),
        (DataRules(filters=(("people", ""),)), "people"),
    ],
)
def test_a_rule_that_does_not_fit_closes_the_source(data_rules, named):
    if named is None:
        assert "true --\n)" in put("SELECT id FROM people", data_rules)
        return
    assert named in refused("SELECT city FROM places", data_rules).message


def test_tables_in_a_filter_cannot_be_replaced_by_a_cte_of_the_callers():
    data_rules = DataRules(filters=(("people", "id IN (SELECT id FROM places WHERE city = 'x')"),))
    text = put("WITH places AS (SELECT '1' AS id) SELECT * FROM people", data_rules)
    assert '(SELECT id FROM "public"."places" WHERE city' in text


def test_a_rule_without_schema_binds_the_table_in_every_schema():
    other = _table("people", "id", "email", schema="archive")
    catalog = Catalog("db", "public", ("public", "archive"), (PEOPLE, other), "1")
    assert '"archive"."people"' in put("SELECT * FROM archive.people", MASK, catalog)
    assert '"public"."people"' in put("SELECT * FROM people", MASK, catalog)


def test_a_twin_of_a_hidden_table_is_named_in_full():
    data_rules = DataRules(masks=(("public.people.email", "nothing"),))
    other = _table("people", "id", "email", schema="archive")
    catalog = Catalog("db", "archive", ("public", "archive"), (PEOPLE, other), "1")
    assert put("SELECT id FROM people", data_rules, catalog) == 'SELECT id FROM "archive"."people"'
    assert HIDDEN in put("SELECT id FROM people", data_rules, catalog, schema="public")
    refused("SELECT id FROM people", data_rules, catalog, schema="nowhere")


def test_a_view_is_read_through_its_definition():
    view = _table("mails", "mail", kind="view", definition="SELECT email FROM people;")
    catalog = Catalog("db", "public", ("public",), (PEOPLE, view), "1")
    assert put("SELECT * FROM mails", MASK, catalog) == (
        'SELECT * FROM (WITH "mails__"("mail") AS (SELECT email FROM'
        f' {HIDDEN} AS "people"\n) SELECT * FROM "mails__") AS "mails"'
    )


@pytest.mark.parametrize("definition", [None, "SELECT evil(id) FROM places", "nonsense ("])
def test_a_view_that_cannot_be_followed_is_refused(definition):
    view = _table("mails", "mail", kind="view", definition=definition)
    catalog = Catalog("db", "public", ("public",), (PEOPLE, PLACES, view), "1")
    refused("SELECT * FROM mails", MASK, catalog)


def test_a_view_that_leads_to_itself_is_refused():
    view = _table("mails", "id", kind="view", definition="SELECT id FROM mails")
    catalog = Catalog("db", "public", ("public",), (PEOPLE, view), "1")
    refused("SELECT * FROM mails", MASK, catalog)


def test_parts_of_a_masked_table_are_refused_and_so_is_what_it_is_a_part_of():
    part = _table("part", "id", "email", "Team", reads=(("public", "people"),))
    above = _table("above", "id", "email")
    people = _table("people", "id", "email", "Team", reads=(("public", "above"),))
    catalog = Catalog("db", "public", ("public",), (people, part, above), "1")
    refused("SELECT * FROM part", MASK, catalog)
    refused("SELECT * FROM above", MASK, catalog)
    assert put("SELECT id FROM people", MASK, catalog)


HASHED = DataRules(masks=(("people.email", "hash"),))


def bound(text, dialect, *params):
    return rewrite(Statement(text, params or None), dialect, HASHED, CATALOG, KEY)


def test_a_plan_has_no_key_in_it():
    statement = Statement("SELECT email FROM people")
    written = rewrite_explained(statement, "sqlite", HASHED, CATALOG, KEY)
    assert KEY not in written.text
    assert written.params is None
    assert written.text.startswith("SELECT email FROM (SELECT")


@pytest.mark.parametrize("dialect", ["sqlite", "postgres", "duckdb", "mysql"])
def test_the_key_of_hashes_is_a_parameter_and_in_no_text(dialect):
    text = "SELECT email FROM people JOIN (SELECT email AS e FROM people) o ON e = email"
    written = bound(text, dialect)
    assert KEY not in written.text
    assert "\0" not in written.text
    assert set(written.params) == {KEY}


@pytest.mark.needs("duckdb")
def test_the_key_stands_behind_the_numbered_parameters_of_the_caller():
    for dialect in ("postgres", "duckdb"):
        written = bound("SELECT email FROM people WHERE id = $2 OR id = $1", dialect, 1, 2)
        assert written.params == (1, 2, KEY)
        assert "$3" in written.text
        assert written.text.endswith("WHERE id = $2 OR id = $1")


@pytest.mark.needs("mysql")
def test_plain_parameters_keep_their_order_around_the_key():
    text = "SELECT ?, email FROM people WHERE id = ? AND email = (SELECT max(email) FROM people)"
    assert bound(text, "mysql", "a", 2).params == ("a", KEY, 2, KEY)
    written = bound(text, "sqlite", "a", 2)
    assert written.params == ("a", 2, KEY)
    assert written.text.startswith("SELECT ?1, email FROM (SELECT")
    assert "tidegate_hash(?3," in written.text
    assert "id = ?2 AND" in written.text


def test_names_of_parameters_get_the_numbers_that_sqlite_gives_them():
    written = bound("SELECT :a, $b, ?1, :a, ?, email FROM people", "sqlite", 1, 2, 3)
    assert written.text.startswith("SELECT ?1, ?2, ?1, ?1, ?3, email FROM (SELECT")
    assert written.params == (1, 2, 3, KEY)


@pytest.mark.parametrize(
    ("dialect", "text", "params"),
    [
        ("postgres", "SELECT $1, email FROM people", ()),
        ("postgres", "SELECT $2, email FROM people WHERE id = $1", (1,)),
        ("postgres", "SELECT $0, email FROM people", ()),
        ("duckdb", "SELECT $1, email FROM people", ()),
        ("duckdb", "SELECT $key, email FROM people", ()),
        ("sqlite", "SELECT ?, email FROM people", ()),
        ("sqlite", "SELECT ?2, email FROM people", (1,)),
        ("sqlite", "SELECT :key, ?, email FROM people", (1,)),
        ("sqlite", "SELECT email FROM people", (1,)),
        ("mysql", "SELECT email, ? FROM people", ()),
        ("mysql", "SELECT ?, email, ? FROM people", (1,)),
    ],
)
def test_no_placeholder_of_the_caller_takes_the_key(dialect, text, params):
    with pytest.raises(TidegateError) as caught:
        bound(text, dialect, *params)
    assert caught.value.code is Code.ARGUMENT_INVALID


def test_a_key_that_is_too_short_is_refused():
    with pytest.raises(TidegateError):
        rewrite(Statement("SELECT 1"), "postgres", MASK, CATALOG, "x' OR 'x' = 'x")


@pytest.mark.parametrize("dialect", ["sqlite", "duckdb", "mysql"])
def test_a_column_without_a_name_is_called_by_what_was_written(dialect):
    data_rules = DataRules(masks=(("people.email", "hash"),))
    quote = "`" if dialect == "mysql" else '"'
    text = put("SELECT (SELECT max(email) FROM people), 1 FROM places", data_rules, dialect=dialect)
    assert f") AS {quote}(SELECT max(email) FROM people){quote}, 1 FROM places" in text
    kept = put(
        "SELECT (SELECT max(email) FROM people) AS m FROM places", data_rules, dialect=dialect
    )
    assert kept.endswith(") AS m FROM places")


def test_a_new_catalog_is_looked_at_again():
    assert put("SELECT id FROM people")
    grown = Catalog("db", "public", ("public",), (_table("people", "id"), PLACES), "2")
    refused("SELECT id FROM people", MASK, grown)


@pytest.mark.parametrize("dialect", ["postgres", "mysql", "sqlite", "duckdb"])
@pytest.mark.parametrize(
    "text",
    [
        "INSERT INTO places TABLE people",
        "INSERT INTO places SELECT id, email FROM people",
        "INSERT INTO places VALUES ('1', (SELECT max(email) FROM people))",
        "INSERT INTO people VALUES ('1', '2', '3')",
        "UPDATE places SET city = 'x' WHERE id IN (SELECT id FROM people WHERE email = 'x')",
        "UPDATE people SET email = '1' WHERE id = '2'",
        "DELETE FROM people WHERE email = '1'",
        "WITH c AS (SELECT * FROM people) DELETE FROM places WHERE id IN (SELECT id FROM c)",
    ],
)
def test_a_change_that_uses_a_masked_table_is_refused(text, dialect):
    refused(text, dialect=dialect)


@pytest.mark.parametrize(
    "text",
    [
        "REPLACE people VALUES ('1', '2', '3')",
        "REPLACE LOW_PRIORITY people (id) SELECT id FROM places",
        "REPLACE INTO places SELECT id, email FROM people",
        "UPDATE IGNORE people SET email = '1'",
        "DELETE IGNORE FROM people WHERE email = '1'",
    ],
)
def test_a_change_that_cannot_be_followed_is_refused(text):
    refused(text, dialect="mysql")


@pytest.mark.parametrize("dialect", ["postgres", "mysql", "sqlite", "duckdb"])
@pytest.mark.parametrize(
    "text",
    [
        "INSERT INTO places (id, city) VALUES ('1', 'x')",
        "UPDATE places SET city = 'people' WHERE id = '1'",
        "DELETE FROM places WHERE id IN (SELECT id FROM places WHERE city = 'x')",
        "BEGIN",
        "COMMIT",
    ],
)
def test_a_change_of_other_tables_stays_as_it_is(text, dialect):
    assert put(text, dialect=dialect) is text


def test_a_bare_name_after_in_is_a_table_of_sqlite():
    refused("DELETE FROM places WHERE id IN people", dialect="sqlite")
    refused("SELECT city FROM places WHERE id IN people", dialect="sqlite")


def test_a_change_that_begins_with_expressions_uses_no_table_with_rules():
    text = "WITH x AS (SELECT 1 AS id) INSERT INTO places (id) SELECT id FROM x"
    assert put(text) == text
    refused("WITH x AS (SELECT email FROM people) INSERT INTO places (city) SELECT email FROM x")
    refused("WITH people AS (SELECT 1 AS id) DELETE FROM people")
    refused("WITH x AS (SELECT 1 AS id) UPDATE people SET email = 1")
    refused('WITH "places" AS (SELECT 1 AS id) INSERT INTO places (id) SELECT id FROM people')
    refused("WITH x AS (DELETE FROM places RETURNING *) SELECT * FROM x")


@pytest.mark.needs("duckdb", "mysql")
def test_a_mask_leaves_a_table_of_that_name_alone_that_lacks_the_column():
    other = _table("people", "id", "name", schema="archive")
    catalog = Catalog("db", "public", ("public", "archive"), (PEOPLE, PLACES, other), "1")
    for dialect in ("postgres", "mysql", "duckdb"):
        quote = "`" if dialect == "mysql" else '"'
        named = f"{quote}archive{quote}.{quote}people{quote}"
        text = put("SELECT name FROM archive.people", MASK, catalog, dialect=dialect)
        assert text == f"SELECT name FROM {named}"
        assert put("SELECT city FROM places", MASK, catalog, dialect=dialect)
        assert "SELECT email FROM (SELECT" in put(
            "SELECT email FROM people", MASK, catalog, dialect=dialect
        )
        change = "UPDATE archive.people SET name = 'x'"
        assert put(change, MASK, catalog, dialect=dialect) == change
    refused("SELECT * FROM people", DataRules(masks=(("archive.people.email", "hash"),)), catalog)


def test_a_table_that_a_filter_does_not_fit_is_refused_alone():
    other = _table("people", "id", schema="archive")
    catalog = Catalog("db", "public", ("public", "archive"), (PEOPLE, PLACES, other), "1")
    assert put("SELECT city FROM places", FILTER, catalog) == "SELECT city FROM places"
    assert "OFFSET 0" in put("SELECT id FROM people", FILTER, catalog)
    assert "Team" in refused("SELECT id FROM archive.people", FILTER, catalog).message
    refused("DELETE FROM archive.people", FILTER, catalog)


def test_under_a_list_of_tables_only_types_of_their_columns_are_cast_to():
    kinds = (ColumnInfo("id", "integer"), ColumnInfo("mood", "public.mood"))
    catalog = Catalog("db", "public", ("public",), (Table("public", "moods", "table", kinds),), "1")
    only = DataRules(only=("moods",))
    text = "SELECT id FROM moods WHERE mood = 'glad'::mood"
    assert put(text, only, catalog) == text
    with pytest.raises(TidegateError) as caught:
        put(text.replace("::mood", "::secrets"), only, catalog)
    assert caught.value.code is Code.POLICY_TABLE


@pytest.mark.parametrize(
    ("dialect", "name"), [("mysql", "@t"), ("postgres", "$1"), ("sqlite", ":t"), ("sqlite", "?")]
)
def test_a_table_whose_name_is_a_parameter_is_refused(dialect, name):
    error = refused(f"SELECT * FROM {name}", dialect=dialect)
    assert "cannot be followed" in error.message


def test_under_a_list_of_tables_a_query_may_name_itself_where_it_recurs():
    inner = "SELECT id FROM places UNION ALL (SELECT id FROM places UNION SELECT id FROM c)"
    text = f"WITH RECURSIVE c AS ({inner}) SELECT id FROM c"
    only = DataRules(only=("places",))
    assert put(text, only) == text
    with pytest.raises(TidegateError) as caught:
        put(text.replace("RECURSIVE ", ""), only)
    assert caught.value.code is Code.POLICY_TABLE


@pytest.mark.parametrize(
    "rest",
    [
        "", ", 2", " FROM places", " WHERE true", " GROUP BY 1", " HAVING true", " ORDER BY 1",
        " LIMIT 1", " UNION SELECT 'a'", " EXCEPT SELECT 'a'", " INTERSECT SELECT 'a'",
    ],
)  # fmt: skip
@pytest.mark.parametrize("dialect", ["sqlite", "duckdb"])
def test_a_column_without_a_name_keeps_its_text_as_its_name(dialect: str, rest: str) -> None:
    written = "(SELECT max(email) FROM people)"
    text = put(f"SELECT {written}{rest}", dialect=dialect)
    assert text.endswith(f' AS "people") AS "{written}"{rest}')
