"""What Access of a console could show, as the server would answer it."""

from __future__ import annotations

import time
from typing import Any

from products.console.support.console_cards import BIDI, HOSTILE, RTL, Json, card

VERBS = ("See names", "Read", "Export", "Change rows", "Change every row", "Change structure")
KINDS = ("allow", "allow", "masked", "ask", "ask", "deny")


def budgets() -> Json:
    """One that is nearly used up, for a token of a hostile name."""
    now = time.time()
    return {
        "budgets": [
            {
                "id": "bud_1",
                "token": HOSTILE,
                "owner": "",
                "source": "shop",
                "about": f"the token {HOSTILE} on shop",
                "measure": "calls",
                "window": "minute",
                "units": 100,
                "amount": "100",
                "size": "100 calls a minute",
                "left": "7 calls",
                "share": 0.07,
                "renews_at": now + 40,
                "changed_at": now - 3_600,
                "changed_by": "ann",
            }
        ],
        "measures": ["calls", "rows", "bytes", "seconds"],
        "windows": ["minute", "hour", "day"],
        "tokens": ["claude", HOSTILE],
        "owners": ["ann"],
        "sources": ["shop"],
        "may": {"set": True, "whole": True},
    }


def access() -> Json:
    now = time.time()
    may_all = {"roles": True, "remove": True, "link": False, "why_not": ""}
    return {
        "operators": [
            {
                "name": "ann",
                "roles": [{"role": "admin", "sources": None}],
                "created_at": now - 9e5,
                "sessions": 1,
                "invited": False,
                "may": {
                    "roles": False,
                    "remove": False,
                    "link": False,
                    "why_not": "The last admin of all sources stays one.",
                },
            },
            {
                "name": HOSTILE,
                "roles": [{"role": "viewer", "sources": ["shop", RTL]}],
                "created_at": now - 8e5,
                "sessions": 0,
                "invited": True,
                "may": {**may_all, "link": True},
            },
        ],
        "sessions": [
            {
                "id": "s1",
                "operator": "ann",
                "since": now - 3600,
                "seen_at": now,
                "address": "127.0.0.1",
                "browser": "Chromium on Linux",
                "current": True,
            },
            {
                "id": "s2",
                "operator": "bob",
                "since": now - 7200,
                "seen_at": now - 60,
                "address": "10.0.0.7",
                "browser": HOSTILE,
                "current": False,
            },
        ],
        "tokens": [
            token("t1", "analyst", sources=["shop"], expires_at=now + 3e5, last_used_at=now - 5),
            token("t2", HOSTILE, sources=[HOSTILE], tags=[RTL], tables=[BIDI], max_rows_changed=5),
            token("t3", BIDI, revoked_at=now - 50, state="revoked", owner=""),
        ],
        "pairings": [],
        "invited": False,
        "grants": [
            card(
                9,
                state="allowed",
                grant={"until": now + 300, "uses": 1, "most_uses": 20},
                decided_at=now - 5,
                decided_by="ann",
            )
        ],
        "may": {
            "end": True,
            "revoke": True,
            "make": True,
            "of": None,
            "operators": True,
            "why_not": "",
        },
    }


def token(id: str, name: str, **changes: Any) -> Json:
    first: Json = {
        "id": id,
        "name": name,
        "prefix": "tg_abc",
        "scope": "readWrite",
        "sources": None,
        "tags": None,
        "tables": None,
        "max_rows_changed": None,
        "proxy": False,
        "owner": "ann",
        "created_at": time.time() - 9e5,
        "expires_at": None,
        "last_used_at": None,
        "revoked_at": None,
        "state": "active",
        "version": "v1",
        "may": {"change": True, "revoke": True, "why_not": ""},
    }
    return {**first, **changes}


def pairing(id: str = "7F3K-92QM", client: str = "laptop", **changes: Any) -> Json:
    now = time.time()
    wanted = {"scope": "readWrite", "sources": ["shop"], "tags": None, "tables": None}
    first: Json = {
        "id": id,
        "client": client,
        "address": "127.0.0.1",
        "asked_at": now - 10,
        "expires_at": now + 290,
        "wanted": {**wanted, "lasts_s": 90 * 86_400},
    }
    return {**first, **changes}


def choices(**changes: Any) -> Json:
    verbs = [
        {"name": each.lower().replace(" ", "_"), "label": each, "kinds": [each]} for each in VERBS
    ]
    callers = [
        caller("token:t1", "analyst"),
        caller("token:t2", HOSTILE),
        caller("other:stdio", BIDI),
    ]
    return {
        "verbs": verbs,
        "callers": callers,
        "more": False,
        "by_source": True,
        "why_not": "",
        **changes,
    }


def caller(id: str, name: str) -> Json:
    kind = id.partition(":")[0]
    return {"id": id, "kind": kind, "name": name, "scope": "readWrite", "kept": f"the token {name}"}


def matrix_row(**of: Any) -> Json:
    cells = [
        {
            "kind": kind,
            "rule": "actor.writes",
            "reason": HOSTILE,
            "confirms": kind == "ask",
            "differs": False,
        }
        for kind in KINDS
    ]
    return {"cells": cells, "problem": "", "role": "", **of}


def cell_detail(**changes: Any) -> Json:
    setting = {"name": "scope", "value": HOSTILE, "kept": HOSTILE}
    finding = {"rule": "actor.writes", "says": HOSTILE, "found": "deny", "reason": HOSTILE}
    first: Json = {
        "caller": caller("token:t1", HOSTILE),
        "source": {"name": HOSTILE, "engine": "sqlite", "color": 3},
        "verb": "change_rows",
        "label": HOSTILE,
        "kind": "deny",
        "confirms": False,
        "rule": "actor.writes",
        "reason": HOSTILE,
        "hint": HOSTILE,
        "kinds": [{"word": HOSTILE, "kind": "ask", "reason": HOSTILE}] * 2,
        "settings": [setting],
        "rules": [finding],
        "limits": [{"kind": "mask", "text": HOSTILE, "kept": HOSTILE}],
    }
    return {**first, **changes}
