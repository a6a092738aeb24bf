"""What a person sees of a change at a cloud provider before approving it, and what the approval is
bound to."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import pytest

from support.cloud_api import PROVIDER, SERVICE, Farm, Reply, write_farm
from support.cloud_surface import (
    EXEC,
    INSERT,
    REPLACE,
    RESOURCE,
    UPDATE,
    CloudClient,
    answering,
    opened,
    running_desk,
)
from tidegate.approvals.render import describe

SEND_ONE = "Would send 1 request, and has sent none:\n"
NOW = "Now there, and what would become of it:\n"


async def previewed(tmp_path: Path, *statements: str) -> list[str]:
    """What a person who declines reads behind the SQL of each statement."""
    with running_desk() as desk:
        async with opened(tmp_path, desk=desk) as app:
            client = CloudClient(app, reply=answering("decline"))
            for each in statements:
                await client.bad("run_mutation_query", sql=each)
        assert desk.writes == []
    return [each["message"].partition("\n\nSQL: ")[2].partition("\n\n")[2] for each in client.asked]


async def test_each_kind_of_change_shows_its_request_and_what_becomes_of_what_is_there(
    tmp_path: Path,
) -> None:
    insert, update, replace, operation = await previewed(tmp_path, INSERT, UPDATE, REPLACE, EXEC)
    url = "https://desk.example/v1/teams/red"
    assert insert == f'{SEND_ONE}  | desk: POST {url}/tickets {{"id":"9","title":"New"}}'
    assert update == (
        f'{SEND_ONE}  | desk: PATCH {url}/tickets/1 {{"id":"1","title":"Changed"}}\n'
        f"{NOW}  | id 1, title Printer | on fire -> Changed, open true, team red"
    )
    assert replace.startswith(
        f'{SEND_ONE}  | desk: PUT {url}/tickets/1 {{"id":"1","title":"Other"}}'
    )
    assert operation == f"{SEND_ONE}  | desk: POST {url}/close"


@pytest.mark.parametrize(
    ("naming", "column"),
    [
        ({}, "data__bodyWeight"),
        ({"requestBodyTranslate": {"algorithm": "naive"}}, "bodyWeight"),
        ({"requestBodyTranslate": {"algorithm": "naive"}, "nativeCasing": "camel"}, "body_weight"),
        ({"nativeCasing": "camel"}, "data__body_weight"),
    ],
)
@pytest.mark.parametrize("renames", [False, True])
async def test_a_field_that_would_change_is_shown_so_by_whatever_name_a_document_gives_it(
    tmp_path: Path, naming: dict[str, Any], column: str, renames: bool
) -> None:
    service = copy.deepcopy(SERVICE)
    text = json.dumps(service).replace('"weight"', '"bodyWeight"')
    service = json.loads(text)
    casing = {name: value for name, value in naming.items() if name == "nativeCasing"}
    translated = {name: value for name, value in naming.items() if name != "nativeCasing"}
    animals = service["components"]["x-stackQL-resources"]["animals"]
    animals["methods"]["update"] |= {"request": {"mediaType": "application/json", **casing}}
    animals["methods"]["update"]["config"] = translated
    farm = Farm(lambda *asked: Reply(200, {"id": 3, "bodyWeight": 70, "name": "Ann"}))
    try:
        folder = write_farm(tmp_path / "registry")
        (folder / "src/farm/v00.00.00000/services/live.yaml").write_text(json.dumps(service))
        if renames:
            provider = folder / "src/farm/v00.00.00000/provider.yaml"
            config = "config:\n  snake_case_aliases: true\n"
            provider.write_text(PROVIDER.replace("config:\n", config))
        source = {"url": f"cloud://{folder}", "options": dict(farm.options)}
        async with opened(tmp_path, source=source) as app:
            client = CloudClient(app, reply=answering("decline"))
            name = "data__name" if column.startswith("data__") else "name"
            sql = f"UPDATE farm.live.animals SET {column} = 80, {name} = 'Bo' WHERE id = 3"
            await client.bad("run_mutation_query", sql=sql)
        assert farm.paths("PATCH") == []
    finally:
        farm.close()
    (asked,) = client.asked
    shown = "body_weight" if renames else "bodyWeight"
    assert '"bodyWeight":80' in asked["message"]
    assert f"{shown} 70 -> 80" in asked["message"]
    assert "name Ann -> Bo" in asked["message"]


async def test_several_requests_are_counted_and_shown(tmp_path: Path) -> None:
    (shown,) = await previewed(
        tmp_path, f"DELETE FROM {RESOURCE} WHERE team = 'red' AND id IN ('1', '2', '3')"
    )
    assert shown.startswith("Would send 3 requests, and has sent none:\n  | desk: DELETE ")
    assert shown.count("(deleted)") == 2
    assert shown.endswith("one of the things to change is not there.")


async def test_a_secret_in_a_body_is_not_shown(tmp_path: Path) -> None:
    (shown,) = await previewed(
        tmp_path,
        f"UPDATE {RESOURCE} SET title = 'password=hunter2' WHERE team = 'red' AND id = '1'",
    )
    assert "hunter2" not in shown


async def test_a_change_that_cannot_be_sent_asks_no_one(tmp_path: Path) -> None:
    with running_desk() as desk:
        async with opened(tmp_path, desk=desk) as app:
            client = CloudClient(app, reply=answering("accept"))
            text = await client.bad("run_mutation_query", sql=f"DELETE FROM {RESOURCE}")
            assert "cannot find matching operation" in text
            assert client.asked == []
        assert desk.requests == []


async def test_an_approval_of_some_requests_is_none_of_others(tmp_path: Path) -> None:
    documents = tmp_path / "registry" / "src" / "desk" / "v24.01.00001" / "services"
    with running_desk() as desk:
        async with opened(tmp_path, desk=desk) as app:
            client = CloudClient(app)
            await client.bad("run_mutation_query", sql=EXEC)
            (question,) = app.approvals.list()
            app.approvals.resolve(question.id, "allowed", "the operator")
        # The same statement means another request from now on.
        path = documents / "tickets.yaml"
        path.write_text(
            path.read_text()
            .replace("/teams/{team}/close", "/teams/{team}/purge")
            .replace("~1teams~1{team}~1close", "~1teams~1{team}~1purge")
        )
        async with opened(tmp_path, desk=desk) as app:
            await CloudClient(app).bad("run_mutation_query", sql=EXEC)
            assert [each.state for each in app.approvals.list()] == ["pending"]
        assert desk.writes == []


async def test_what_an_approved_change_left_behind_is_kept_with_its_approval(
    tmp_path: Path,
) -> None:
    delete = f"DELETE FROM {RESOURCE} WHERE team = 'red' AND id IN ('1', '2')"
    with running_desk() as desk:
        async with opened(tmp_path, desk=desk) as app:
            client = CloudClient(app, reply=answering("accept"))
            for each in (UPDATE, INSERT, delete):
                await client.good("run_mutation_query", sql=each)
            asked = app.approvals.list(everything=True)
        assert [method for method, _ in desk.writes] == ["PATCH", "POST", "DELETE", "DELETE"]
    update, insert, gone = [each.dry_run.state for each in asked if each.dry_run]
    assert update is not None
    assert dict(zip(update.columns, update.rows[0] or (), strict=True)) == {
        "id": "1", "title": "Changed", "open": "true", "team": "red",
    }  # fmt: skip
    assert insert is not None and insert.rows == ()
    assert "no SELECT reads" in insert.reason
    assert gone is not None and gone.rows == (None, None)
    shown = describe(asked[0])
    assert shown.endswith("There after it had run:\n  | id 1, title Changed, open true, team red")
    assert "PATCH https://desk.example/v1/teams/red/tickets/1" in shown


async def test_a_state_that_cannot_be_read_fails_no_change(tmp_path: Path) -> None:
    with running_desk() as desk:
        async with opened(tmp_path, desk=desk) as app:
            client = CloudClient(app, reply=answering("accept"))
            usual = desk.answer

            def answer(method: str, target: str, body: object) -> tuple[int, object]:
                if method == "GET" and desk.writes:
                    return 400, {"message": "not now"}
                return usual(method, target, body)

            desk.answer = answer  # type: ignore[method-assign]
            await client.good("run_mutation_query", sql=UPDATE)
            (asked,) = app.approvals.list(everything=True)
        assert desk.tickets["1"]["title"] == "Changed"
    assert asked.dry_run is not None and asked.dry_run.state is not None
    assert "it could not be read" in asked.dry_run.state.reason
