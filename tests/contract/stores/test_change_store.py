"""The contract of `ChangeStore`."""

from concurrent.futures import ThreadPoolExecutor

from msgspec import structs

from tidegate.model.changes import ChangeEntry

ENTRY = ChangeEntry(
    *("c1", "shop", "id-shop", "tok_1", "claude", 100.0, 200.0),
    tables=("items", "a.b"),
    rows=3,
    size=10,
    approval="a1",
    call_id="call-1",
    database="d",
)
KEY, IMAGE = b"\x00key of c1" * 3, b"\xffimage of c1" * 50
PLENTY = 1_000_000


def entry(id, **fields):
    return structs.replace(ENTRY, id=id, **fields)


def test_a_change_comes_back_as_it_was_prepared(state, other):
    state.changes.prepare(ENTRY, KEY, IMAGE, PLENTY)
    assert other.changes.find("c1") == ENTRY
    assert other.changes.image("c1") == (KEY, IMAGE)
    assert other.changes.starting("c") == (ENTRY,)
    assert other.changes.find("c2") is None and other.changes.image("c2") is None


def test_a_change_is_confirmed_once(state, other):
    state.changes.prepare(ENTRY, KEY, IMAGE, PLENTY)
    with ThreadPoolExecutor(8) as pool:
        done = list(pool.map(lambda one: one.changes.confirm(ENTRY), [state, other] * 8))
    assert done.count(True) == 1
    assert other.changes.find("c1").state == "done"
    assert not state.changes.confirm(entry("unknown"))


def test_the_undo_of_a_change_marks_it(state, other):
    state.changes.prepare(ENTRY, KEY, IMAGE, PLENTY)
    state.changes.confirm(ENTRY)
    state.changes.prepare(entry("c2", undoes="c1"), KEY, IMAGE, PLENTY)
    assert other.changes.find("c1").state == "done"
    state.changes.confirm(entry("c2", undoes="c1"))
    assert (other.changes.find("c1").state, other.changes.find("c1").undone_by) == ("undone", "c2")
    other.changes.prepare(entry("c3"), KEY, IMAGE, PLENTY)
    other.changes.mark_undone(entry("c3"), "")
    assert state.changes.find("c3").state == "undone"


def test_changes_are_listed_newest_first_and_by_what_is_asked_for(state, other):
    state.changes.prepare(ENTRY, KEY, IMAGE, PLENTY)
    state.changes.prepare(entry("c2", actor="tok_2", made_at=150.0), KEY, IMAGE, PLENTY)
    state.changes.prepare(entry("c3", source_id="id-other", approval=""), KEY, IMAGE, PLENTY)

    def listed(*sources, limit=10, **wanted):
        return [each.id for each in other.changes.list(sources, limit=limit, **wanted)]

    assert listed("id-shop") == ["c2", "c1"]
    assert listed("id-shop", "id-other") == ["c3", "c2", "c1"]
    assert listed("id-shop", "id-other", limit=2) == ["c3", "c2"]
    assert listed("id-shop", actor="tok_1") == ["c1"]
    assert listed("id-shop", "id-other", approval="a1") == ["c2", "c1"]
    assert listed("id-shop", before=150.0) == ["c1"]
    assert listed() == []


def test_the_oldest_make_room(state, other):
    for number in range(5):
        state.changes.prepare(entry(f"c{number}", size=40), KEY, IMAGE, 100)
    assert [each.id for each in other.changes.list(["id-shop"], limit=9)] == ["c4", "c3"]
    assert other.changes.image("c2") is None


def test_what_is_forgotten_is_gone_with_its_key(state, other, tmp_path):
    state.changes.prepare(ENTRY, KEY, IMAGE, PLENTY)
    state.changes.prepare(entry("c2", expires_at=300.0), KEY, IMAGE, PLENTY)
    assert other.changes.forget(199.0) == 0
    assert other.changes.forget(200.0) == 1
    assert state.changes.find("c1") is None and state.changes.image("c1") is None
    assert state.changes.image("c2") == (KEY, IMAGE)
    state.changes.discard(entry("c2", expires_at=300.0))
    assert other.changes.image("c2") is None
    state.close()
    other.close()
    for file in tmp_path.iterdir():
        assert b"key of c1" not in file.read_bytes(), file


def test_a_change_follows_its_source_to_another_name(state, other):
    from tidegate.model.sources import Source

    was = Source("id-shop", "shop", "sqlite:////shop.db", "sqlite", "sqlite")
    state.sources.add(was)
    state.changes.prepare(ENTRY, KEY, IMAGE, PLENTY)
    state.sources.rename(was, structs.replace(was, id="id-new", name="new"), 1.0)
    found = other.changes.find("c1")
    assert (found.source, found.source_id) == ("new", "id-new")
