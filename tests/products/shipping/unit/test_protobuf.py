"""What we write of OTLP, read by OpenTelemetry's own definitions."""

from __future__ import annotations

import pytest
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import (
    ExportLogsServiceRequest,
    ExportLogsServiceResponse,
)

from tidegate.products.shipping.protobuf import (
    attribute,
    export_request,
    log_record,
    rejected_in,
    varint,
)


@pytest.mark.parametrize("size", [0, 1, 127, 128, 16_383, 16_384, 3_000_000])
def test_a_request_is_read_as_it_was_meant(size: int) -> None:
    body = b'{"a":"' + b"x" * size + b'"}'
    record = log_record(
        1_796_020_254_351_000_000, 9, "tidegate.call.outcome", body,
        (attribute("log.record.uid", b"g/000001/5"),), b"t" * 16,
    )  # fmt: skip
    text = export_request({"service.name": "tidegate"}, "tidegate.audit", "1", [record, record])
    found = ExportLogsServiceRequest.FromString(text)
    (of_resource,) = found.resource_logs
    (about,) = of_resource.resource.attributes
    assert (about.key, about.value.string_value) == ("service.name", "tidegate")
    (of_scope,) = of_resource.scope_logs
    assert (of_scope.scope.name, of_scope.scope.version) == ("tidegate.audit", "1")
    assert len(of_scope.log_records) == 2
    for each in of_scope.log_records:
        assert each.time_unix_nano == each.observed_time_unix_nano == 1_796_020_254_351_000_000
        assert (each.severity_number, each.event_name) == (9, "tidegate.call.outcome")
        assert each.body.string_value.encode() == body
        assert each.trace_id == b"t" * 16
        assert [(a.key, a.value.string_value) for a in each.attributes] == [
            ("log.record.uid", "g/000001/5")
        ]
    # Nothing was written that the definitions do not know.
    assert (
        found.SerializeToString()
        == ExportLogsServiceRequest.FromString(found.SerializeToString()).SerializeToString()
    )
    assert len(found.SerializeToString()) == len(text)


def test_an_answer_says_what_was_thrown_away() -> None:
    answer = ExportLogsServiceResponse()
    assert rejected_in(answer.SerializeToString()) == (0, "")
    answer.partial_success.rejected_log_records = 300
    answer.partial_success.error_message = "too old, ü"
    assert rejected_in(answer.SerializeToString()) == (300, "too old, ü")


@pytest.mark.parametrize("answer", [b"\x0a\x05\x08", b"<html>", b"\x0a\xff", b"\xff" * 12])
def test_what_is_no_answer_is_refused(answer: bytes) -> None:
    with pytest.raises((ValueError, IndexError)):
        rejected_in(answer)


def test_numbers_have_as_many_groups_as_they_need() -> None:
    assert [varint(each) for each in (0, 1, 127, 128, 300)] == [
        b"\x00", b"\x01", b"\x7f", b"\x80\x01", b"\xac\x02",
    ]  # fmt: skip
