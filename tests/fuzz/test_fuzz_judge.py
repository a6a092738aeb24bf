"""A short run of the judge's fuzz target, without the fuzzer: the same texts every time."""

from __future__ import annotations

import random

from hypothesis import given, settings
from hypothesis import strategies as st

from fuzz.judge import DIALECTS, check, seeds
from support.judge_splices import splice

SPLICED = 3_000


def test_every_case_passes_the_target_in_every_dialect() -> None:
    for seed in seeds():
        for place in range(len(DIALECTS)):
            check(bytes([place]) + seed[1:])


def test_spliced_texts_pass_the_target() -> None:
    chance = random.Random(20_261_122)
    for _ in range(SPLICED):
        dialect = bytes([chance.randrange(len(DIALECTS))])
        check(dialect + splice(chance).encode("utf-8", "surrogatepass"))


def test_texts_with_flipped_bits_pass_the_target() -> None:
    chance = random.Random(20_261_122)
    for seed in seeds():
        data = bytearray(seed)
        for _ in range(chance.randrange(1, 4)):
            data[chance.randrange(len(data))] ^= 1 << chance.randrange(8)
        check(bytes(data))


@given(st.binary(max_size=300))
@settings(derandomize=True, max_examples=500)
def test_any_bytes_pass_the_target(data: bytes) -> None:
    check(data)
