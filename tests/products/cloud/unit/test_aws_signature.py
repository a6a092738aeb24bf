"""Requests to AWS are signed as AWS's own examples are."""

from __future__ import annotations

from datetime import UTC, datetime
from urllib.parse import quote

import pytest

from tidegate.products.cloud.http.requests import ApiRequest
from tidegate.products.cloud.login.aws_signature import AwsCredential, sign_request

CREDENTIAL = AwsCredential("AKIDEXAMPLE", "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY")
HOST = "https://example.amazonaws.com/"
NOW = datetime(2015, 8, 30, 12, 36, tzinfo=UTC)


def header(request: ApiRequest, name: str) -> str | None:
    return dict(request.headers).get(name)


def signature(request: ApiRequest) -> str:
    return (header(request, "Authorization") or "").rpartition("Signature=")[2]


def test_the_example_of_the_documentation() -> None:
    request = ApiRequest(
        "GET",
        "https://iam.amazonaws.com/?Action=ListUsers&Version=2010-05-08",
        (("Content-Type", "application/x-www-form-urlencoded; charset=utf-8"),),
        None,
        False,
    )
    signed = sign_request(request, CREDENTIAL, "iam", "us-east-1", NOW)
    assert header(signed, "Authorization") == (
        "AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/20150830/us-east-1/iam/aws4_request, "
        "SignedHeaders=content-type;host;x-amz-date, "
        "Signature=5d672d79c15b13162d9279b0855cfba6789a8edb4c82c400e06b5924a6f2b5d7"
    )


@pytest.mark.parametrize(
    ("request_", "signed"),
    [
        # From the published test suite of Signature Version 4.
        (ApiRequest("GET", HOST, (), None, False),
         "5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31"),
        (ApiRequest("GET", f"{HOST}?Param2=value2&Param1=value1", (), None, False),
         "b97d918cfa904a5beff61c982a1b6f458b799221646efd99d3219ec94cdf2500"),
        (ApiRequest("POST", HOST, (), None, False),
         "5da7c1a2acd57cee7505fc6676e4e544621c30862966e37dddb68e92efbe5d6b"),
    ],
)  # fmt: skip
def test_the_published_suite(request_: ApiRequest, signed: str) -> None:
    made = sign_request(request_, CREDENTIAL, "service", "us-east-1", NOW)
    assert signature(made) == signed


def test_s3_signs_its_body_and_a_path_that_is_encoded_once() -> None:
    key = quote("a b/ü", safe="")
    request = ApiRequest("PUT", f"https://s3.eu-west-1.amazonaws.com/bucket/{key}", (), b"x", False)
    made = sign_request(request, CREDENTIAL, "s3", "eu-west-1", NOW)
    assert header(made, "X-Amz-Content-Sha256") == (
        "2d711642b726b04401627ca9fbac32f5c8530fb1903cc4db02258717921a4881"
    )
    assert "host;x-amz-content-sha256;x-amz-date" in (header(made, "Authorization") or "")


def test_a_value_cannot_bring_its_own_signature_or_date() -> None:
    odd = (("authorization", "mine"), ("X-AMZ-DATE", "20000101T000000Z"))
    request = ApiRequest("GET", HOST, odd, None, False)
    made = sign_request(request, CREDENTIAL, "service", "us-east-1", NOW)
    assert [name for name, _ in made.headers] == ["X-Amz-Date", "Authorization"]
    assert header(made, "X-Amz-Date") == "20150830T123600Z"


def test_a_session_token_is_sent_and_no_secret_is_shown() -> None:
    credential = AwsCredential("AKID", "hidden-secret", "hidden-token")
    request = ApiRequest("GET", HOST, (), None, False)
    made = sign_request(request, credential, "service", "us-east-1", NOW)
    assert header(made, "X-Amz-Security-Token") == "hidden-token"
    assert "x-amz-security-token" in (header(made, "Authorization") or "")
    assert "hidden" not in repr(credential)
    assert "hidden-secret" not in repr(made)
