"""Makes statements without end: reads, changes that look like reads, and what lies between.

A statement begins as one of the cases, as a call of a function, as a query made of pieces, or as a
known change, and is then rewritten up to four times. The same seed gives the same statements.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Iterator, Sequence

from read_only_fuzz.fragments import pieces
from support.judge_cases import load
from support.judge_mutations import mutate
from tidegate.sql.dialects import find
from tidegate.sql.finding import Refusal

MOST_CHARACTERS = 4_000
_BIG = re.compile(r"\d{7,}")
_CALLED = re.compile(r"\b[A-Za-z_][A-Za-z0-9_]*(?=\s*\()")
_NAME = re.compile(r"\b[A-Za-z_][A-Za-z0-9_]*\b")
_STRING = re.compile(r"'[^'\n]*'")
_TOKEN = re.compile(r"\s+|\w+|'[^']*'|[^\w\s]")
_ODD = (
    *("\u00a0", "\u200b", "\ufeff", "\u2028", "\x0b", "\x0c", "\r", "\x1a", "\x00", "\u3000"),
    *(
        "\u00ad",
        "\u202e",
        "\x85",
        "\x08",
        "\ud800",
        "\\",
        "`",
        '"',
        "'",
        ";",
        "--",
        "/*",
        "*/",
        "#",
    ),
    *("$$", "/*!", "--\r", "\n", "(", ")", "@", ":", "?", "\u2019", "\uff1b", "\uff07", "{}", "{d"),
)
_LOOKALIKE = str.maketrans(
    "kKsSiIeEoO", "\u212a\u212a\u017f\u017f\u0131\u0130\u0435\u0415\u043e\u041e"
)
_INSIDE = (
    *(
        "'; DELETE FROM u; --'",
        "'\\'",
        "'\\'; DELETE FROM u; -- '",
        "'DELETE FROM u'",
        "'*/'",
        "'/*'",
    ),
    *("'s'", "'t'", "'a'' ; DROP TABLE u --'", "E'\\'; DELETE FROM u --'", "$$ ; DELETE FROM u $$"),
    *(
        '"\'; DELETE FROM u; --"',
        "N'x'",
        "X'27'",
        "U&'\\0027'",
        "'out' || 'file'",
        "q'[x]'",
        "'%s'",
    ),
)


class Statements:
    """The statements of one dialect. `calls` are calls of functions; `{folder}` in pieces and
    `/tmp` in cases become `folder`, where files can be written and are seen."""

    def __init__(self, dialect: str, calls: Sequence[str], folder: str, seed: int) -> None:
        self._chance = random.Random(f"{dialect} {seed}")
        self._pieces = pieces(dialect)
        self._dialect = dialect
        self._folder = folder
        self._calls = list(calls)
        self._chance.shuffle(self._calls)
        self._names = sorted(
            {found[0] for call in self._calls if (found := _CALLED.search(call))}
            | find(dialect).attributes
        )
        cases = load()
        self._own = [case.sql for case in cases if case.dialect == dialect]
        self._cases = [case.sql for case in cases]
        self._reads = [
            case.sql for case in cases if case.dialect == dialect and case.expected == "allow"
        ]
        self._reads += self._pieces.reads

    def distinct(self) -> Iterator[str]:
        """Every case once as it is, each call once; then new ones, no text twice."""
        seen: set[int] = set()
        for text in self._all():
            text = self._placed(text)
            if hash(text) not in seen and len(text) <= MOST_CHARACTERS:
                seen.add(hash(text))
                yield text

    def _all(self) -> Iterator[str]:
        yield from self._own
        yield from self._pieces.writes
        yield from self._pieces.reads
        yield from self._cases
        calls = iter(self._calls)
        while True:
            for kind in (self._call, self._read, self._query, self._hostile):
                call = next(calls, None)
                if call is not None:
                    yield f"SELECT {call} FROM t"
                yield self._rewritten(kind())

    def _placed(self, text: str) -> str:
        text = text.replace("{folder}", self._folder).replace("/tmp/", f"{self._folder}/")
        return _BIG.sub(lambda found: found[0][:4], text)

    def _rewritten(self, text: str) -> str:
        for _ in range(self._chance.choice((0, 1, 1, 1, 2, 2, 3, 4))):
            text = self._chance.choice(_REWRITES)(self, text)
        return text

    # Where a statement begins.

    def _call(self) -> str:
        frame = self._chance.choice(self._pieces.frames)
        return _filled(frame, lambda: self._chance.choice(self._calls))

    def _read(self) -> str:
        return self._chance.choice(self._reads)

    def _hostile(self) -> str:
        chance = self._chance
        return chance.choice(chance.choice((self._own, self._cases, self._pieces.writes)))

    def _query(self, depth: int = 2) -> str:
        chance = self._chance
        columns = ", ".join(self._term(depth) for _ in range(chance.randint(1, 3)))
        text = f"SELECT {columns} FROM {self._source(depth)}"
        if chance.random() < 0.3:
            text += (
                f" {chance.choice(('JOIN', 'LEFT JOIN', 'CROSS JOIN', ','))} {self._source(0)} AS k"
            )
        if chance.random() < 0.5:
            text += f" WHERE {self._term(depth)} {chance.choice(('=', '<>', '<'))} {self._term(0)}"
        if chance.random() < 0.2:
            text += f" GROUP BY {self._term(0)}"
        if chance.random() < 0.3:
            text += f" ORDER BY {self._term(0)}"
        if chance.random() < 0.3:
            text += f" LIMIT {chance.choice(self._pieces.literals)}"
        return text

    def _source(self, depth: int) -> str:
        chance = self._chance
        if depth and chance.random() < 0.2:
            return f"({self._query(depth - 1)}) AS {chance.choice(('t', 'q', 'spy'))}"
        return chance.choice(
            self._pieces.tables[:4] if chance.random() < 0.7 else self._pieces.tables
        )

    def _term(self, depth: int) -> str:
        chance, pieces = self._chance, self._pieces
        kind = chance.randint(0, 9) if depth else chance.randint(0, 3)
        if kind <= 1:
            return chance.choice(pieces.columns)
        if kind <= 3:
            return chance.choice(pieces.literals)
        if kind <= 5:
            sign = chance.choice(pieces.operators)
            return f"{self._term(depth - 1)} {sign} {self._term(depth - 1)}"
        if kind <= 7:
            return chance.choice(self._calls)
        if kind == 8:
            return f"({self._query(depth - 1)})"
        return f"CASE WHEN {self._term(0)} = 1 THEN {self._term(depth - 1)} ELSE 2 END"

    # How it is rewritten.

    def _respace(self, text: str) -> str:
        try:
            return mutate(text, self._dialect, self._chance)
        except Refusal:
            return text

    def _wrap(self, text: str) -> str:
        return _filled(self._chance.choice(self._pieces.wraps), lambda: text)

    def _explain(self, text: str) -> str:
        return self._chance.choice(self._pieces.explains).replace("{}", text)

    def _tail(self, text: str) -> str:
        return f"{text} {self._chance.choice(self._pieces.tails)}"

    def _other_function(self, text: str) -> str:
        return self._replaced(_CALLED, text, lambda _: self._chance.choice(self._names))

    def _requalify(self, text: str) -> str:
        schema = self._chance.choice(
            ("public.", "pg_catalog.", "main.", "harness.", "temp.", "sys.")
        )
        return self._replaced(_NAME, text, lambda name: schema + name)

    def _requote(self, text: str) -> str:
        marks = self._chance.choice(('""', "``", "[]", "''", "()"))
        return self._replaced(_NAME, text, lambda name: f"{marks[0]}{name}{marks[1]}")

    def _other_string(self, text: str) -> str:
        return self._replaced(_STRING, text, lambda _: self._chance.choice(_INSIDE))

    def _lookalike(self, text: str) -> str:
        return self._replaced(_NAME, text, lambda name: name.translate(_LOOKALIKE))

    def _odd(self, text: str) -> str:
        at = self._chance.randint(0, len(text))
        return text[:at] + self._chance.choice(_ODD) + text[at:]

    def _other_name(self, text: str) -> str:
        name = self._chance.choice((*self._pieces.tables, *self._pieces.columns, *self._names))
        return self._replaced(_NAME, text, lambda _: name)

    def _other_token(self, text: str) -> str:
        tokens = _TOKEN.findall(text)
        if len(tokens) < 2:
            return text
        at = self._chance.randrange(len(tokens))
        other = _TOKEN.findall(self._hostile()) or [" "]
        how = self._chance.randint(0, 3)
        if how == 0:
            del tokens[at]
        elif how == 1:
            tokens.insert(at, self._chance.choice(tokens))
        elif how == 2:
            tokens[at] = self._chance.choice(other)
        else:
            end = self._chance.randrange(len(other))
            tokens[at:at] = [" ", *other[end : end + self._chance.randint(1, 6)], " "]
        return "".join(tokens)

    def _splice(self, text: str) -> str:
        """The head of one statement and the end of another."""
        other = self._chance.choice((self._hostile, self._read, self._call))()
        head, end = _TOKEN.findall(text), _TOKEN.findall(other)
        if not head or not end:
            return text
        cut, join = self._chance.randrange(len(head)), self._chance.randrange(len(end))
        return "".join(head[: cut + 1]) + self._chance.choice(("", " ")) + "".join(end[join:])

    def _second(self, text: str) -> str:
        """Another statement, behind what might hide it."""
        write = self._chance.choice(self._pieces.writes)
        between = self._chance.choice(
            ("; ", ";\n", " -- \n;", "/**/;", " --\r;", " ", "\n", "--x\n", " /*! ; */ ", "\x00;",
             "; -- ", " /* */ ; /* ", "#\n;", "\u2028;", "\\;", "--\u2028;", " UNION ", " AS ("),
        )  # fmt: skip
        pair = (text, write) if self._chance.random() < 0.7 else (write, text)
        return between.join(pair)

    def _commented(self, text: str) -> str:
        """A change within what is a comment here, or is none there."""
        write = self._chance.choice(self._pieces.writes)
        about = self._chance.choice(
            ("/* {} */", "/*! {} */", "/*!50000 {} */", "-- {}\n", "# {}\n", "/*M! {} */", "//{}\n",
             "/* /* */ {} */", "--{}\n", "/*+ {} */", "-- {}\r", "/**/{}/**/", "/*!*/ {}",
             "/*/ {} */"),
        )  # fmt: skip
        tokens = _TOKEN.findall(text)
        at = self._chance.randint(0, len(tokens))
        tokens[at:at] = [about.replace("{}", write)]
        return "".join(tokens)

    def _cte(self, text: str) -> str:
        write = self._chance.choice(self._pieces.writes)
        return self._chance.choice(
            (f"WITH q AS ({write}) {text}", f"WITH q AS ({text}) {write}",
             f"WITH q AS MATERIALIZED ({write} RETURNING *) {text}", f"WITH a AS (SELECT 1), "
             f"q AS ({write}) {text}", f"SELECT * FROM ({write}) AS q", f"SELECT ({write})",
             f"{text} UNION ALL {write}", f"{text} WHERE EXISTS ({write})")
        )  # fmt: skip

    def _replaced(self, pattern: re.Pattern[str], text: str, by: Callable[[str], str]) -> str:
        """With one of the places that a pattern matches replaced."""
        places = list(pattern.finditer(text))
        if not places:
            return text
        place = self._chance.choice(places)
        return text[: place.start()] + by(place[0]) + text[place.end() :]


_REWRITES: tuple[Callable[[Statements, str], str], ...] = (
    *(Statements._respace,) * 3,
    *(Statements._wrap,) * 3,
    *(Statements._explain,) * 2,
    *(Statements._other_function,) * 2,
    *(Statements._other_token,) * 2,
    Statements._tail,
    Statements._requalify,
    Statements._requote,
    Statements._other_string,
    Statements._lookalike,
    Statements._odd,
    Statements._other_name,
    Statements._splice,
    Statements._second,
    Statements._commented,
    Statements._cte,
)


def _filled(frame: str, by: Callable[[], str]) -> str:
    while "{}" in frame:
        frame = frame.replace("{}", by().replace("{}", "{ }"), 1)
    return frame
