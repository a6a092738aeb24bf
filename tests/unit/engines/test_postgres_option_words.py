"""A word that libpq would refuse when it connects is a fault of the URL, found before."""

from __future__ import annotations

import pytest
from psycopg import pq

from tidegate.engines.postgres.url import _WORDS, parse_conninfo
from tidegate.errors import Code, TidegateError


def refused_by_libpq(option: str, word: str) -> bool:
    """Whether libpq refuses the word of an option before it looks for a server."""
    connection = pq.PGconn.connect(f"host=/nowhere {option}={word}".encode())
    said = connection.error_message
    connection.finish()
    return f"invalid {option} value".encode() in said


@pytest.mark.parametrize("option", sorted(_WORDS))
def test_words_of_options_are_those_of_libpq(option: str) -> None:
    for word in (*_WORDS[option], "reqire", "on"):
        url = f"postgresql://u@db.example/x?{option}={word}"
        if word in _WORDS[option]:
            assert not refused_by_libpq(option, word), word
            assert parse_conninfo(url).parameters[option] == word
            continue
        assert refused_by_libpq(option, word), word
        with pytest.raises(TidegateError) as caught:
            parse_conninfo(url)
        assert caught.value.code is Code.SOURCE_URL
        assert option in caught.value.message
        assert _WORDS[option][0] in (caught.value.hint or "")
