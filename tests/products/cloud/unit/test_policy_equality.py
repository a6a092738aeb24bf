"""`aws_policy_equal` compares what two policies say, and no order."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tidegate.products.cloud.engine.functions import aws_policy_equal


def policy(*statements: dict[str, Any]) -> str:
    return json.dumps({"Version": "2012-10-17", "Statement": list(statements)})


READ = {
    "Effect": "Allow",
    "Action": ["s3:GetObject", "s3:ListBucket"],
    "Resource": "*",
    "Principal": {"AWS": ["1", "2"], "Service": "a"},
    "Condition": {"StringEquals": {"aws:x": ["b", "a"]}, "Bool": {"aws:y": "true"}},
}
WRITE = {"Effect": "Deny", "NotAction": "s3:*", "NotResource": ["x", "y"]}


@pytest.mark.parametrize(
    "other",
    [
        policy(WRITE, READ),
        policy({**READ, "Action": ["s3:ListBucket", "s3:GetObject", "s3:GetObject"]}, WRITE),
        policy({**READ, "Resource": ["*"]}, WRITE),
        policy({**READ, "Principal": {"Service": ["a"], "AWS": ["2", "1"]}}, WRITE),
        policy(
            READ
            | {"Condition": {"Bool": {"aws:y": [True]}, "StringEquals": {"aws:x": ["a", "b"]}}},
            WRITE,
        ),
        policy(dict(reversed(READ.items())), {**WRITE, "NotResource": ["y", "x"]}),
    ],
)
def test_order_and_lists_of_one_do_not_count(other: str) -> None:
    assert aws_policy_equal(policy(READ, WRITE), other) == 1


@pytest.mark.parametrize(
    "other",
    [
        policy(READ),
        policy({**READ, "Effect": "Deny"}, WRITE),
        policy({**READ, "Action": ["s3:GetObject"]}, WRITE),
        policy({**READ, "Principal": {"AWS": ["1"], "Service": ["a", "2"]}}, WRITE),
        policy({**READ, "Condition": {"StringEquals": {"aws:x": ["a", "c"]}}}, WRITE),
        "no policy",
    ],
)
def test_what_says_something_else_is_not_equal(other: str) -> None:
    assert aws_policy_equal(policy(READ, WRITE), other) == 0
