"""The times of `search` are measured on databases of which everything is known by then."""

import asyncio
from pathlib import Path

from bench import searching


def test_a_round_measures_the_first_search_the_profile_and_every_later_search(
    tmp_path: Path,
) -> None:
    url = searching.make_sqlite(25, tmp_path)
    found = asyncio.run(searching.measure(url, tmp_path / "state"))
    assert found.first_profile >= found.first_search > 0
    assert len(found.searches) == len(found.searches_cpu) == searching.SEARCHES
    line = searching.show("SQLite, 25 tables", [found])
    assert line.startswith("| SQLite, 25 tables | ") and line.count("|") == 7


def test_each_size_has_its_tables_and_no_name_twice() -> None:
    for size in searching.SIZES:
        made = [text for text in searching.statements(size) if text.startswith("CREATE")]
        assert len({text.split()[2] for text in made}) == size
