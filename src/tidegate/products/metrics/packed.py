"""The figures of a worker as bytes, for its parent."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from tidegate.typed_values import decode_msgpack

if TYPE_CHECKING:
    from prometheus_client import CollectorRegistry

TOPIC = "figures"
"""What the parent asks for (`siblings.Siblings.answers`)."""


class Sample(msgspec.Struct, array_like=True, frozen=True):
    """One value of a family."""

    name: str
    labels: dict[str, str]
    value: float


class Family(msgspec.Struct, array_like=True, frozen=True):
    """A metric, as `prometheus_client.metrics_core.Metric` has it."""

    name: str
    about: str
    type: str
    samples: list[Sample]


def pack(registry: CollectorRegistry) -> bytes:
    """All that the registry has now."""
    return msgspec.msgpack.encode(
        [
            Family(
                each.name,
                each.documentation,
                each.type,
                [Sample(sample.name, sample.labels, sample.value) for sample in each.samples],
            )
            for each in registry.collect()
        ]
    )


def unpack(body: bytes) -> list[Family]:
    """What `pack` gave; nothing of what is not understood, as of another release."""
    try:
        return decode_msgpack(body, list[Family])
    except msgspec.DecodeError:
        return []
