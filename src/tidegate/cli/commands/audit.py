"""`tidegate audit verify | tail | checkpoint | key | forget`: read and verify the audit log.

The commands use the files of the log, without a server; `verify` also reads what a state that gates
share knows of them. Only `key --replace` and `forget` write.
"""

from __future__ import annotations

import argparse
import time
import unicodedata
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import msgspec

from tidegate.audit.chain_uses import FORGOTTEN
from tidegate.audit.joint_verify import JointReport, verify_together
from tidegate.audit.segment_check import Fault
from tidegate.audit.tail import Record, Tail, TailFilter
from tidegate.audit.verify import Report, read_anchors, verify
from tidegate.cli.settings import load_for_state
from tidegate.cli.terminal import color, print_status, show, show_json
from tidegate.config.model import Config
from tidegate.config.state import state_directory, state_url
from tidegate.errors import Code, TidegateError
from tidegate.store.gates import GateEntry
from tidegate.store.opening import read_gates

CHANGED = 1
"""The exit status of `verify` when the log was changed."""
UNCHECKED = 3
"""The exit status of `verify` when nothing was found, but not all could be checked."""
_WORDS = {0: "intact", CHANGED: "CHANGED", UNCHECKED: "intact as far as it could be checked"}
_POLL_S = 0.5


def run(arguments: argparse.Namespace) -> int:
    """Run `arguments.action`. `verify` returns 1 if the log was changed, 3 if nothing was
    found but not all could be checked."""
    config = load_for_state(arguments)
    if arguments.action == "verify":
        return _verify(config, arguments)
    if arguments.action == "forget":
        return _forget(config, arguments)
    actions = {"tail": _tail, "checkpoint": _checkpoint, "key": _key}
    return actions[arguments.action](state_directory(config.state), arguments)


def _verify(config: Config, arguments: argparse.Namespace) -> int:
    from tidegate.audit.keys import fingerprint, parse_public

    public = [parse_public(text) for text in arguments.key]
    trusted = {fingerprint(each): each for each in public}
    anchors = [anchor for text in arguments.anchor for anchor in read_anchors(text)]
    if arguments.directory is not None:
        if arguments.directories:
            raise TidegateError(
                Code.ARGUMENT_INVALID,
                "--directory is for a copy of one log, and gates are named as well.",
                hint="Name the directories of gates without --directory.",
            )
        report = verify(Path(arguments.directory), None, anchors, trusted)
        return _show_report(report, as_json=arguments.json)
    gates, unread = _known_gates(config)
    if arguments.directories:
        joint = verify_together(
            [Path(each) for each in arguments.directories], gates, anchors, trusted
        )
        return _show_joint(joint, unread, as_json=arguments.json)
    directory = state_directory(config.state)
    if gates is None or not (directory / "audit").is_dir():
        report = verify(directory / "audit", directory / "audit-key", anchors, trusted)
    else:
        report = _alone(verify_together([directory], gates, anchors, trusted, complete=False))
    if unread:
        report = msgspec.structs.replace(report, unchecked=(*report.unchecked, unread))
    return _show_report(report, as_json=arguments.json)


def _known_gates(config: Config) -> tuple[tuple[GateEntry, ...] | None, str]:
    """The gates of a state that gates share, or why they are not known: None and empty for a state
    of one gate. Raises: TidegateError for a URL that is none."""
    url = state_url(config.state_url)
    if url is None:
        return None, ""
    try:
        return read_gates(url)[0], ""
    except TidegateError as error:
        return None, f"what the state knows of its gates ({error.message})"


def _alone(joint: JointReport) -> Report:
    """What concerns the one gate that was verified."""
    report = joint.gates[0].report
    faults = (*report.faults, *(Fault("", 0, reason) for reason in joint.faults))
    return msgspec.structs.replace(
        report,
        intact=not faults,
        faults=faults,
        notes=(*report.notes, *joint.notes),
        unchecked=(*report.unchecked, *joint.unchecked),
    )


def _show_joint(joint: JointReport, unread: str, *, as_json: bool) -> int:
    if unread:
        joint = msgspec.structs.replace(joint, unchecked=(*joint.unchecked, unread))
    partly = bool(joint.unchecked) or any(each.report.unchecked for each in joint.gates)
    status = CHANGED if not joint.intact else UNCHECKED if partly else 0
    if as_json:
        show_json(joint)
        return status
    for each in joint.gates:
        show(f"{each.directory} (gate {each.gate or 'without an id'})")
        _show_report(each.report, as_json=False)
    for fault in joint.faults:
        show(f"{color('all gates', '31')}: {fault}")
    for unchecked in joint.unchecked:
        print_status(f"not checked: {unchecked}")
    show(f"{_WORDS[status]}: {_counted(len(joint.gates), 'gate')}, {_counted(joint.lines, 'line')}")
    return status


def _show_report(report: Report, *, as_json: bool) -> int:
    status = CHANGED if not report.intact else UNCHECKED if report.unchecked else 0
    if as_json:
        show_json(report)
        return status
    for fault in report.faults:
        where = f"{fault.segment} line {fault.line}" if fault.line else fault.segment or "the log"
        show(f"{color(where, '31')}: {fault.reason}")
    for note in report.notes:
        print_status(f"note: {note}")
    for unchecked in report.unchecked:
        print_status(f"not checked: {unchecked}")
    until = _moment(report.signed_until) if report.signed_until is not None else "never"
    show(
        f"{_WORDS[status]}: {_counted(report.lines, 'line')} in "
        f"{_counted(report.segments, 'segment')}, {_counted(report.checkpoints, 'checkpoint')}, "
        f"signed until {until}"
    )
    return status


def _tail(directory: Path, arguments: argparse.Namespace) -> int:
    since = _moment_of(arguments.since) if arguments.since else None
    until = _moment_of(arguments.until) if arguments.until else None
    wanted = TailFilter(arguments.actor, arguments.source, since, arguments.all, until)
    tail = Tail(directory / "audit")
    show_one = _show_json if arguments.json else _show_record
    count = max(0, arguments.count)
    found = tail.newest(wanted, count + 1)
    for record in found[-count:] if count else ():
        show_one(record)
    if not found:
        print_status("note: no record matches; `tidegate audit tail --all` shows every record")
    if len(found) > count:
        print_status(f"note: these are the newest {count} records; there are more, see -n")
    while arguments.follow:
        time.sleep(_POLL_S)
        for record in tail.more(wanted):
            show_one(record)
    return 0


def _checkpoint(directory: Path, arguments: argparse.Namespace) -> int:
    from tidegate.audit.checkpoints import LatestCheckpoint
    from tidegate.audit.control_records import encode_control_record

    newest = LatestCheckpoint(directory / "audit-key").read()
    if newest is None:
        raise TidegateError(
            Code.STATE_FAILED,
            "The audit log has no signed checkpoint yet.",
            hint="The server signs one within seconds after a call, and when it stops.",
        )
    show(encode_control_record(newest).decode())
    return 0


def _key(directory: Path, arguments: argparse.Namespace) -> int:
    from tidegate.audit.keys import Keys, public_text

    keys = Keys(directory / "audit-key")
    if not arguments.replace:
        current = keys.public()
        earlier = sorted(public_text(each) for each in keys.trusted().values())
        show("\n".join([current, *(each for each in earlier if each != current and arguments.all)]))
        return 0

    from tidegate.audit.log import AuditLog
    from tidegate.audit.server_events import ServerEvent

    before = keys.public()
    log = AuditLog(directory / "audit", keys=keys.directory)
    try:
        # The old key signs its replacement; the new key signs what follows.
        log.record_event(
            ServerEvent(name="audit.key_replaced", actor="cli", details={"old": before})
        )
    finally:
        log.close()
    show(keys.replace())
    print_status("Running servers sign with the old key until you restart them.")
    return 0


def _forget(config: Config, arguments: argparse.Namespace) -> int:
    from tidegate.app import App
    from tidegate.cli.consent import require_consent
    from tidegate.cli.local_actor import with_app

    async def work(app: App) -> None:
        found = [each for each in app.state.gates.list() if each.id == arguments.gate]
        if not found:
            raise TidegateError(
                Code.ARGUMENT_INVALID,
                f"The state knows no gate `{arguments.gate[:40]}`.",
                hint="`tidegate audit verify DIR...` names those whose records are missing.",
            )
        if found[0].expires_at > app.state.now():
            raise TidegateError(
                Code.ARGUMENT_INVALID,
                f"The gate {found[0].id} runs in {found[0].place}.",
                hint="End it first.",
            )
        what = f"have the record of the gate {found[0].id} ({found[0].place}) not be missed"
        require_consent(app, "forget", what, arguments)
        app.note(FORGOTTEN, {"gate": found[0].id, "place": found[0].place})
        app.state.gates.forget(found[0].id)
        print_status(f"the gate {found[0].id} is forgotten; keep its directory as evidence")

    with_app(App.open(config), work)
    return 0


def _moment_of(text: str) -> datetime:
    """Parse a time, or a duration before now. Raises: TidegateError ARGUMENT_INVALID."""
    from tidegate.identity.tokens import parse_expiry

    days = {"today": 0, "yesterday": 1}.get(text.lower())
    if days is not None:
        day = datetime.now().date() - timedelta(days=days)
        return _local(datetime(day.year, day.month, day.day))
    try:
        given = datetime.fromisoformat(text)
        return _local(given) if given.tzinfo is None else given.astimezone(UTC)
    except (ValueError, OverflowError):  # a duration, or a year out of range
        pass
    try:
        ahead = parse_expiry(text, 0.0)
    except TidegateError:
        ahead = None
    if ahead is None:
        raise TidegateError(
            Code.ARGUMENT_INVALID,
            f"`{text[:40]}` is not a time.",
            hint="Use a form such as 2h, 1d, 2026-01-31 or 2026-01-31T08:00Z.",
        )
    return datetime.fromtimestamp(time.time() - ahead, UTC)


def _local(moment: datetime) -> datetime:
    """A time without a zone, which is meant in this machine's, as a note tells the user."""
    here = moment.astimezone()
    print_status(f"note: {here.isoformat()} ({here.tzname()}) is meant; times shown are UTC")
    return here.astimezone(UTC)


def _show_json(record: Record) -> None:
    show(msgspec.json.encode(record.fields).decode())


def _show_record(record: Record) -> None:
    fields = record.fields
    words = (
        fields.get("phase", ""),
        _actor(fields),
        fields.get("source") or "-",
        *_what(fields),
    )
    line = "  ".join(_plain(str(word)) for word in words if word)
    show(f"{color(_moment(record.time), '2')}  {line}")


def _actor(fields: dict[str, Any]) -> str:
    """Name and id of the actor, or the one of them that is known; the same word once."""
    name, id = fields.get("actor_name"), fields.get("actor")
    return f"{name} ({id})" if name and id and name != id else str(name or id or "-")


def _what(fields: dict[str, Any]) -> list[str]:
    """The parts of a record that are shown after time, actor and source."""
    came = f"address={fields['address']}" if "address" in fields else ""
    if fields.get("phase") == "event":
        details = " ".join(f"{name}={value}" for name, value in fields.get("details", {}).items())
        count = f"{fields['count']} times" if "count" in fields else ""
        return [str(fields.get("name", "")), count, came, details]
    if fields.get("phase") == "gap":
        return [f"{fields.get('missed')} events are missing since {fields.get('since')}"]
    if "call_id" not in fields:
        return [f"{name}={fields[name]}" for name in ("segment", "next") if name in fields]
    size = _counted(fields["rows"], "row") if "rows" in fields else ""
    took = f"{fields['elapsed_ms']:.1f} ms" if "elapsed_ms" in fields else ""
    failed = " ".join(filter(None, (fields.get("code"), fields.get("error"))))
    # Without this note a dry run looks like a change that ran before it was approved.
    tried = "dry run, rolled back" if fields.get("request") == "dry_run" else ""
    answered = f"approval={fields['approval']}" if "approval" in fields else ""
    text = fields.get("statement") or fields.get("tool") or ""
    if "length" in fields:
        text += f"... ({fields['length']:,} characters)"
    return [
        *(fields.get("effect", ""), fields.get("verdict", ""), tried, answered),
        *(size, took, failed, came, text),
    ]


def _counted(count: int, thing: str) -> str:
    return f"{count} {thing}" if count == 1 else f"{count} {thing}s"


def _moment(moment: datetime) -> str:
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _plain(text: str) -> str:
    """The text without control and bidirectional characters."""
    return "".join(
        " " if unicodedata.category(char) in ("Cc", "Cf", "Zl", "Zp") else char for char in text
    )
