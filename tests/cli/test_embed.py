"""`tidegate embed` and `tidegate search check`: a person fills a column of vectors."""

from __future__ import annotations

import asyncio
import json
import signal
import sqlite3
import sys
from contextlib import closing
from pathlib import Path

import pytest

from support.command_line import Ended, environment, tidegate
from support.embedding_server import EmbeddingServer, silent, vectors
from support.eventually import until
from support.operator_terminal import operator_terminal
from support.search_library import make_sqlite

CONFIG = {"embeddings": {"provider": "hash-test", "dimensions": 16}}


@pytest.fixture
def state(tmp_path: Path) -> Path:
    """A state with the source `library`, whose table `docs` has no vectors."""
    url = make_sqlite(tmp_path / "docs.db", "ALTER TABLE docs DROP COLUMN content_embedding")
    (tmp_path / "config.json").write_text(json.dumps(CONFIG))
    (tmp_path / "config.json").chmod(0o600)
    state = tmp_path / "state"
    added = tidegate("source", "add", "library", url, "--access", "write", state=state)
    assert added.status == 0, added.err
    return state


def embed(state: Path, *words: str, agrees: bool = True, command: str = "embed") -> Ended:
    config = ("--config", str(state.parent / "config.json"))
    with operator_terminal(agrees=agrees) as terminal:
        return tidegate(
            *command.split(), "library", *words, *config, state=state, terminal=terminal
        )


def test_a_person_agrees_to_new_columns_and_the_texts_are_embedded(state: Path) -> None:
    ended = embed(state, "docs", "content")
    assert ended.status == 0, ended.err
    assert "10 texts embedded" in ended.err
    status = embed(state, "docs", "content", "--status", "--json").json
    assert (status["current"], status["missing"]) == (10, 0)
    again = embed(state, "docs", "content", agrees=False)
    assert "0 texts embedded, 0 vectors removed, 10 rows read" in again.err


def test_without_consent_nothing_is_changed(state: Path) -> None:
    ended = embed(state, "docs", "content", agrees=False)
    assert ended.status == 77
    status = embed(state, "docs", "content", "--status", "--json").json
    assert (status["current"], status["missing"]) == (0, 10)


def test_the_check_says_what_to_do(state: Path) -> None:
    ended = embed(state, "docs", command="search check")
    assert ended.status == 0, ended.err
    assert "tidegate embed SOURCE docs" in ended.out
    embed(state, "docs", "content")
    ended = embed(state, "docs", command="search check")
    assert "ok: content_embedding: all 10 texts have their vector" in ended.out


def test_vectors_of_another_model_are_replaced_only_when_asked(state: Path) -> None:
    embed(state, "docs", "content")
    other = {"embeddings": {"provider": "hash-test", "dimensions": 16, "model": "newer"}}
    (state.parent / "config.json").write_text(json.dumps(other))
    ended = embed(state, "docs", "content")
    assert ended.status == 65
    assert "--replace" in ended.err
    ended = embed(state, "docs", "content", "--replace")
    assert ended.status == 0, ended.err
    status = embed(state, "docs", "content", "--status", "--json").json
    assert (status["current"], status["other_model"]) == (10, 0)


def test_texts_that_are_masked_for_others_are_not_made_into_what_they_can_read(
    state: Path,
) -> None:
    mask = {"column": "docs.content", "show": "nothing", "except_tokens": ["cli"]}
    config = state.parent / "config.json"
    config.write_text(json.dumps(CONFIG | {"masks": [mask]}))
    ended = embed(state, "docs", "content")
    assert ended.status != 0
    assert "content_embedding_digest" in ended.err and "masked" in ended.err
    config.write_text(json.dumps(CONFIG))
    status = embed(state, "docs", "content", "--status", "--json").json
    assert (status["current"], status["missing"]) == (0, 10)


def test_masks_on_the_vectors_and_digests_let_masked_texts_be_embedded(state: Path) -> None:
    with closing(sqlite3.connect(state.parent / "docs.db")) as connection, connection:
        connection.execute("ALTER TABLE docs ADD COLUMN content_embedding BLOB")
        connection.execute("ALTER TABLE docs ADD COLUMN content_embedding_digest text")
    columns = ("content", "content_embedding", "content_embedding_digest")
    masks = [{"column": f"docs.{name}", "except_tokens": ["cli"]} for name in columns]
    (state.parent / "config.json").write_text(json.dumps(CONFIG | {"masks": masks}))
    ended = embed(state, "docs", "content")
    assert ended.status == 0, ended.err
    assert "10 texts embedded" in ended.err


ROWS = 200
EMPTY = (
    "ALTER TABLE docs DROP COLUMN content_embedding",
    "ALTER TABLE docs ADD COLUMN content_embedding BLOB",
    "ALTER TABLE docs ADD COLUMN content_embedding_digest TEXT",
)


async def test_a_run_that_is_killed_is_continued_and_two_at_once_end_well(tmp_path: Path) -> None:
    url = make_sqlite(tmp_path / "docs.db", *EMPTY, rows=ROWS, fts=False)
    state = tmp_path / "state"
    added = await asyncio.to_thread(
        tidegate, "source", "add", "library", url, "--access", "write", state=state
    )
    assert added.status == 0, added.err
    # The question for the model's dimensions, one batch of texts, and then no answer.
    server = EmbeddingServer(vectors(), vectors(), silent, vectors())
    async with server.running() as base_url:
        model = {"provider": "openai", "base_url": base_url, "model": "m", "retries": 0}
        (tmp_path / "config.json").write_text(json.dumps({"embeddings": model}))
        (tmp_path / "config.json").chmod(0o600)

        async def start() -> asyncio.subprocess.Process:
            return await asyncio.create_subprocess_exec(
                *(sys.executable, "-m", "tidegate", "embed", "library", "docs", "content"),
                *("--config", str(tmp_path / "config.json")),
                env=environment(state),
                stdin=asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.DEVNULL,
                stderr=asyncio.subprocess.PIPE,
            )

        killed = await start()
        await until(lambda: len(server.requests) == 3, "the batch that is not answered")
        killed.send_signal(signal.SIGKILL)
        await killed.wait()
        assert filled(tmp_path / "docs.db") == (64, 64)
        sent = len(server.requests)
        both = [await start(), await start()]
        ended = [(await each.communicate())[1].decode() for each in both]
        assert [each.returncode for each in both] == [0, 0], ended
        assert filled(tmp_path / "docs.db") == (ROWS, ROWS)
        texts = [text for *_, body in server.requests[sent:] for text in body["input"]]
        # What the first run did is not done again.
        assert len([text for text in texts if text != "dimensions"]) <= 2 * (ROWS - 64)


def filled(path: Path) -> tuple[int, int]:
    """How many rows have a vector, and how many its digest."""
    with closing(sqlite3.connect(path)) as connection:
        return connection.execute(
            "SELECT count(content_embedding), count(content_embedding_digest) FROM docs"
        ).fetchone()
