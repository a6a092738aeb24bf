"""Two people's agents at one gate and one connection: each sees its own rows, by its token."""

from itertools import count
from threading import Thread

import pytest

from support.attack_target import Target
from support.command_line import serving, tidegate

_numbers = count(1)

OWNED = """
CREATE TABLE orders (id int PRIMARY KEY, owner text, actor text);
INSERT INTO orders SELECT n, CASE WHEN n % 3 = 0 THEN '{ben}' ELSE '{ann}' END, 'x'
  FROM generate_series(1, 9) AS n;
ALTER TABLE orders ENABLE ROW LEVEL SECURITY;
CREATE POLICY own ON orders USING (owner = current_user);
CREATE ROLE {ann}; CREATE ROLE {ben};
GRANT SELECT, UPDATE ON orders TO {ann}, {ben};
"""


@pytest.fixture
def people(server, database):
    number = next(_numbers)
    people = {name: f"{name}_of_http_{number}" for name in ("ann", "ben")}
    server.ask(OWNED.format(**people), database)
    yield people
    for role in people.values():
        server.ask(f"DROP OWNED BY {role}; DROP ROLE {role}", database)


def test_each_token_is_another_person_to_the_database(server, database, people, tmp_path):
    state = tmp_path / "state"
    url = server.url(database) + "&pool=1"
    added = tidegate(
        *("source", "add", "shop", url, "--allow-writes", "--run-as-role", "{actor.name}"),
        *("--run-as-variable", "app.actor={actor.name}"),
        state=state,
    )
    assert added.status == 0, added.err
    with serving(["serve", "--http", "127.0.0.1:0", "--surface", "core"], state) as process:
        line = process.until("serving")
        address = next(word for word in line.split() if word.startswith("http"))
        gate = Target(process, int(address.removesuffix("/mcp").rpartition(":")[2]), state, state)
        tokens = {name: gate.token(role, scope="readWrite") for name, role in people.items()}
        nobody = gate.token("nobody_of_http")
        found = {name: [] for name in people}

        def ask(name):
            for _ in range(10):
                sql = "SELECT count(*), current_user, current_setting('app.actor') FROM orders"
                found[name].append(gate.query(sql, tokens[name]).text)

        threads = [Thread(target=ask, args=(name,)) for name in people]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        for name, rows in (("ann", 6), ("ben", 3)):
            assert len(found[name]) == 10
            other = people["ben" if name == "ann" else "ann"]
            for text in found[name]:
                assert text.count(people[name]) == 2 and other not in text
                assert str(rows) in text
        changed = gate.query("UPDATE orders SET actor = 'ben' WHERE id < 9", tokens["ben"])
        assert not changed.refused, changed.text
        refused = gate.query("SELECT count(*) FROM orders", nobody)
        assert refused.refused and "policy.identity" in refused.text
    assert server.ask("SELECT DISTINCT owner FROM orders WHERE actor = 'ben'", database) == [
        (people["ben"],)
    ]
