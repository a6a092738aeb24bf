"""A change is taken back whole and exactly, or not at all and for a reason that is given."""

import pytest

from support.undo_shops import AGENT, OTHER, PERSON, READER, Kind, Shop, gate_of
from tidegate.errors import Code, TidegateError
from tidegate.model.changes import DescribeUndo, ListChanges, UndoChange
from tidegate.model.requests import Query
from tidegate.model.statements import Statement

CHANGES = (
    "UPDATE items SET name = 'new', price = price + 1",
    "UPDATE items SET price = NULL WHERE id = 2",
    "DELETE FROM items WHERE id < 3",
    "DELETE FROM items",
    "INSERT INTO items (id, name) VALUES (7, 'seven'), (8, NULL)",
    "INSERT INTO items SELECT id + 10, name, price FROM items",
    "UPDATE notes SET note = 'other' WHERE a = 1",
    "DELETE FROM notes WHERE b = 'x'",
    "INSERT INTO notes VALUES (9, 'z', 'new')",
)


@pytest.mark.parametrize("text", CHANGES)
async def test_a_change_is_taken_back_exactly(shop: Shop, text: str) -> None:
    before = shop.contents("items", "notes")
    async with gate_of(shop) as gate:
        page = await gate.change(text)
        changed = shop.contents("items", "notes")
        assert page.change and changed != before
        done = await gate.undo(page.change)
        assert shop.contents("items", "notes") == before
        assert (done.undone, done.rows) == (page.change, page.affected)


async def test_an_undo_is_a_change_that_can_be_taken_back(shop: Shop) -> None:
    before = shop.contents("items")
    async with gate_of(shop) as gate:
        page = await gate.change("DELETE FROM items WHERE id = 1")
        changed = shop.contents("items")
        first = await gate.undo(page.change)
        assert shop.contents("items") == before
        again = await gate.undo(first.change)
        assert shop.contents("items") == changed
        await gate.undo(again.change)
        assert shop.contents("items") == before
        listed = {entry.id: entry for entry in await gate.changes()}
        assert listed[page.change].undone_by == first.change
        assert listed[first.change].undoes == page.change


async def test_a_change_is_taken_back_once(shop: Shop) -> None:
    async with gate_of(shop) as gate:
        page = await gate.change("UPDATE items SET price = 0 WHERE id = 1")
        await gate.undo(page.change)
        after = shop.contents("items")
        error = await gate.error(UndoChange(page.change))
        assert error.code is Code.UNDO_UNAVAILABLE and "already" in error.message
        assert shop.contents("items") == after


@pytest.mark.parametrize(
    ("meanwhile", "problem", "key"),
    [
        ("UPDATE items SET name = 'mine' WHERE id = 1", "changed", "id = 1"),
        ("DELETE FROM items WHERE id = 2", "gone", "id = 2"),
    ],
)
async def test_a_row_that_has_changed_since_prevents_it_whole(
    shop: Shop, meanwhile: str, problem: str, key: str
) -> None:
    async with gate_of(shop) as gate:
        page = await gate.change("UPDATE items SET price = 5 WHERE id < 3")
        shop.script(meanwhile)
        before = shop.contents("items")
        preview = await gate.ask(DescribeUndo(page.change))
        assert not preview.possible and preview.conflict_count == 1
        error = await gate.error(UndoChange(page.change))
        assert error.code is Code.UNDO_CONFLICT
        assert error.details["count"] == 1
        (row,) = error.details["rows"]
        assert (row["key"], row["problem"]) == (key, problem) and "items" in row["table"]
        assert key in error.message
        assert shop.contents("items") == before
        (entry,) = await gate.changes()
        assert entry.state == "done"


async def test_a_deleted_row_that_is_there_again_prevents_it(shop: Shop) -> None:
    async with gate_of(shop) as gate:
        page = await gate.change("DELETE FROM items WHERE id < 3")
        shop.script("INSERT INTO items VALUES (2, 'another', 1)")
        before = shop.contents("items")
        error = await gate.error(UndoChange(page.change))
        assert error.code is Code.UNDO_CONFLICT
        assert error.details["rows"][0]["problem"] == "exists"
        assert shop.contents("items") == before


async def test_values_of_every_type_come_back_exactly(shop: Shop, kind: Kind) -> None:
    shop.script(kind.types.table)
    async with gate_of(shop) as gate:
        inserted = await gate.change(kind.types.insert)
        there = shop.contents("everything")
        for text in (kind.types.update, "DELETE FROM everything"):
            page = await gate.change(text)
            assert page.change, (await gate.changes(), text)
            assert shop.contents("everything") != there
            await gate.undo(page.change)
            assert shop.contents("everything") == there, text
        await gate.undo(inserted.change)
        assert shop.contents("everything") == {"everything": []}


async def test_the_rows_can_be_seen_before(shop: Shop) -> None:
    async with gate_of(shop) as gate:
        page = await gate.change("UPDATE items SET name = 'new' WHERE id = 1")
        preview = await gate.ask(DescribeUndo(page.change))
        assert preview.possible and preview.entry.id == page.change
        (table,) = preview.tables
        names = table.columns
        assert dict(zip(names, table.after[0], strict=True))["name"] == "new"
        assert dict(zip(names, table.before[0], strict=True))["name"] == "one"
        assert shop.rows("SELECT name FROM items WHERE id = 1") == [("new",)]


async def test_ten_thousand_rows_are_taken_back(shop: Shop) -> None:
    rows = ", ".join(f"({number}, {number})" for number in range(10_000))
    shop.script(f"INSERT INTO many VALUES {rows}")
    before = shop.contents("many")
    async with gate_of(shop) as gate:
        page = await gate.change("UPDATE many SET value = value + 1")
        assert page.affected == 10_000
        done = await gate.undo(page.change)
        assert done.rows == 10_000
        assert shop.contents("many") == before


async def test_a_table_without_a_key_cannot_be_taken_back(shop: Shop) -> None:
    async with gate_of(shop) as gate:
        page = await gate.change("DELETE FROM loose")
        assert page.affected == 2 and page.change == ""
        assert await gate.changes() == ()


async def test_a_change_that_cannot_be_taken_back_is_refused_where_that_is_required(
    shop: Shop,
) -> None:
    before = shop.contents("loose", "items")
    async with gate_of(shop, undo="require") as gate:
        error = await gate.error(Query(Statement("DELETE FROM loose")))
        assert error.code is Code.UNDO_UNAVAILABLE and "key" in error.message
        assert shop.contents("loose", "items") == before
        assert (await gate.change("DELETE FROM items WHERE id = 1")).change


async def test_a_change_larger_than_the_bound_is_not_kept(shop: Shop) -> None:
    before = shop.contents("items")
    large = "UPDATE items SET name = '" + "x" * 190 + "'"
    bound = {"undo": {"max_bytes": 1_024}}
    shop.script("INSERT INTO items VALUES (4, 'four', 1), (5, 'five', 1), (6, 'six', 1)")
    more = shop.contents("items")
    async with gate_of(shop, undo="require", config=bound) as gate:
        error = await gate.error(Query(Statement(large)))
        assert error.code is Code.UNDO_UNAVAILABLE and "max_bytes" in error.message
        assert shop.contents("items") == more != before
    async with gate_of(shop, config=bound) as gate:
        page = await gate.change(large)
        assert page.affected == 6 and page.change == ""


async def test_another_definition_of_the_table_prevents_it(shop: Shop) -> None:
    async with gate_of(shop) as gate:
        page = await gate.change("UPDATE items SET price = 5 WHERE id = 1")
        shop.script("ALTER TABLE items ADD COLUMN more INTEGER")
        before = shop.contents("items")
        error = await gate.error(UndoChange(page.change))
        assert error.code is Code.UNDO_UNAVAILABLE and "definition" in error.message
        assert shop.contents("items") == before


async def test_a_change_that_touches_no_row_leaves_nothing(shop: Shop) -> None:
    async with gate_of(shop) as gate:
        page = await gate.change("UPDATE items SET price = 1 WHERE id = 99")
        assert (page.affected, page.change) == (0, "")
        assert await gate.changes() == ()


async def test_a_statement_that_fails_leaves_nothing(shop: Shop) -> None:
    before = shop.contents("items")
    async with gate_of(shop) as gate:
        text = "INSERT INTO items (id) VALUES (50), (1)"
        error = await gate.error(Query(Statement(text)))
        assert error.code is Code.SQL_FAILED
        assert await gate.changes() == ()
        assert shop.contents("items") == before


async def test_a_source_without_the_setting_keeps_nothing(shop: Shop) -> None:
    async with gate_of(shop, undo="off") as gate:
        page = await gate.change("DELETE FROM items WHERE id = 1")
        assert (page.affected, page.change) == (1, "")
        assert await gate.changes() == ()
    assert not (shop.directory / "state" / "undo.key").exists()


async def test_returned_rows_are_those_of_the_change_and_are_kept_as_well(shop: Shop) -> None:
    if shop.name == "mysql":
        text = "DELETE FROM items WHERE id = 1 RETURNING id, name"
    else:
        text = "UPDATE items SET price = 99 WHERE id = 1 RETURNING id, name"
    before = shop.contents("items")
    async with gate_of(shop) as gate:
        page = await gate.change(text)
        assert page.rows == b'[[1,"one"]]' and page.change
        await gate.undo(page.change)
        assert shop.contents("items") == before


async def test_parameters_are_passed_on(shop: Shop) -> None:
    numbered, plain = (
        "UPDATE items SET name = $1 WHERE id = $2",
        ("UPDATE items SET name = ? WHERE id = ?"),
    )
    texts = {"postgres": (numbered,), "duckdb": (numbered, plain)}.get(shop.name, (plain,))
    before = shop.contents("items")
    async with gate_of(shop) as gate:
        for text in texts:
            page = await gate.ask(Query(Statement(text, ("given", 2))))
            assert (page.affected, bool(page.change)) == (1, True)
            assert shop.rows("SELECT name FROM items WHERE id = 2") == [("given",)]
            await gate.undo(page.change)
            assert shop.contents("items") == before


# Who may do what


async def test_an_agent_sees_and_takes_back_its_own_changes_alone(shop: Shop) -> None:
    async with gate_of(shop) as gate:
        page = await gate.change("UPDATE items SET price = 5 WHERE id = 1", AGENT)
        before = shop.contents("items")
        assert await gate.changes(OTHER) == ()
        assert len(await gate.changes(AGENT)) == len(await gate.changes(PERSON)) == 1
        for request in (UndoChange(page.change), DescribeUndo(page.change)):
            error = await gate.error(request, OTHER)
            assert error.code is Code.UNDO_UNAVAILABLE
            assert error.message == (
                await gate.error(type(request)("ffff"), OTHER)
            ).message.replace("ffff", page.change)
        assert shop.contents("items") == before
        await gate.undo(page.change, PERSON)
        assert shop.contents("items") != before


async def test_an_undo_needs_what_a_change_needs(shop: Shop) -> None:
    async with gate_of(shop) as gate:
        page = await gate.change("UPDATE items SET price = 5 WHERE id = 1")
    before = shop.contents("items")
    cases = (
        ({}, READER, Code.POLICY_SCOPE),
        ({"access": "read"}, AGENT, Code.POLICY_READ_ONLY),
        ({"changes": "deny"}, AGENT, Code.POLICY_READ_ONLY),
        ({"agents": "deny"}, AGENT, Code.POLICY_BLOCKED),
        ({"access": "none"}, PERSON, Code.POLICY_BLOCKED),
        ({"approval_for": "writes"}, AGENT, Code.APPROVAL_NEEDED),
        ({"agents": "ask"}, AGENT, Code.APPROVAL_NEEDED),
    )
    for settings, actor, code in cases:
        async with gate_of(shop, **settings) as gate:
            error = await gate.error(UndoChange(page.change), actor)
            assert error.code is code, (settings, error)
        assert shop.contents("items") == before


async def test_a_person_who_approves_sees_the_rows_that_go_back(shop: Shop) -> None:
    before = shop.contents("items")
    async with gate_of(shop) as gate:
        page = await gate.change("UPDATE items SET name = 'new' WHERE id = 1")
    async with gate_of(shop, approval_for="writes") as gate:
        assert (await gate.error(UndoChange(page.change))).code is Code.APPROVAL_NEEDED
        (question,) = gate.app.approvals.list()
        assert page.change in question.subject.statement
        assert "items" in question.subject.statement and question.subject.effect == "write"
        shown = question.dry_run
        assert shown is not None and shown.affected == 1
        names = shown.columns
        assert dict(zip(names, shown.before[0] or (), strict=True))["name"] == "new"
        assert dict(zip(names, shown.after[0] or (), strict=True))["name"] == "one"
        gate.app.approvals.resolve(question.id, "allowed", "ada")
        await gate.undo(page.change)
        assert shop.contents("items") == before


async def test_what_is_masked_is_put_back_unseen(shop: Shop) -> None:
    before = shop.contents("items")
    rules = {"masks": [{"column": "items.name"}]}
    async with gate_of(shop) as gate:
        page = await gate.change("UPDATE items SET name = 'new', price = 1 WHERE id = 1")
    async with gate_of(shop, **rules) as gate:
        preview = await gate.ask(DescribeUndo(page.change))
        (table,) = preview.tables
        assert table.masked == ("name",)
        assert "'one'" not in repr(preview.tables) and "'new'" not in repr(preview.tables)
        await gate.undo(page.change)
        assert shop.contents("items") == before


async def test_a_hidden_key_is_not_named_in_a_conflict(shop: Shop) -> None:
    async with gate_of(shop) as gate:
        page = await gate.change("UPDATE items SET price = 1 WHERE id = 1")
    shop.script("UPDATE items SET price = 98765 WHERE id = 1")
    for rules in (
        {"masks": [{"column": "ITEMS.id"}]},
        {"filters": [{"table": "items", "where": "price < 50"}]},
    ):
        async with gate_of(shop, **rules) as gate:
            for request in (UndoChange(page.change), DescribeUndo(page.change)):
                try:
                    said = repr(await gate.ask(request))
                except Exception as error:  # noqa: BLE001
                    said = f"{error} {vars(error)}"
                assert "id = 1" not in said and "98765" not in said
    assert shop.rows("SELECT price FROM items WHERE id = 1") == [(98765,)]


async def test_an_undo_that_the_database_refuses_quotes_nothing_hidden(shop: Shop) -> None:
    shop.script("CREATE UNIQUE INDEX named ON items (name)")
    shop.script("UPDATE items SET name = 'secret-name' WHERE id = 1")
    async with gate_of(shop) as gate:
        page = await gate.change("DELETE FROM items WHERE id = 1")
    shop.script("INSERT INTO items VALUES (9, 'secret-name', 0)")
    before = shop.contents("items")
    async with gate_of(shop, masks=[{"column": "items.name"}]) as gate:
        with pytest.raises(TidegateError) as refused:
            await gate.undo(page.change)
        said = refused.value.message
        assert "The database refused the change" in said or "a constraint of the table" in said
        assert "secret-name" not in f"{refused.value} {vars(refused.value)}"
    assert shop.contents("items") == before


async def test_rows_behind_a_filter_are_not_shown_and_not_put_back_for_another(
    shop: Shop,
) -> None:
    async with gate_of(shop) as gate:
        page = await gate.change("UPDATE items SET price = 1 WHERE id = 1")
    before = shop.contents("items")
    async with gate_of(shop, filters=[{"table": "items", "where": "price < 50"}]) as gate:
        preview = await gate.ask(DescribeUndo(page.change), PERSON)
        assert preview.tables[0].before == () and preview.tables[0].reason
        error = await gate.error(UndoChange(page.change), PERSON)
        assert error.code is Code.POLICY_MASKED
        assert shop.contents("items") == before


async def test_a_table_that_is_not_on_the_callers_list_stays_closed(shop: Shop) -> None:
    from msgspec import structs

    async with gate_of(shop) as gate:
        page = await gate.change("UPDATE items SET price = 1 WHERE id = 1")
        before = shop.contents("items")
        narrowed = structs.replace(AGENT, tables=frozenset({"notes"}))
        for request in (UndoChange(page.change), DescribeUndo(page.change)):
            assert (await gate.error(request, narrowed)).code is Code.POLICY_TABLE
        assert shop.contents("items") == before


async def test_a_change_belongs_to_its_source(shop: Shop) -> None:
    async with gate_of(shop) as gate:
        page = await gate.change("UPDATE items SET price = 1 WHERE id = 1")
    config = {"sources": [{"name": "another", "url": shop.url, "access": "write"}]}
    before = shop.contents("items")
    async with gate_of(shop, config=config) as gate:
        error = await gate.error(UndoChange(page.change), source="another")
        assert error.code is Code.UNDO_UNAVAILABLE
        found = await gate.ask(ListChanges(), PERSON, source="another")
        assert found.entries == ()
        assert shop.contents("items") == before


# What a card says


async def asked(gate, text: str):
    """The question that a change leaves."""
    error = await gate.error(Query(Statement(text)))
    assert error.code is Code.APPROVAL_NEEDED
    return gate.app.approvals.list()[-1]


async def test_the_card_says_whether_a_change_can_be_taken_back(shop: Shop) -> None:
    from tidegate.approvals.render import describe

    async with gate_of(shop, approval_for="writes") as gate:
        question = await asked(gate, "UPDATE items SET price = 5 WHERE id = 1")
        assert question.subject.reversible.possible
        assert "it can be taken back" in describe(question)
        question = await asked(gate, "DELETE FROM loose")
        assert not question.subject.reversible.possible
        assert "key" in question.subject.reversible.reason
        assert "cannot be taken back, because" in describe(question)
    async with gate_of(shop, approval_for="writes", undo="off") as gate:
        question = await asked(gate, "UPDATE items SET price = 6 WHERE id = 1")
        assert question.subject.reversible is None


async def test_the_change_of_an_approval_is_found_by_it(shop: Shop) -> None:
    text = "UPDATE items SET price = 5 WHERE id = 1"
    async with gate_of(shop, approval_for="writes") as gate:
        question = await asked(gate, text)
        gate.app.approvals.resolve(question.id, "allowed", "ada")
        page = await gate.change(text)
        (entry,) = await gate.changes(approval=question.id)
        assert (entry.id, entry.approval) == (page.change, question.id)
        run = gate.app.approvals.find(question.id).run
        assert run is not None and run.change_id == page.change
        assert await gate.changes(approval="another") == ()


async def test_what_was_shown_as_reversible_is_rolled_back_if_it_cannot_be_kept(
    shop: Shop,
) -> None:
    text = "UPDATE items SET name = '" + "x" * 190 + "'"
    shop.script("INSERT INTO items VALUES (4, 'four', 1), (5, 'five', 1), (6, 'six', 1)")
    before = shop.contents("items")
    bound = {"undo": {"max_bytes": 1_024}}
    async with gate_of(shop, approval_for="writes", config=bound) as gate:
        question = await asked(gate, text)
        assert question.subject.reversible.possible
        gate.app.approvals.resolve(question.id, "allowed", "ada")
        error = await gate.error(Query(Statement(text)))
        assert error.code is Code.UNDO_UNAVAILABLE and "person" in error.message
        assert shop.contents("items") == before


async def test_a_card_of_what_is_no_change_of_rows_says_so(shop: Shop) -> None:
    async with gate_of(shop, approval_for="writes") as gate:
        question = await asked(gate, "CREATE TABLE made (id INTEGER PRIMARY KEY)")
        assert not question.subject.reversible.possible
    async with gate_of(shop, undo="require") as gate:
        error = await gate.error(Query(Statement("CREATE TABLE made (id INTEGER PRIMARY KEY)")))
        assert error.code is Code.UNDO_UNAVAILABLE
        with pytest.raises(Exception, match="made"):
            shop.rows("SELECT * FROM made")
