"""The scripted analyst of Defog's questions, on the small database of ours and a real server."""

from pathlib import Path

import pytest
from bench.defog_analyst import Need

from bench import defog, defog_analyst, report, servers

SAMPLE = Path(__file__).parents[1] / "support" / "defog_sample"


def test_a_statement_needs_tables_columns_and_texts() -> None:
    database = defog.read_database(SAMPLE, "bakery")
    sql = (
        "WITH s AS (SELECT shop_id, loaf_id FROM sale WHERE pieces > 1)"
        " SELECT l.name, count(*) FROM s JOIN loaf l ON l.loaf_id = s.loaf_id"
        " WHERE l.kind IN ('rye', 'wheat') AND l.name <> 'x' AND upper(l.kind) = 'RYE'"
        " AND s.shop_id = '1' GROUP BY l.name"
    )
    assert defog_analyst.needs(sql, database) == Need(
        {"sale": {"shop_id", "loaf_id", "pieces"}, "loaf": {"name", "loaf_id", "kind"}},
        (("loaf", "kind", "rye"), ("loaf", "kind", "wheat"), ("loaf", "name", "x")),
    )


def test_core_answers_each_question_after_one_search(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(servers.peers, "WORK", tmp_path)
    monkeypatch.setenv(defog.VARIABLE, str(SAMPLE))
    (tmp_path / "logs").mkdir()
    core = servers.core()
    rows = defog_analyst.questions({core.name: core})
    (alone,), (remembering,) = rows[core.name], rows[f"{core.name}, remembering"]
    assert (alone["questions"], alone["calls"], alone["most calls"]) == (2, 4, 2)
    assert remembering["conversations"] <= alone["conversations"] < 2_000
    assert core.name in report.render(
        {
            "date": "",
            "machine": "",
            "versions": {},
            "rounds": 1,
            "loads": {},
            "failures": {},
            "workloads": {"defog": rows},
        }
    )


def test_a_call_more_is_counted_for_what_was_not_shown() -> None:
    answers = {
        "search": "loaf(loaf_id varchar(10) pk, name text)",
        "describe": "sale(loaf_id varchar(10), pieces int)",
        "query": '{"columns":["n"],"rows":[[3]]}',
    }
    talk = defog_analyst.Conversation(defog_analyst.CORE, lambda tool, _: answers[tool])
    need = Need({"loaf": {"loaf_id"}, "sale": {"pieces"}}, (("loaf", "kind", "rye"),))
    talk.put("How many?", "SELECT 3 AS n", need)
    assert talk.calls == 4  # search, describe, a look at the values, the statement
    talk.put("How many?", "SELECT 3 AS n", need._replace(texts=()))
    assert talk.calls == 5


def test_an_answer_without_a_value_of_the_driver_is_wrong() -> None:
    toolbox = '{"day":"2026-05-01T00:00:00Z","n":2.50}{"day":null,"n":1}'
    rows = [("2026-05-01", 2.5), (None, 1)]
    defog_analyst.check(toolbox, rows, "SELECT")
    defog_analyst.check('{"columns":["d","n"],"rows":[["2026-05-01",2.5],[null,1]]}', rows, "")
    with pytest.raises(RuntimeError, match="7 is missing"):
        defog_analyst.check(toolbox, [*rows, ("2026-05-01", 7)], "SELECT")


def test_absent_data_is_a_note_in_the_report(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(defog.VARIABLE, raising=False)
    (note,) = defog_analyst.questions({})
    assert defog.VARIABLE in note
