"""The contract of `MessageStore`, and the mailbox of a process on it."""

from __future__ import annotations

import asyncio
import threading

import pytest

from support.eventually import PATIENCE_S
from tidegate.errors import Code, TidegateError
from tidegate.store.messages import KEPT_S, MOST_BODY, MOST_BYTES, Mailbox, Message


def send(state, body=b"", sender="a", to="", kind="hello", now=100.0):
    return state.messages.send(sender, to, kind, body, now)


def test_a_message_is_read_by_whom_it_is_for(state, other):
    first = send(state, b"\x00one")
    second = send(state, b"two", to="b")
    send(state, b"own", sender="b")
    assert other.messages.read("b", 0, 9) == (
        Message(first, "a", "", "hello", b"\x00one"),
        Message(second, "a", "b", "hello", b"two"),
    )
    assert [each.body for each in other.messages.read("c", 0, 9)] == [b"\x00one", b"own"]
    assert [each.body for each in other.messages.read("b", first, 9)] == [b"two"]
    assert [each.body for each in other.messages.read("b", 0, 1)] == [b"\x00one"]


def test_the_number_of_a_message_is_the_counter_of_the_topic(state, other):
    assert send(state) == other.read_versions()["messages"] == state.versions.of("messages")


def test_old_messages_go_and_numbers_go_on(state):
    send(state, now=100.0)
    kept = send(state, now=200.0)
    state.messages.forget(150.0)
    assert [each.n for each in state.messages.read("b", 0, 9)] == [kept]
    state.messages.forget(300.0)
    assert send(state) == kept + 1


def test_a_message_that_is_too_long_is_refused(state):
    with pytest.raises(TidegateError) as caught:
        send(state, b"x" * (MOST_BYTES + 1))
    assert caught.value.code is Code.LIMIT_BYTES
    assert state.messages.read("b", 0, 9) == ()


def test_who_reads_after_a_number_misses_nothing_that_is_sent_at_once(state, open_state):
    writers, most = 3, 15
    opened = [open_state() for _ in range(writers)]

    def write(each, name):
        for n in range(most):
            send(each, f"{name} {n}".encode(), sender=name)

    threads = [
        threading.Thread(target=write, args=(each, f"w{n}")) for n, each in enumerate(opened)
    ]
    for thread in threads:
        thread.start()
    found, after = [], 0
    for _ in range(2_000):
        alive = any(thread.is_alive() for thread in threads)
        for message in state.messages.read("reader", after, 4):
            found.append(message.body.decode())
            after = message.n
        if not alive and len(found) == writers * most:
            break
    for thread in threads:
        thread.join(PATIENCE_S)
    assert len(found) == len(set(found)) == writers * most
    for name in ("w0", "w1", "w2"):
        assert [each for each in found if each.startswith(name)] == [
            f"{name} {n}" for n in range(most)
        ]


async def test_a_mailbox_gets_what_others_send_from_now_on(state, other):
    await asyncio.to_thread(send, other, b"before", sender="other")
    await asyncio.to_thread(state.versions.follow)
    got: asyncio.Queue[tuple[str, bytes]] = asyncio.Queue()
    mailbox = Mailbox(state.messages, state.versions, "me", lambda: 100.0)  # the time of `send`
    mailbox.handle("hello", lambda sender, body: got.put_nowait((sender, body)))
    reading = asyncio.create_task(mailbox.run(most=2))
    await asyncio.sleep(0)
    for n in range(5):
        await asyncio.to_thread(send, other, b"%d" % n, sender="other", to="me" if n % 2 else "")
    await asyncio.to_thread(send, other, b"unknown", sender="other", kind="of a later version")
    await mailbox.send("hello", b"mine")
    await asyncio.to_thread(send, other, b"last", sender="other")
    found = [await got.get() for _ in range(6)]
    assert found == [("other", b"%d" % n) for n in range(5)] + [("other", b"last")]
    reading.cancel()


async def test_a_mailbox_forgets_what_is_old(state, other):
    now = [1_000.0]
    mailbox = Mailbox(state.messages, state.versions, "me", lambda: now[0])
    await mailbox.send("hello", b"old")
    now[0] += 400.0
    await mailbox.send("hello", b"new")
    found = await asyncio.to_thread(other.messages.read, "b", 0, 9)
    assert [each.body for each in found] == [b"new"]


async def test_a_mailbox_with_a_key_hears_those_who_have_it_alone(state, other):
    """The answer of a person to a question comes so."""
    await asyncio.to_thread(state.versions.follow)
    got: asyncio.Queue[tuple[str, bytes]] = asyncio.Queue()
    mine = Mailbox(state.messages, state.versions, "me", lambda: 100.0, key=b"k" * 32)
    theirs = Mailbox(other.messages, other.versions, "b", lambda: 100.0, key=b"k" * 32)
    strange = Mailbox(other.messages, other.versions, "c", lambda: 100.0, key=b"x" * 32)
    for kind in ("hello", "answer"):
        mine.handle(kind, lambda sender, body: got.put_nowait((sender, body)))
    reading = asyncio.create_task(mine.run())
    await asyncio.sleep(0)
    await theirs.send("hello", b"first")
    (sent,) = await asyncio.to_thread(other.messages.read, "me", 0, 9)
    for forged in (
        {"body": b"written past the gates"},
        {"body": b""},
        {"body": sent.body, "kind": "answer"},
        {"body": sent.body, "to": "me"},
        {"body": sent.body, "sender": "d"},
        {"body": sent.body[:-1] + b"?"},
    ):
        await asyncio.to_thread(send, other, **{"sender": "b", **forged})
    await strange.send("hello", b"of another key")
    await theirs.send("hello", b"last", to="me")
    assert [await got.get() for _ in range(2)] == [("b", b"first"), ("b", b"last")]
    reading.cancel()


async def test_what_is_sent_encrypted_is_read_by_those_with_the_key_alone(state, other):
    await asyncio.to_thread(state.versions.follow)
    got: asyncio.Queue[tuple[str, bytes]] = asyncio.Queue()
    mine = Mailbox(state.messages, state.versions, "me", lambda: 100.0, key=b"k" * 32)
    theirs = Mailbox(other.messages, other.versions, "b", lambda: 100.0, key=b"k" * 32)
    mine.handle("calls", lambda sender, body: got.put_nowait((sender, body)), encrypted=True)
    mine.handle("hello", lambda sender, body: got.put_nowait((sender, body)))
    reading = asyncio.create_task(mine.run())
    await asyncio.sleep(0)
    body = b"SELECT 1 " * (MOST_BODY // 9)  # the longest that is sent
    await theirs.send("calls", b"SELECT 0", encrypted=True)
    await theirs.send("calls", b"sent as another version does, with a MAC")
    await theirs.send("calls", body, encrypted=True)
    await theirs.send("hello", b"last")
    assert [await got.get() for _ in range(3)] == [
        ("b", b"SELECT 0"),
        ("b", body),
        ("b", b"last"),
    ]
    kept = await asyncio.to_thread(other.messages.read, "me", 0, 9)
    assert len(kept) == 4 and not any(b"SELECT" in each.body for each in kept)
    reading.cancel()


async def test_a_process_hears_one_whose_clock_is_behind_its_own(state, other):
    await asyncio.to_thread(state.versions.follow)
    theirs = Mailbox(other.messages, other.versions, "b", lambda: 99.0, key=b"k" * 32)
    mailbox = Mailbox(state.messages, state.versions, "me", lambda: 100.0, key=b"k" * 32)
    got: asyncio.Queue[bytes] = asyncio.Queue()
    mailbox.handle("hello", lambda sender, body: got.put_nowait(body))
    reading = asyncio.create_task(mailbox.run())
    await asyncio.sleep(0)
    await theirs.send("hello", b"early")
    assert await got.get() == b"early"
    reading.cancel()


async def test_a_message_that_is_put_into_the_table_again_is_not_heard_again(state, other):
    """By whom it is read, or by a process that has begun later."""
    await asyncio.to_thread(state.versions.follow)
    now = [100.0]
    theirs = Mailbox(other.messages, other.versions, "b", lambda: now[0], key=b"k" * 32)
    got: asyncio.Queue[tuple[str, bytes]] = asyncio.Queue()

    def listen(name):
        mailbox = Mailbox(state.messages, state.versions, name, lambda: now[0], key=b"k" * 32)
        mailbox.handle("hello", lambda sender, body: got.put_nowait((name, body)))
        return asyncio.create_task(mailbox.run())

    first = listen("me")
    await asyncio.sleep(0)
    for _ in range(2):  # the same words twice are two messages
        await theirs.send("hello", b"yes")
    assert [await got.get() for _ in range(2)] == [("me", b"yes")] * 2
    kept = await asyncio.to_thread(other.messages.read, "me", 0, 9)
    now[0] = 103.0  # clocks of processes may be two seconds apart
    later = listen("later")
    await asyncio.sleep(0)
    for each in kept:
        await asyncio.to_thread(send, other, each.body, sender="b", now=103.0)
    await theirs.send("hello", b"last")
    assert sorted([await got.get() for _ in range(2)]) == [("later", b"last"), ("me", b"last")]
    for each in (first, later):
        each.cancel()


async def test_messages_of_one_sender_are_heard_in_any_order_and_not_for_ever(state):
    sender = Mailbox(state.messages, state.versions, "b", lambda: 100.0, key=b"k" * 32)
    now, got = [100.0], []
    mailbox = Mailbox(state.messages, state.versions, "me", lambda: now[0], key=b"k" * 32)
    mailbox.handle("hello", lambda sender, body: got.append(body))
    for n in range(5):
        await sender.send("hello", b"%d" % n)
    sent = await asyncio.to_thread(state.messages.read, "me", 0, 9)
    for n in (3, 0, 2, 3, 1, 0):
        mailbox._take(sent[n])
    assert got == [b"3", b"0", b"2", b"1"]
    now[0] += KEPT_S + 1.0
    mailbox._take(sent[4])  # it was removed from the table, and put back
    assert got[4:] == []
