"""`tidegate ledger new FILE`: make an empty ledger."""

from __future__ import annotations

import argparse
import sqlite3

from tidegate.cli.arguments.options import Commands


def add_ledger(commands: Commands) -> None:
    ledger = commands.add_parser("ledger", help="make an empty ledger")
    ledger.add_argument("action", choices=["new"])
    ledger.add_argument("file", metavar="FILE", help="the file to make")
    ledger.set_defaults(module="tidegate_ledger.commands")


def run(arguments: argparse.Namespace) -> int:
    connection = sqlite3.connect(arguments.file)
    connection.execute("CREATE TABLE entries (account TEXT NOT NULL, cents INTEGER NOT NULL)")
    connection.close()
    print(f"made {arguments.file}")
    return 0
