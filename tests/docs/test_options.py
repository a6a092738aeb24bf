"""Every option that the documents name in a sentence is one of the command line's, and of the
command that they name with it."""

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


def test_a_command_that_is_written_out_takes_the_options_beside_it() -> None:
    option = re.compile(r"(?<![\w-])--[a-z][a-z-]+")
    sections = re.split(r"^## tidegate ", (DOCS / "reference" / "cli.md").read_text(), flags=re.M)
    known = {
        section.partition("\n")[0]: {*option.findall(section), "--help", "--help-all"}
        for section in sections[1:]
    }
    wrong: list[str] = []
    for part in ("howto", "explanation", "tutorial"):
        for page in sorted((DOCS / part).glob("*.md")):
            text = page.read_text().replace("\\\n", " ")
            for line in re.findall(r"(?:`|^\$ |^)tidegate ([^`\n|;&#>]+)", text, flags=re.M):
                words = line.split()
                named = " ".join(words[:2])
                options = known.get(named, known.get(words[0]))
                if options is not None and not options.issuperset(option.findall(line)):
                    wrong.append(f"{page.relative_to(DOCS)}: tidegate {line}")
    assert wrong == []
