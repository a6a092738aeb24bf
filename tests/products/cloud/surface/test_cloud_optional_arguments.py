"""An optional argument that is sent as nothing changes no answer of a tool."""

from __future__ import annotations

from pathlib import Path

from products.cloud.surface.test_cloud_tools import CALLS
from support.cloud_surface import SELECT, CloudClient, opened, running_desk
from support.optional_arguments import lasting, optional_of


async def test_the_answers_of_tools_for_providers_stay_the_same(tmp_path: Path) -> None:
    calls = {
        **CALLS, "server_info": {}, "list_registry": {}, "pull_provider": {"provider": "desk"},
        "search_resources": {"words": "tickets"}, "reload_credentials": {},
        "validate_select_query": {"sql": SELECT}, "run_select_query": {"sql": SELECT},
        "run_mutation_query": {"sql": SELECT}, "run_lifecycle_operation": {"sql": SELECT},
    }  # fmt: skip
    wrong: list[str] = []
    with running_desk() as desk:
        async with opened(tmp_path, {"extended": True}, desk) as app:
            client = CloudClient(app)
            for tool in (await client.request("tools/list"))["result"]["tools"]:
                meant = lasting(await client.call(tool["name"], **calls[tool["name"]]))
                for argument, forms in optional_of(tool["inputSchema"]):
                    for form in forms:
                        given = calls[tool["name"]] | {argument: form}
                        said = lasting(await client.call(tool["name"], **given))
                        if said != meant:
                            wrong.append(f"{tool['name']} {argument}={form!r}: {said} not {meant}")
    assert wrong == []
