"""Search on PostgreSQL with pgvector: which index is used, in which metric, and when none is."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import support.postgres_server as postgres_server
from support.search_library import Library, ids, make_postgres, vector_text, vectors_of
from support.surface_gateway import SqliteGate
from tidegate.engines.postgres.transaction import may_tune
from tidegate.errors import Code, TidegateError
from tidegate.model.actors import Actor, Scope
from tidegate.model.requests import Call, Query
from tidegate.model.source_settings import Mask, RowFilter
from tidegate.model.statements import Statement
from tidegate.search.ranking import essential

ROWS = 3_000
NO_SEQUENCE_SCAN = "ALTER DATABASE {} SET enable_seqscan = off"


def make(
    directory: Path, *extra: str, rows: int = ROWS, prefers_index: bool = True, **fields: Any
) -> Library:
    """A library of some thousand rows; on so few the planner needs to be told to use an index."""
    kind, index = fields.pop("kind", "vector"), fields.pop("index", "cosine")
    url = make_postgres(*extra, rows=rows, kind=kind, index=index)
    if prefers_index:
        name = url.partition("@/")[2].partition("?")[0]
        postgres_server.shared().ask(NO_SEQUENCE_SCAN.format(name))
    return Library(directory, url, **fields)


async def test_the_index_is_used_and_named(tmp_path: Path):
    result = await make(tmp_path).search("warm boots for snow", top_n=5)
    (leg,) = result.vectors
    assert (leg.index, leg.metric) == ("docs_hnsw", "cosine")
    assert result.words is not None
    assert (result.words.method, result.words.index) == (
        "tsvector+df:statistics",
        "docs_words",
    )


@pytest.mark.parametrize("kind", ["vector", "halfvec", "sparsevec"])
async def test_what_the_index_finds_is_what_comparing_every_vector_finds(tmp_path: Path, kind: str):
    library = make(tmp_path, kind=kind)
    wanted = {"top_n": 10, "output_format": "ids_only"}
    found = await library.search("unheard lentils snow", **wanted)
    exact = await library.search("unheard lentils snow", exact=True, **wanted)
    assert found.vectors[0].index == "docs_hnsw"
    assert exact.vectors[0].index is None
    near = [row.distance for row in found.rows if row.distance is not None]
    furthest = max(row.distance or 0 for row in exact.rows) + 1e-3
    # An index may miss some of the nearest: pgvector promises most of them.
    assert near
    assert sum(distance <= furthest for distance in near) >= 0.6 * len(near)


async def test_an_index_of_another_metric_is_used_in_its_own_metric_and_noted(tmp_path: Path):
    result = await make(tmp_path, index="l2").search("boots", top_n=3)
    assert (result.vectors[0].metric, result.vectors[0].index) == ("l2", "docs_hnsw")
    assert any("l2" in note and "docs_hnsw" in note for note in result.notes)


@pytest.mark.parametrize("metric", ["l2", "inner_product"])
async def test_the_metric_that_was_asked_for_is_that_of_its_index(tmp_path: Path, metric: str):
    index = {"l2": "l2", "inner_product": "ip"}[metric]
    result = await make(tmp_path, index=index).search("boots", top_n=3, distance_metric=metric)
    assert (result.vectors[0].metric, result.notes) == (metric, ())
    # An index may miss a row that the words find: that one has no place by vectors.
    found = [row for row in result.rows if row.vector_rank]
    distances = [row.distance or 0 for row in sorted(found, key=lambda r: r.vector_rank or 0)]
    assert distances
    assert distances == sorted(distances)


@pytest.mark.parametrize(
    "index",
    [
        "CREATE INDEX other ON docs USING hnsw"
        " ((content_embedding::halfvec(16)) halfvec_cosine_ops)",
        "CREATE INDEX other ON docs USING hnsw"
        " ((binary_quantize(content_embedding)::bit(16)) bit_hamming_ops)",
        "CREATE INDEX other ON docs USING ivfflat (content_embedding vector_cosine_ops)"
        " WITH (lists = 20)",
    ],
)
async def test_indexes_over_expressions_and_lists_are_used(tmp_path: Path, index: str):
    result = await make(tmp_path, index, index="").search("warm boots for snow", top_n=5)
    assert result.vectors[0].index == "other"
    distances = [row.distance or 0 for row in sorted(result.rows, key=lambda r: r.vector_rank or 0)]
    assert distances == sorted(distances)


async def test_a_column_of_bits_is_searched_by_its_bits(tmp_path: Path):
    library = make(
        tmp_path,
        "ALTER TABLE docs ADD bits_embedding bit(16)",
        "UPDATE docs SET bits_embedding = binary_quantize(content_embedding)::bit(16)",
        "ALTER TABLE docs DROP content_embedding",
        "CREATE INDEX other ON docs USING hnsw (bits_embedding bit_hamming_ops)",
        index="",
    )
    result = await library.search("warm boots for snow", top_n=5)
    assert result.vectors[0].index == "other"
    assert len(result.rows) == 5


@pytest.mark.parametrize("share", [10, 100, 1_500])
async def test_a_selective_filter_still_gives_exactly_as_many_rows_as_were_asked_for(
    tmp_path: Path, share: int
):
    library = make(
        tmp_path,
        "ALTER TABLE docs ADD bucket int",
        f"UPDATE docs SET bucket = id % {ROWS // share}",
    )
    condition = {"column": "bucket", "value": 1}
    result = await library.search("boots and law", top_n=10, filter=[condition])
    assert len(result.rows) == 10
    assert {number % (ROWS // share) for number in ids(result)} == {1}


async def test_a_row_level_policy_leaves_as_many_rows_as_it_shows(tmp_path: Path):
    server = postgres_server.shared()
    server.ask(
        "DO $$ BEGIN CREATE ROLE search_reader LOGIN; EXCEPTION WHEN duplicate_object THEN"
        " NULL; END $$"
    )
    url = make_postgres(
        "ALTER TABLE docs ENABLE ROW LEVEL SECURITY",
        "CREATE POLICY few ON docs FOR SELECT USING (id % 500 = 0)",
        "GRANT SELECT ON docs TO search_reader",
        rows=ROWS,
    )
    library = Library(tmp_path, url.replace("//postgres@", "//search_reader@"))
    result = await library.search("unheard of", top_n=10)
    assert sorted(ids(result)) == [500, 1000, 1500, 2000, 2500, 3000]


async def test_pgvector_in_a_schema_of_its_own_is_found(tmp_path: Path):
    library = make(
        tmp_path, "CREATE SCHEMA extensions", "ALTER EXTENSION vector SET SCHEMA extensions"
    )
    result = await library.search("warm boots for snow", top_n=3)
    assert result.rows[0].key == {"id": 1}
    assert result.vectors[0].index == "docs_hnsw"


async def test_rows_without_a_vector_are_found_by_their_words(tmp_path: Path):
    library = make(tmp_path, "UPDATE docs SET content_embedding = NULL WHERE id % 10 = 1")
    result = await library.search("boots lining", top_n=5)
    assert all(row.vector_rank is None for row in result.rows if row.key["id"] % 10 == 1)
    assert any(row.lexical_rank for row in result.rows if row.key["id"] % 10 == 1)


async def test_titles_and_contents_count_by_their_weights(tmp_path: Path):
    titles = vectors_of(["Winter boots", "Tax law"])
    library = make(
        tmp_path,
        "ALTER TABLE docs ADD title_embedding vector(16)",
        f"UPDATE docs SET title_embedding = '{vector_text(titles[0])}' WHERE id <= 5",
        f"UPDATE docs SET title_embedding = '{vector_text(titles[1])}' WHERE id > 5",
        rows=10,
        prefers_index=False,
    )
    result = await library.search("winter boots", top_n=10)
    weights = {leg.column: round(leg.weight, 3) for leg in result.vectors}
    assert weights == {"content_embedding": 0.7, "title_embedding": 0.3}
    assert result.rows[0].key == {"id": 1}
    assert {chunk.column for chunk in result.chunks} == {"content", "title"}


async def test_a_column_of_another_model_is_left_out_beside_one_that_fits(tmp_path: Path):
    library = make(
        tmp_path, "ALTER TABLE docs ADD title_embedding vector(3)", rows=10, prefers_index=False
    )
    result = await library.search("boots", top_n=3)
    assert [leg.column for leg in result.vectors] == ["content_embedding"]
    assert any("title_embedding" in note for note in result.notes)


@pytest.mark.parametrize(
    ("changes", "method"),
    [
        (("DROP INDEX docs_words", "ALTER TABLE docs DROP words"), "scan"),
        (
            (
                "ALTER TABLE docs DROP words",
                "CREATE INDEX other ON docs USING gin (to_tsvector('english', content))",
            ),
            "tsvector+df:counts",
        ),
        (
            (
                "ALTER TABLE docs DROP words",
                "ALTER TABLE docs ADD words tsvector",
                "UPDATE docs SET words = to_tsvector(content)",
                "CREATE INDEX other ON docs USING gin (words)",
            ),
            "tsvector+df:statistics",
        ),
    ],
)
async def test_words_are_searched_by_what_is_there_and_the_result_says_how(
    tmp_path: Path, changes: tuple[str, ...], method: str
):
    result = await make(tmp_path, *changes, rows=100, prefers_index=False).search("soups", top_n=3)
    assert result.words is not None
    assert result.words.method.startswith(method)
    assert {number % 10 for number in ids(result) if number} >= {7}


async def test_words_of_a_masked_column_are_not_searched_by_an_index_that_holds_them(
    tmp_path: Path,
):
    library = make(tmp_path, rows=100, prefers_index=False, masks=(Mask("docs.content"),))
    result = await library.search("lining feet", top_n=10)
    assert result.words is not None
    assert (result.words.method, result.rows) == ("scan", ())


@pytest.mark.parametrize(
    ("changes", "key"),
    [
        (("ALTER TABLE docs DROP CONSTRAINT docs_pkey",), "row_id"),
        (
            (
                "ALTER TABLE docs DROP CONSTRAINT docs_pkey",
                "ALTER TABLE docs ADD PRIMARY KEY (lang, id)",
            ),
            "lang",
        ),
        (('ALTER TABLE docs RENAME id TO "select ""Id"""',), 'select "Id"'),
    ],
)
async def test_rows_are_named_by_what_key_there_is(
    tmp_path: Path, changes: tuple[str, ...], key: str
):
    result = await make(tmp_path, *changes, rows=10, prefers_index=False).search("boots", top_n=2)
    assert key in result.rows[0].key
    assert result.chunks[0].text.startswith("Red boots")


@pytest.mark.parametrize(
    "hidden", [{"masks": (Mask("docs.lang"),)}, {"filters": (RowFilter("docs", "id < 5"),)}]
)
async def test_a_table_without_a_key_of_which_something_is_hidden_is_refused_with_the_reason(
    tmp_path: Path, hidden: dict[str, Any]
):
    keyless = ("ALTER TABLE docs DROP CONSTRAINT docs_pkey",)
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
    found = await make(tmp_path / "a", *keyless, rows=10, prefers_index=False).search("boots")
    assert found.rows
    library = make(tmp_path / "b", *keyless, rows=10, prefers_index=False, **hidden)
    with pytest.raises(TidegateError) as refused:
        await library.search("boots")
    assert refused.value.code is Code.UNSUPPORTED
    assert "have no key" in refused.value.message
    assert "ctid" not in f"{refused.value.message} {refused.value.hint}"


async def test_names_that_need_quotes_are_quoted(tmp_path: Path):
    library = make(
        tmp_path,
        'CREATE SCHEMA "my.Schema"',
        'ALTER TABLE docs RENAME TO "select"',
        'ALTER TABLE "select" RENAME content TO "Group By"',
        'ALTER TABLE "select" RENAME content_embedding TO "Group By_embedding"',
        'ALTER TABLE "select" SET SCHEMA "my.Schema"',
        "CREATE TABLE docs AS SELECT 1 AS id",
        rows=10,
        prefers_index=False,
    )
    result = await library.search("boots", table_name="my.Schema.select", top_n=2)
    assert (result.schema, result.table) == ("my.Schema", "select")
    assert result.chunks[0].column == "Group By"


async def test_frequent_words_are_looked_for_in_part_of_the_rows_that_hold_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("tidegate.search.postgres_words.MOST_ROWS", 50)
    library = make(tmp_path, rows=1_000, prefers_index=False)
    condition = {"column": "id", "op": ">", "value": 100}
    result = await library.search("edition of lentils", top_n=5, filter=[condition])
    assert result.words is not None
    assert result.words.capped
    assert any("part of the table" in note for note in result.notes)
    assert all(number > 100 for number in ids(result))


async def test_rows_with_two_of_the_words_are_found_although_the_cap_leaves_out_those_with_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("tidegate.search.postgres_words.MOST_ROWS", 20)
    said = "CASE WHEN id = 990 THEN 'alpha beta' WHEN id IN (5, 8) THEN 'delta'"
    texts = (
        f"UPDATE docs SET title = '', content = {said}"
        " ELSE CASE id % 3 WHEN 0 THEN 'alpha' WHEN 1 THEN 'beta' ELSE 'other' END END"
    )
    library = make(tmp_path, texts, rows=1_000, prefers_index=False)
    result = await library.search("alpha beta delta", top_n=300)
    places = {row.key["id"]: row.lexical_rank for row in result.rows}
    assert {places[5], places[8]} == {1, 2}
    assert places[990] == 3


@pytest.mark.parametrize("condition", [[], [{"column": "id", "op": ">", "value": 0}]])
async def test_words_that_the_statistics_do_not_list_are_ranked_as_if_they_did(
    tmp_path: Path, condition: list[dict[str, Any]]
):
    found: list[list[object]] = []
    methods: list[str] = []
    for target in (1, 100):
        (tmp_path / str(target)).mkdir()
        fewer = f"ALTER TABLE docs ALTER words SET STATISTICS {target}"
        library = make(tmp_path / str(target), fewer, rows=300, prefers_index=False)
        result = await library.search("celado hibyna edition lentils", top_n=20, filter=condition)
        assert result.words is not None
        methods.append(result.words.method)
        ranked = [(row.lexical_rank, row.key["id"]) for row in result.rows if row.lexical_rank]
        found.append([key for _, key in sorted(ranked)])
    assert methods == ["tsvector+df:statistics+counts", "tsvector+df:statistics"]
    assert found[0][:5] == found[1][:5]


def test_rows_are_found_by_the_rarer_words_up_to_the_cap():
    counts = {"the": 900_000.0, "snow": 15_000.0, "boots": 4_000.0, "lining": 10.0}
    assert essential(counts, 20_000) == ["lining", "boots", "snow"]
    assert essential({"the": 900_000.0}, 20_000) == ["the"]


@pytest.mark.parametrize(
    ("name", "value", "allowed"),
    [
        ("hnsw.ef_search", "400", True),
        ("hnsw.ef_search", "0", False),
        ("hnsw.ef_search", "1001", False),
        ("hnsw.ef_search", "40; RESET ALL", False),
        ("hnsw.iterative_scan", "relaxed_order", True),
        ("hnsw.iterative_scan", "yes", False),
        ("ivfflat.probes", "10", True),
        ("role", "postgres", False),
        ("transaction_read_only", "off", False),
        ("statement_timeout", "0", False),
    ],
)
def test_a_search_can_tune_the_index_and_nothing_else(name: str, value: str, allowed: bool):
    assert may_tune(name, value) is allowed


async def test_a_setting_that_is_not_on_the_list_is_refused_and_runs_nothing(tmp_path: Path):
    library = make(tmp_path, rows=10, prefers_index=False)
    actor = Actor("tok_reader", "reader", Scope.READ_ONLY)

    async def ask(gate: SqliteGate, *tuning: tuple[str, str]) -> bytes:
        text = "SELECT current_setting('role'), current_setting('hnsw.ef_search', true)"
        request = Query(Statement(text), tuning=tuning)
        return (await gate.handle(Call(actor, "core", "q", request, "library"))).payload.rows

    async with library.gate.opened() as gate:
        assert await ask(gate, ("hnsw.ef_search", "77")) == b'[["none","77"]]'
        # It held for its own transaction.
        assert b"77" not in await ask(gate)
        with pytest.raises(TidegateError) as refused:
            await ask(gate, ("role", "pg_monitor"))
        assert refused.value.code is Code.UNSUPPORTED


async def check(library: Library) -> list[tuple[str, str]]:
    from support.search_library import handle_of
    from tidegate.search.check import check_table

    async with library.gate.opened() as gate:
        return [(each.level, each.text) for each in await check_table(handle_of(gate), "docs")]


async def test_the_check_measures_the_index_against_exact_search(tmp_path: Path):
    found = await check(make(tmp_path, rows=1_000))
    assert ("ok", "words-16 made its vectors (cosine 1.00 or more)") in found
    assert any(
        level == "ok" and text.startswith("the index docs_hnsw finds ") for level, text in found
    )


async def test_the_check_names_indexes_that_cannot_be_used(tmp_path: Path):
    library = make(
        tmp_path,
        "CREATE INDEX few ON docs USING hnsw (content_embedding vector_cosine_ops) WHERE id > 5",
        rows=100,
        index="",
    )
    found = await check(library)
    assert any(level == "fault" and "the index few cannot be used" in text for level, text in found)


async def test_the_check_says_when_texts_and_vectors_do_not_belong_together(tmp_path: Path):
    library = make(tmp_path, "UPDATE docs SET content = 'Another text ' || id", rows=100)
    found = await check(library)
    assert any(level == "fault" and "makes other vectors" in text for level, text in found)


async def test_the_settings_name_the_texts_that_a_column_of_vectors_is_of(tmp_path: Path):
    from msgspec import structs

    from support.surface_gateway import HASHED
    from tidegate.config.embeddings import ColumnSettings

    named = ColumnSettings("library", "public.docs.v", text="content")
    library = make(
        tmp_path,
        "ALTER TABLE docs RENAME content_embedding TO v",
        rows=10,
        prefers_index=False,
        embeddings=structs.replace(HASHED, columns=(named,)),
    )
    result = await library.search("warm boots for snow", top_n=2)
    assert [leg.column for leg in result.vectors] == ["v"]
    assert {chunk.column for chunk in result.chunks} == {"content"}


async def test_the_check_calls_no_index_faulty_for_rows_that_are_equally_near(tmp_path: Path):
    """The first rows are copies of one: any ten of them are the ten nearest."""
    same = "UPDATE docs SET content = 'the same', content_embedding ="
    library = make(
        tmp_path,
        f"{same} (SELECT content_embedding FROM docs WHERE id = 1) WHERE id <= 400",
        "VACUUM FULL docs",
        rows=1_000,
    )
    found = await check(library)
    assert any(
        level == "ok" and text.startswith("the index docs_hnsw finds ") for level, text in found
    )


async def test_the_check_measures_an_index_in_its_own_metric(tmp_path: Path):
    spread = (
        "UPDATE docs SET content_embedding = (SELECT array_agg(x * (1 + docs.id % 9))"
        " FROM unnest(content_embedding::real[]) AS x)::vector"
    )
    found = await check(make(tmp_path, spread, "REINDEX TABLE docs", rows=1_000, index="l2"))
    assert any(
        level == "ok" and text.startswith("the index docs_hnsw finds ") for level, text in found
    )
