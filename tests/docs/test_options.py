"""Every option that the documents name in a sentence is one of the command line's."""

from __future__ import annotations

import re
from pathlib import Path

DOCS = Path(__file__).parents[2] / "docs"
OF_OTHERS = {
    *("--count", "--from", "--refresh", "--seed", "--spec", "--test", "--upgrade"),
    *("--interactive", "--read-only", "--tmpfs", "--tty", "--ulimit", "--user"),
}
"""Options of `./dev`, `uvx`, `pipx`, `pip`, `podman` and `docker`."""


def test_each_option_in_a_sentence_is_in_the_reference() -> None:
    option = re.compile(r"(?<![\w-])--[a-z][a-z-]+")
    known = {*option.findall((DOCS / "reference" / "cli.md").read_text()), *OF_OTHERS}
    unknown = [
        f"{page.relative_to(DOCS)}: {name}"
        for part in ("howto", "explanation", "tutorial")
        for page in sorted((DOCS / part).glob("*.md"))
        for span in re.findall(
            r"`([^`]+)`", re.sub(r"^```.*?^```", "", page.read_text(), flags=re.M | re.S)
        )
        for name in option.findall(span)
        if name not in known
    ]
    assert unknown == []
