"""Views over masked tables: found again after they were changed, and never a way around."""

import pytest

from support.masking_shop import ENGINES, HIDDEN_ROWS, ROWS, make, opened, row_texts, script
from tidegate.errors import Code, TidegateError
from tidegate.model.statements import Effect

MAILS = "CREATE VIEW mails AS SELECT id, title AS mail FROM products"
NEW_MAILS = "CREATE VIEW mails AS SELECT id, email AS mail FROM customers"


@pytest.fixture(params=ENGINES)
def urls(request, tmp_path):
    return (
        make(request.param, tmp_path, "real", script(ROWS, (MAILS,))),
        make(request.param, tmp_path, "seen", script(HIDDEN_ROWS, (MAILS,))),
    )


async def test_a_view_that_is_redefined_is_followed_again(urls):
    async with opened(*urls) as sides:
        real, seen = sides
        assert real.rewritten("SELECT * FROM mails") == "SELECT * FROM mails"
        before = await real.engine.schema_version()
        for side in sides:
            if side.dialect in ("sqlite", "duckdb"):
                await side.ask("DROP VIEW mails", Effect.DESTRUCTIVE)
                await side.ask(NEW_MAILS, Effect.WRITE)
            elif side.dialect == "postgres":
                # The columns' types stay, so that nothing but the view's query changes.
                await side.ask(NEW_MAILS.replace("CREATE", "CREATE OR REPLACE"), Effect.WRITE)
            else:
                await side.ask(NEW_MAILS.replace("CREATE", "ALTER"), Effect.WRITE)
        assert await real.engine.schema_version() != before
        await real.look()
        _, rows = await real.ask(real.masked("SELECT * FROM mails"))
        assert row_texts(rows) == row_texts((await seen.ask("SELECT * FROM mails"))[1])
        assert "secret" not in repr(rows)


async def test_views_with_cte_union_and_star_are_followed(tmp_path, urls):
    texts = (
        "CREATE VIEW v1 AS WITH c AS (SELECT * FROM customers) SELECT * FROM c",
        "CREATE VIEW v2 AS SELECT id, phone AS p FROM v1 UNION ALL SELECT id, memo FROM orders",
        "CREATE VIEW v3 AS SELECT v2.*, (SELECT max(email) FROM customers) AS top FROM v2",
    )
    async with opened(*urls) as sides:
        for side in sides:
            for text in texts:
                await side.ask(text, Effect.WRITE)
            await side.look()
        real, seen = sides
        for name in ("v1", "v2", "v3"):
            text = f"SELECT * FROM {name}"
            names, rows = await real.ask(real.masked(text))
            expected = await seen.ask(text)
            assert (names, row_texts(rows)) == (expected[0], row_texts(expected[1]))


async def test_an_index_of_a_masked_view_is_not_read(tmp_path):
    extra = (
        "CREATE VIRTUAL TABLE found USING fts5(contact, content='vip', content_rowid='id')",
        "INSERT INTO found(found) VALUES ('rebuild')",
        "CREATE VIRTUAL TABLE terms USING fts5vocab('found', 'row')",
        "CREATE VIEW looked AS SELECT contact FROM found",
        "CREATE VIRTUAL TABLE plain USING fts5(title, content='cheap', content_rowid='id')",
        "INSERT INTO plain(plain) VALUES ('rebuild')",
    )
    async with opened(make("sqlite", tmp_path, "real", script(ROWS, extra))) as (side,):
        for text in (
            "SELECT * FROM found",
            "SELECT rowid FROM found WHERE found MATCH 'secret1*'",
            "SELECT term FROM terms",
            "SELECT * FROM looked",
        ):
            with pytest.raises(TidegateError) as caught:
                side.rewritten(text)
            assert caught.value.code is Code.POLICY_MASKED
        assert (await side.ask(side.masked("SELECT * FROM plain")))[1]
