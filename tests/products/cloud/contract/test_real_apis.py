"""The engine `cloud` against servers of others: etcd, Prometheus and Docker's registry of Debian.

The documents of etcd and the registry are in `documents/src`; that of Prometheus is plain OpenAPI,
of which `tidegate cloud import` makes a provider. Each result is compared with what a plain HTTP
client sees.
"""

from __future__ import annotations

import hashlib
import json
from base64 import b64decode, b64encode
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import httpx
import pytest

from products.cloud.contract.conftest import Ask, copy_documents
from products.cloud.support.real_apis import RealApi, running
from support.cloud_surface import MODERN, CloudClient, answering, opened, recorded
from support.eventually import until
from tidegate.engines.registry import engine_of
from tidegate.errors import Code
from tidegate.model.results import Truncation
from tidegate.model.sources import Source

MANIFEST = "application/vnd.docker.distribution.manifest.v2+json"
REPOSITORIES = [f"team/app{number}" for number in range(7)]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return copy_documents(tmp_path_factory)


def source(folder: Path, endpoints: Mapping[str, str], **options: str) -> Ask:
    given = (("settings", json.dumps({"endpoints": endpoints})), *options.items())
    url = f"cloud://{folder}"
    return Ask(Source("c", "c", url, *engine_of(url), access="write", options=given))


def base64(text: str) -> str:
    return b64encode(text.encode()).decode()


class Etcd:
    """The server as a plain client sees it."""

    def __init__(self, server: RealApi) -> None:
        self.server = server
        self.endpoints = {"https://etcd.example": server.url}

    def post(self, path: str, **fields: Any) -> Any:
        reply = httpx.post(f"{self.server.url}/v3/{path}", json=fields, timeout=30)
        assert reply.status_code == 200, reply.text
        return reply.json()

    @property
    def all(self) -> dict[str, str]:
        """Every key with its value."""
        found = self.post("kv/range", key="AA==", range_end="AA==").get("kvs", [])
        return {b64decode(x["key"]).decode(): b64decode(x["value"]).decode() for x in found}


@pytest.fixture(scope="module")
def etcd_server() -> Iterator[RealApi]:
    with running("etcd") as server:
        yield server


@pytest.fixture
def etcd(etcd_server: RealApi) -> Etcd:
    etcd = Etcd(etcd_server)
    etcd.post("kv/deleterange", key="AA==", range_end="AA==")
    return etcd


async def test_what_is_written_to_etcd_is_what_another_client_reads(etcd: Etcd, folder: Path):
    ask = source(folder, etcd.endpoints)
    await ask(
        "INSERT INTO etcd.kv.keys(key, value) VALUES (?, ?), (?, ?)",
        *map(base64, ("a/1", "one", "a/2", "two – 2")),
    )
    assert etcd.all == {"a/1": "one", "a/2": "two – 2"}
    await ask("UPDATE etcd.kv.keys SET value = ? WHERE key = ?", base64("changed"), base64("a/1"))
    assert etcd.all == {"a/1": "changed", "a/2": "two – 2"}
    seen = etcd.post("kv/range", key="AA==", range_end="AA==")["kvs"]
    columns = ("key", "value", "create_revision", "mod_revision", "version")
    read = await ask(
        f"SELECT {', '.join(columns)} FROM etcd.kv.keys"
        " WHERE key = 'AA==' AND range_end = 'AA==' ORDER BY key"
    )
    assert read == [tuple(each[name] for name in columns) for each in seen]
    assert await ask(
        "DELETE FROM etcd.kv.keys WHERE key IN (?, ?, ?) AND prev_kv = true"
        " RETURNING deleted, json_extract(prev_kvs, '$[0].value') AS was",
        *map(base64, ("a/1", "a/2", "a/3")),
    ) == [("1", base64("changed")), ("1", base64("two – 2")), (None, None)]
    assert etcd.all == {}


async def test_parameters_of_a_body_bound_what_etcd_gives(etcd: Etcd, folder: Path):
    for number in range(20):
        etcd.post("kv/put", key=base64(f"k{number:02}"), value=base64(str(number)))
    ask = source(folder, etcd.endpoints)
    all_keys = "FROM etcd.kv.keys WHERE key = 'AA==' AND range_end = 'AA=='"
    assert await ask(f"SELECT count(*) {all_keys}") == [(20,)]
    assert len(await ask(f'SELECT key {all_keys} AND "limit" = 3')) == 3
    assert await ask(
        f"SELECT key, value {all_keys} AND sort_order = 'DESCEND' AND \"limit\" = 1"
        " AND keys_only = true"
    ) == [(base64("k19"), None)]
    members = await ask("SELECT id, name, json_array_length(clientURLs) FROM etcd.kv.members")
    (member,) = etcd.post("cluster/member/list")["members"]
    assert members == [(member["ID"], "one", 1)]
    joined = await ask(
        "WITH wanted(name) AS (VALUES (?), (?), (?))"
        " SELECT k.value FROM wanted w JOIN etcd.kv.keys k ON k.key = w.name ORDER BY 1",
        *map(base64, ("k07", "k03", "no such key")),
    )
    assert joined == sorted([(base64("7"),), (base64("3"),)])


async def test_numbers_beyond_53_bits_keep_every_digit(etcd: Etcd, folder: Path):
    ask = source(folder, etcd.endpoints)
    lease = "9007199254740995"
    await ask(f"INSERT INTO etcd.kv.leases(id, ttl) VALUES ({lease}, 600)")
    try:
        assert await ask("SELECT id FROM etcd.kv.leases") == [(lease,)]
        assert etcd.post("lease/leases")["leases"] == [{"ID": lease}]
    finally:
        await ask(f"DELETE FROM etcd.kv.leases WHERE id = {lease}")
    assert etcd.post("lease/leases").get("leases", []) == []


async def test_a_transaction_of_etcd_is_one_request_by_exec(etcd: Etcd, folder: Path):
    ask = source(folder, etcd.endpoints)
    body = json.dumps({
        "compare": [{"key": base64("t"), "target": "VERSION", "version": "0"}],
        "success": [{"request_put": {"key": base64("t"), "value": base64("new")}}],
    })  # fmt: skip
    (first,) = await ask(f"EXEC etcd.kv.keys.txn @@json = '{body}'")
    assert ask.cursor.columns[1].name == "succeeded"
    assert first[1] == 1
    (second,) = await ask(f"EXEC etcd.kv.keys.txn @@json = '{body}'")
    assert not second[1]
    assert etcd.all == {"t": "new"}


async def test_what_etcd_refuses_is_an_error_and_changes_nothing(etcd: Etcd, folder: Path):
    etcd.post("kv/put", key=base64("a"), value=base64("kept"))
    ask = source(folder, etcd.endpoints)
    for statement, why in [
        ("SELECT key FROM etcd.kv.keys WHERE key = '!!'", "illegal base64"),
        ("SELECT key FROM etcd.kv.keys WHERE key = 'YQ==' AND revision = 9999999", "future"),
        ("INSERT INTO etcd.kv.keys(key, value) VALUES ('', 'YQ==')", "key is not provided"),
        ("UPDATE etcd.kv.keys SET value = '!!' WHERE key = 'YQ=='", "illegal base64"),
        ("DELETE FROM etcd.kv.keys WHERE key = ''", "key is not provided"),
    ]:
        error = await ask.refusal(statement)
        assert (error.code, error.details["http_status"]) == (Code.PROVIDER_FAILED, 400)
        assert why in error.message
    error = await ask.refusal(
        "DELETE FROM etcd.kv.leases WHERE id IN (12345678901234567, 12345678901234568)"
    )
    assert error.details["http_status"] == 404
    assert etcd.all == {"a": "kept"}


@pytest.mark.parametrize("revision", ["2025-11-25", MODERN])
async def test_in_safe_mode_etcd_changes_when_a_person_agrees_and_not_before(
    etcd: Etcd, folder: Path, tmp_path: Path, revision: str
):
    insert = f"INSERT INTO etcd.kv.keys(key, value) VALUES ('{base64('a')}', '{base64('new')}')"
    delete = f"DELETE FROM etcd.kv.keys WHERE key = '{base64('a')}'"
    denied = (insert.replace(base64("new"), base64("bad")), f"{delete} AND prev_kv = true")
    etcd.post("kv/put", key=base64("a"), value=base64("old"))
    cloud = {"endpoints": etcd.endpoints}
    async with opened(tmp_path, source={"url": f"cloud://{folder}"}, cloud=cloud) as app:
        for sql in (insert, delete):
            text = await CloudClient(app, revision=revision).bad("run_mutation_query", sql=sql)
            assert "does not support elicitation" in text
        denying = CloudClient(app, revision=revision, reply=answering("decline"))
        for sql in denied:
            assert "user declined approval" in await denying.bad("run_select_query", sql=sql)
        assert etcd.all == {"a": "old"}
        agreeing = CloudClient(app, revision=revision, reply=answering("accept"))
        await agreeing.good("run_mutation_query", sql=insert)
        assert etcd.all == {"a": "new"}
        _, payload = await agreeing.good(
            "run_select_query", sql=f"SELECT value FROM etcd.kv.keys WHERE key = '{base64('a')}'"
        )
        assert payload["rows"] == [{"value": base64("new")}]
        await agreeing.good("run_mutation_query", sql=delete)
        assert etcd.all == {}
        asked = agreeing.asked[0]["message"]
        assert "etcd: POST https://etcd.example/v3/kv/put" in asked
        assert base64("new") in asked
    assert [each["decision"] for each in recorded(tmp_path)] == [
        *["needs_approval_unavailable"] * 2,
        *["needs_approval_declined"] * 2,
        "needs_approval_accepted",
        "allow",
        "needs_approval_accepted",
    ]


async def test_a_server_that_was_started_again_is_read_without_an_error(
    etcd: Etcd, folder: Path, tmp_path: Path
):
    """The connections that were kept are dead then."""
    etcd.post("kv/put", key=base64("a"), value=base64("old"))
    cloud = {"endpoints": etcd.endpoints}
    select = "SELECT value FROM etcd.kv.keys WHERE key = 'YQ=='"
    version = "SELECT etcdserver FROM etcd.kv.versions"
    async with opened(tmp_path, source={"url": f"cloud://{folder}"}, cloud=cloud) as app:
        client = CloudClient(app)
        for sql in (select, version):
            await client.good("run_select_query", sql=sql)
        etcd.server.stop()
        text = await client.bad("run_select_query", sql=version)
        assert "etcd.example" in text or "127.0.0.1" in text
        etcd.server.start()
        for sql in (select, version):
            _, payload = await client.good("run_select_query", sql=sql)
            assert len(payload["rows"]) == 1


@pytest.fixture(scope="module")
def images() -> Iterator[RealApi]:
    """Seven repositories, each with the tags `a` and `b` of one manifest."""
    with running("docker-registry") as server:
        with httpx.Client(base_url=server.url, timeout=30) as client:
            for name in REPOSITORIES:
                push(client, name)
        yield server


def push(client: httpx.Client, name: str) -> str:
    """Push an image of no layers under two tags; the digest of its manifest."""
    config = json.dumps({"name": name}).encode()
    digest = f"sha256:{hashlib.sha256(config).hexdigest()}"
    place = client.post(f"/v2/{name}/blobs/uploads/").headers["location"]
    assert client.put(f"{place}&digest={digest}", content=config).status_code == 201
    kind = "application/vnd.docker.container.image.v1+json"
    manifest = json.dumps({
        "schemaVersion": 2,
        "mediaType": MANIFEST,
        "config": {"mediaType": kind, "size": len(config), "digest": digest},
        "layers": [],
    }).encode()  # fmt: skip
    for tag in ("a", "b"):
        put = client.put(
            f"/v2/{name}/manifests/{tag}", content=manifest, headers={"Content-Type": MANIFEST}
        )
        assert put.status_code == 201, put.text
    return f"sha256:{hashlib.sha256(manifest).hexdigest()}"


async def test_a_catalog_in_pages_of_two_is_whole(images: RealApi, folder: Path):
    ask = source(folder, {"https://images.example": images.url})
    seen = httpx.get(f"{images.url}/v2/_catalog").json()["repositories"]
    assert seen == REPOSITORIES
    for where, calls in (("", 1), (" WHERE n = 2", 4), (" WHERE n = 7", 1), (" WHERE n = 1", 7)):
        rows = await ask(f"SELECT _ FROM containers.images.repositories{where}")
        assert [name for (name,) in rows] == seen
        assert (where, ask.cursor.upstream.calls) == (where, calls)
        assert ask.cursor.truncations == ()
    rows = await ask(
        "SELECT _ FROM containers.images.repositories WHERE n = 2 AND last = ?", seen[3]
    )
    assert [name for (name,) in rows] == seen[4:]


async def test_a_catalog_that_is_cut_says_so(images: RealApi, folder: Path):
    ask = source(folder, {"https://images.example": images.url}, page_limit="2")
    rows = await ask("SELECT _ FROM containers.images.repositories WHERE n = 2")
    assert [name for (name,) in rows] == REPOSITORIES[:4]
    assert ask.cursor.truncations == (Truncation("pages", 2, 2),)


async def test_pages_are_followed_where_the_endpoint_has_a_path_of_its_own(
    images: RealApi, folder: Path
):
    """The next page's address begins at the server's root, as the server knows it."""
    ask = source(folder, {"https://images.example/v2": f"{images.url}/v2"})
    rows = await ask("SELECT _ FROM containers.images.repositories WHERE n = 3")
    assert [name for (name,) in rows] == REPOSITORIES


async def test_names_with_a_slash_reach_their_tags_and_manifests(images: RealApi, folder: Path):
    ask = source(folder, {"https://images.example": images.url})
    rows = await ask(
        "SELECT r._ AS repository, t._ AS tag, m.schemaVersion, json_extract(m.config, '$.digest')"
        " FROM containers.images.repositories r"
        " JOIN containers.images.tags t ON t.name = r._"
        " JOIN containers.images.manifests m ON m.name = r._ AND m.reference = t._"
        " WHERE r.n = 3 ORDER BY 1, 2"
    )
    seen: list[tuple[Any, ...]] = []
    for name in REPOSITORIES:
        for tag in sorted(httpx.get(f"{images.url}/v2/{name}/tags/list").json()["tags"]):
            manifest = httpx.get(
                f"{images.url}/v2/{name}/manifests/{tag}", headers={"Accept": MANIFEST}
            ).json()
            seen.append((name, tag, manifest["schemaVersion"], manifest["config"]["digest"]))
    assert rows == seen
    assert len(rows) == 14
    assert await ask("SELECT _ FROM containers.images.tags WHERE name = 'team/none'") == []


async def test_a_manifest_is_deleted_by_its_digest_alone(images: RealApi, folder: Path):
    with httpx.Client(base_url=images.url, timeout=30) as client:
        digest = push(client, "old/app")
        ask = source(folder, {"https://images.example": images.url})
        delete = "DELETE FROM containers.images.manifests WHERE name = 'old/app' AND reference = ?"
        error = await ask.refusal(delete, "a")
        assert error.details["http_status"] == 400
        path = f"/v2/old/app/manifests/{digest}"
        assert client.get(path, headers={"Accept": MANIFEST}).status_code == 200
        await ask(delete, digest)
        assert client.get(path, headers={"Accept": MANIFEST}).status_code == 404
        error = await ask.refusal(delete, digest)
        assert error.details["http_status"] == 404
        remaining = client.get("/v2/team/app1/tags/list").json()["tags"]
        assert sorted(remaining) == ["a", "b"]


@pytest.fixture(scope="module")
def prometheus() -> Iterator[RealApi]:
    with running("prometheus") as server:
        yield server


def result(server: RealApi, path: str, **query: Any) -> Any:
    """The data of a plain request."""
    reply = httpx.get(f"{server.url}/api/v1/{path}", params=query, timeout=30).json()
    assert reply["status"] == "success"
    return reply["data"]


async def test_prometheus_answers_a_query_of_its_own_language(prometheus: RealApi, folder: Path):
    await until(
        lambda: len(result(prometheus, "query", query="up")["result"]) == 2, "both were scraped"
    )
    ask = source(folder, {"https://prometheus.example/api/v1": f"{prometheus.url}/api/v1"})
    found = await ask(
        "SELECT json_extract(r.value, '$.metric.job') AS job,"
        " json_extract(r.value, '$.value[1]') AS up"
        " FROM prom.api.query q, json_each(q.data, '$.result') r"
        " WHERE q.query = 'up{job=~\"itself|absent\"}' ORDER BY 1"
    )
    assert found == [("absent", "0"), ("itself", "1")]
    targets = await ask(
        "SELECT json_extract(t.value, '$.labels.job') AS job, json_extract(t.value, '$.health')"
        " FROM prom.api.targets q, json_each(q.data, '$.activeTargets') t"
        " WHERE q.state = 'active' ORDER BY 1"
    )
    seen = result(prometheus, "targets", state="active")["activeTargets"]
    assert targets == sorted((each["labels"]["job"], each["health"]) for each in seen)
    assert len(targets) == 2


async def test_labels_values_and_series_are_those_that_a_plain_client_gets(
    prometheus: RealApi, folder: Path
):
    await until(lambda: "job" in result(prometheus, "labels"), "something was scraped")
    await until(
        lambda: len(result(prometheus, "query", query="up")["result"]) == 2, "both were scraped"
    )
    ask = source(folder, {"https://prometheus.example": prometheus.url})
    match = ["up", "scrape_duration_seconds"]
    listed = json.dumps(match)
    labels = await ask('SELECT _ FROM prom.api.labels WHERE "match[]" = ?', listed)
    assert [name for (name,) in labels] == result(prometheus, "labels", **{"match[]": match})
    values = await ask("SELECT _, name FROM prom.api.label_values WHERE name IN ('job', 'no')")
    assert values == [(each, "job") for each in result(prometheus, "label/job/values")]
    series = await ask(
        'SELECT __name__, instance, job FROM prom.api.series WHERE "match[]" = ?', listed
    )
    seen = result(prometheus, "series", **{"match[]": match})
    assert sorted(series) == sorted((x["__name__"], x["instance"], x["job"]) for x in seen)
    assert len(series) == 4
    joined = await ask(
        "SELECT v._, count(*) FROM prom.api.label_values v"
        " JOIN prom.api.series s ON s.\"match[]\" = 'up{job=\"' || v._ || '\"}'"
        " WHERE v.name = 'job' GROUP BY 1 ORDER BY 1"
    )
    assert joined == [("absent", 1), ("itself", 1)]


async def test_a_query_that_prometheus_cannot_read_is_an_error_with_its_words(
    prometheus: RealApi, folder: Path
):
    ask = source(folder, {"https://prometheus.example": prometheus.url})
    error = await ask.refusal("SELECT * FROM prom.api.query WHERE query = 'up{'")
    assert error.details["http_status"] == 400
    assert "unexpected end of input" in error.message
    error = await ask.refusal("SELECT * FROM prom.api.series")
    assert "cannot find matching operation" in error.message
    assert "match[]" in f"{error.message} {error.hint}"
