"""The page of an MCP App: one HTML document that needs nothing from outside, made once.

Its script is `app.js` after the module that draws charts, in one scope: the words `import` and
`export` are left out, and nothing else is changed.
"""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

import tidegate.charts

HERE = Path(__file__).parent
MODULES = (Path(tidegate.charts.__file__).parent / "chart.js", HERE / "app.js")
STYLE = HERE / "app.css"
_LINKS = re.compile(r"^(?:import .*;\n|export )", re.MULTILINE)


@cache
def app_page() -> str:
    """The document."""
    script = "\n".join([_LINKS.sub("", module.read_text("utf-8")) for module in MODULES])
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        "<title>Tidegate</title>\n"
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<style>\n{STYLE.read_text('utf-8')}</style>\n</head>\n<body>\n"
        '<main aria-live="polite"><p class="note">Waiting for the answer …</p></main>\n'
        f'<script>\n"use strict";\n{script}</script>\n</body>\n</html>\n'
    )
