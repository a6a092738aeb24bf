"""The arguments of `state`."""

from __future__ import annotations

from tidegate.cli.arguments.options import Commands, consent_option, filled, home_options


def add_state(commands: Commands) -> None:
    state = commands.add_parser("state", help="back up the state, restore it, and move it")
    actions = state.add_subparsers(title="actions", dest="action", metavar="ACTION", required=True)
    backup = actions.add_parser(
        "backup",
        help="write an encrypted backup, also while servers run",
        description="Write the state database, the keys, the kept passwords and the newest "
        "checkpoint of the record, as they are at one moment, into an encrypted file. Servers go "
        "on meanwhile. The record itself is not in it: ship it, or copy its directory.",
    )
    backup.add_argument("file", metavar="FILE", type=filled, help="a file that is not there yet")
    restore = actions.add_parser(
        "restore",
        help="make a state directory of a backup",
        description="Make a state directory of a backup, in an empty directory. Sessions, waiting "
        "questions and unused approvals end. A right that the record says was taken away after the "
        "backup is taken away again.",
    )
    restore.add_argument("file", metavar="FILE", type=filled, help="what `state backup` wrote")
    restore.add_argument(
        "--record",
        type=filled,
        action="append",
        metavar="DIR",
        help="the audit directory of the former state, or a copy of it, that goes on to the end; "
        "where several gates shared the state, one for each of them",
    )
    restore.add_argument(
        "--without-record",
        action="store_true",
        help="restore rights that were taken away after the backup, without asking",
    )
    copy = actions.add_parser(
        "copy",
        help="move the state into PostgreSQL, or back into a directory, also while servers run",
        description="Copy the state to a place that has none. Then the former state refuses every "
        "process, which names the new one. Calls that only read go on meanwhile. Keys, passwords "
        "and the record stay in the state directory.",
    )
    copy.add_argument(
        "target",
        metavar="TARGET",
        type=filled,
        help="postgresql://USER:${ENV:NAME}@HOST/DATABASE or a reference to such a URL; or, where "
        "the state is in PostgreSQL, a directory",
    )
    copy.set_defaults(module="tidegate.products.backup.commands.state")
    home_options(copy)
    seal = actions.add_parser(
        "seal",
        help="seal the rows of the state that give rights, as they are",
        description="Seal all rows that give rights with the key of the gates (`state_key`): once "
        "when a state gets its key, and again when rows were changed past the gates and a person "
        "has put them right. From then on rows that no gate has written count as absent. Restart "
        "the gates after it.",
    )
    consent_option(seal)
    seal.set_defaults(module="tidegate.products.backup.commands.state")
    home_options(seal)
    for action in (backup, restore):
        action.add_argument(
            "--passphrase-file",
            type=filled,
            metavar="FILE",
            help="read the backup's passphrase from the first line of FILE, from standard input "
            "for - (default: ask for it)",
        )
        action.set_defaults(module="tidegate.products.backup.commands.state")
        home_options(action)
