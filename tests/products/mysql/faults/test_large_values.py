"""Values that are large come whole; one that is too large is not taken in."""

import pytest

from tidegate.errors import Code, TidegateError

MIB = 2**20


@pytest.fixture
def generous(server):
    """A server that sends rows as large as there can be."""
    server.script(f"SET GLOBAL max_allowed_packet = {1024 * MIB}")
    yield
    server.script("SET GLOBAL max_allowed_packet = DEFAULT")


@pytest.mark.usefixtures("generous")
async def test_a_value_in_several_packets_comes_whole(shop):
    async with shop.opened() as engine:
        ((value, behind),) = await shop.ask(engine, f"SELECT REPEAT('ab', {20 * MIB}), 'behind'")
        assert (len(value), value[-3:], behind) == (40 * MIB, "bab", "behind")


@pytest.mark.usefixtures("generous")
@pytest.mark.parametrize("params", [None, (1,)])
async def test_a_value_that_is_too_large_is_given_up_and_the_next_call_works(shop, params):
    async with shop.opened() as engine:
        text = f"SELECT REPEAT('x', {300 * MIB}){', ?' if params else ''}"
        with pytest.raises(TidegateError) as caught:
            await shop.ask(engine, text, params)
        assert caught.value.code is Code.LIMIT_BYTES
        assert "left(" in caught.value.hint
        assert await shop.ask(engine, "SELECT 1") == [(1,)]
