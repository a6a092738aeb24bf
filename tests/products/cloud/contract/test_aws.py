"""AWS's protocols against moto's server: what is read, made and deleted, compared with boto3.

`TIDEGATE_CLOUD_REGISTRY` may name a registry's folder, whose documents of AWS are then used as they
are; else small ones of our own.
"""

from __future__ import annotations

import json
import os
import subprocess
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from external.install import python_of
from products.cloud.contract.aws_documents import write_aws
from products.cloud.contract.conftest import Ask
from support.free_ports import claim_port
from tidegate.engines.registry import engine_of
from tidegate.model.sources import Source
from wire.served import Served

FOLDER = os.environ.get("TIDEGATE_CLOUD_REGISTRY")
CLIENT = """
import boto3, json, sys
def client(name):
    return boto3.client(name, region_name="us-east-1", endpoint_url=sys.argv[1],
                        aws_access_key_id="test", aws_secret_access_key="test")
"""
ROLES = """
iam = client("iam")
for number in range(25):
    iam.create_role(RoleName=f"role{number}", AssumeRolePolicyDocument="{}")
roles = [
    [each["RoleName"], each["Arn"]]
    for page in iam.get_paginator("list_roles").paginate()
    for each in page["Roles"]
]
print(json.dumps(sorted(roles)))
"""
SEEN = """
print(json.dumps({
    "buckets": [each["Name"] for each in client("s3").list_buckets()["Buckets"]],
    "queues": [
        each.rpartition("/")[2] for each in client("sqs").list_queues().get("QueueUrls", [])
    ],
    "users": [[each["UserName"], each["Arn"]] for each in client("iam").list_users()["Users"]],
}))
"""


@pytest.fixture(scope="module")
def moto() -> Iterator[str]:
    port = claim_port()
    python = str(python_of("moto"))
    command = [python, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port)]
    served = Served(command, port, "/moto-api/")
    yield f"http://127.0.0.1:{port}"
    served.close()


@pytest.fixture(params=["own", "registry"])
def aws(
    request: pytest.FixtureRequest,
    moto: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> Ask:
    if request.param == "registry" and not FOLDER:
        pytest.skip("TIDEGATE_CLOUD_REGISTRY names no folder with the documents of AWS")
    urllib.request.urlopen(urllib.request.Request(f"{moto}/moto-api/reset", method="POST")).close()
    folder = FOLDER if request.param == "registry" else write_aws(tmp_path)
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "test")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "test")
    settings = json.dumps({"endpoints": {"https://*.amazonaws.com": moto}})
    url = f"cloud://{folder}"
    given = (("settings", settings),)
    return Ask(Source("c", "c", url, *engine_of(url), access="write", options=given))


def run_boto(moto: str, script: str) -> bytes:
    """What a script with boto3 prints."""
    command = [str(python_of("moto")), "-c", CLIENT + script, moto]
    return subprocess.run(command, capture_output=True, check=True, timeout=60).stdout


def boto(moto: str) -> dict[str, Any]:
    """What boto3 sees on the same server."""
    seen: dict[str, Any] = json.loads(run_boto(moto, SEEN))
    return seen


async def test_what_is_made_is_what_boto3_sees_until_it_is_deleted(aws: Ask, moto: str):
    await aws("INSERT INTO aws.s3.buckets(bucket, region) VALUES ('one-bucket', 'us-east-1')")
    made = await aws(
        "INSERT INTO aws.sqs.queues(queue_name, region) VALUES ('jobs', 'us-east-1')"
        " RETURNING queue_url"
    )
    made += await aws(
        "INSERT INTO aws.iam.users(user_name, region) SELECT 'ann' || i, 'us-east-1'"
        " FROM (SELECT 1 AS i UNION ALL SELECT 2) RETURNING user_name"
    )
    queues = await aws("SELECT queue_url FROM aws.sqs.queues WHERE region = 'us-east-1'")
    assert made == [*queues, ("ann1",), ("ann2",)]
    buckets = await aws("SELECT name FROM aws.s3.buckets WHERE region = 'us-east-1'")
    users = await aws(
        "SELECT user_name, arn FROM aws.iam.users WHERE region = 'us-east-1' ORDER BY 1"
    )
    assert boto(moto) == {
        "buckets": [name for (name,) in buckets],
        "queues": [url.rpartition("/")[2] for (url,) in queues],
        "users": [list(each) for each in users],
    }
    assert buckets == [("one-bucket",)]
    assert len(users) == 2
    await aws("DELETE FROM aws.s3.buckets WHERE bucket = 'one-bucket' AND region = 'us-east-1'")
    await aws(
        "DELETE FROM aws.sqs.queues WHERE queue_url = ? AND region = 'us-east-1'", queues[0][0]
    )
    await aws(
        "DELETE FROM aws.iam.users WHERE user_name IN ('ann1', 'ann2') AND region = 'us-east-1'"
    )
    assert boto(moto) == {"buckets": [], "queues": [], "users": []}


async def test_a_list_in_xml_is_read_to_its_end(aws: Ask, moto: str):
    """The documents say nothing of its pages."""
    made = json.loads(run_boto(moto, ROLES))
    roles = await aws(
        "SELECT role_name, arn FROM aws.iam.roles WHERE region = 'us-east-1' AND max_items = 10"
    )
    assert aws.cursor.upstream.pages == 3
    assert aws.cursor.truncations == ()
    assert sorted(map(list, roles)) == made
    assert len(roles) == 25


async def test_a_refusal_of_aws_is_shown_with_its_status(aws: Ask):
    error = await aws.refusal(
        "DELETE FROM aws.s3.buckets WHERE bucket = 'no-such-bucket' AND region = 'us-east-1'"
    )
    assert error.details["http_status"] == 404
    assert "NoSuchBucket" in error.message


async def test_a_missing_credential_is_named(aws: Ask, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.delenv("AWS_SECRET_ACCESS_KEY")
    monkeypatch.setenv("HOME", "/nonexistent")
    error = await aws.refusal("SELECT name FROM aws.s3.buckets WHERE region = 'us-east-1'")
    assert "AWS_SECRET_ACCESS_KEY" in f"{error.message} {error.hint}"
