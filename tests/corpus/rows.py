"""Odd rows of logs by class. A text that is `bytes` is written unchanged, even if it is not UTF-8."""

from collections.abc import Sequence
from typing import NamedTuple

import pyarrow as pa

from tests.corpus.texts import CASES

Text = str | bytes | None

SHOP = "The shop opens at 9 a.m. and closes at 5 p.m. Staff wear a badge."
QUESTION = "When does the shop open?"
ANSWER = "The shop opens at 9 a.m. It closes at 6 p.m."


class OddRow(NamedTuple):
    """A row of logs."""

    question: Text = QUESTION
    context: Sequence[Text] | None = [SHOP]
    response: Text = ANSWER


def in_every_column(text: str) -> OddRow:
    """Make a row with a text in all three columns, twice in the response."""
    return OddRow(f"What of {text}?", [text, SHOP], f"{text} It opens at ten. {text}")


EMPTY = ["", " ", "\n\n", "\t \r\n", "\u00a0", "\u3000\u2003", "\u200b", "\ufeff", "\x00", "...", "\u2014", "\u0301"]
"""Texts without words."""

RESPONSES = {
    "nothing to judge": [
        "Yes.",
        "No",
        "?",
        "-",
        "I don't know.",
        "I'm sorry, but I can't help with that.",
        "It is so.",
        "n/a",
        "null",
        "ok",
        "a",
        "1",
        "As an AI language model, I can't.",
    ],
    "code": [
        "Run this:\n```python\nprint('9 a.m.')\n```\nIt opens at nine.",
        "```\nnever closed\nThe shop opens at nine.",
        "``` ``` ```\n~~~\n```\n~~~",
        "```" * 3000,
        "~~~~~~~~~~ text\n~~~~~~~~~~",
        "`inline` ``double `tick` `` \\`escaped\\`",
        "    indented code\n\tby a tab\n        deeper",
        "#!/bin/sh\nrm -rf /\nexit 0;",
        "def f(x):\n    return x if x else None  # 9 a.m.",
        "SELECT * FROM shops WHERE opens = '09:00'; -- nine",
        "```" + " " * 64_000,  # a quadratic expression takes minutes here
        "```" + " x" * 30_000,
        (" " * 2000 + "```\n") * 20,
    ],
    "lists and tables": [
        "- one\n- two\n  - two and a half\n    - deep\n- three",
        "1. Opens at nine.\n2) Closes at six.\n(3) Sundays.\n10. Ten.",
        "a. First\nb) Second\nIV. Fourth\n1.1.1 Sub",
        "- " * 2000,
        "\n".join("  " * i + f"- level {i}" for i in range(200)),
        "| day | opens |\n|---|---|\n| Mon | 9 a.m. |\n| Sun | - |",
        "|" * 5000,
        "day\topens\nMon\t9 a.m.",
        "+-----+\n| 9   |\n+-----+",
        "# Title\n## Sub\n###### Deep\n####### Too deep\nText",
        "* * *\n---\n___\n***",
        "> quoted\n>> twice\n> > spaced",
        "[ ] todo\n[x] done [^1]\n[^1]: note",
        "\u2022one\u2022two \u25aa three \u2013 four",
        "\n".join(f"{i}." for i in range(300)),
    ],
    "markup": [
        "<p>Opens at <b>nine</b>.</p><script>alert(1)</script>",
        "&lt;9&gt; &amp;amp; &#57; &nbsp; &bogus;",
        "<" * 3000 + ">" * 3000,
        '{"opens": "9 a.m.", "days": ["Mon", {"x": null}]}',
        "[" * 3000 + "]" * 3000,
        "$$\\frac{9}{0} \\int_0^\\infty e^{-x}dx$$ and \\(x\\)",
        "opens: 9\ncloses:\n  - 5\n  - !!python/object:os.system x",
        "<?xml version='1.0'?><!DOCTYPE x [<!ENTITY y 'z'>]><x>&y;</x>",
        "**bold** __bold__ *it* _it_ ~~gone~~ ==mark== ||spoiler||",
        "![image](x.png 'title') [link](javascript:alert(1)) <https://x>",
        "\\begin{tabular}{ll} Mon & 9 \\\\ \\end{tabular}",
        'a,b,c\n"1,2","""",\n=cmd|\' /C calc\'!A0',
        "@startuml\nA -> B: 9 a.m.\n@enduml",
    ],
    "white space": [
        "\n" * 10_000 + "It opens at nine." + "\n" * 10_000,
        "It opens.\r\nIt closes.\r\n\r\nIt rests.\r\n",
        "It opens.\rIt closes.\n\rIt rests.",
        " " * 64_000 + "x",
        "x" + " " * 64_000,
        "x" + " " * 64_000 + "y",
        "\t" * 20_000 + "nine.",
        "\u00a0" * 20_000 + "nine.",
        " \n" * 10_000 + "nine.",
        ("a" + " " * 500 + "\n") * 40,
        "It opens at nine .  It closes at six .   It rests .",
        "It\nopens\nat\nnine\na.m.\nevery\nday",
    ],
    "no capitals, no stops": [
        "the shop opens at nine. refunds take six weeks. staff wear a badge.",
        "the shop opens at nine refunds take six weeks staff wear a badge",
        "refunds take six weeks. " * 4000,  # 96,000 characters, quadratic in a naive splitter
        "the shop opens at nine and " * 500,
        "THE SHOP OPENS AT NINE. REFUNDS TAKE SIX WEEKS.",
        "iPhone sales. eBay opens. nVidia closes. 5 start. $5 too.",
        "one;two;three:four-five,six/seven" * 100,
    ],
    "length": [
        "x",
        "x" * 1_000_000,
        "The shop opens at nine. " * 8000,
        ("word " * 400 + "ends. ") * 30,
        "é" * 100_000,
        "\U0001f600" * 20_000,
        "店" * 20_000,
        "A. " * 3000,
        " ".join(f"Shop {i} opens at nine." for i in range(600)),
        "-" * 100_000,
        "." * 100_000,
        "a." * 20_000,
        "1" * 100_000,
        "1 " * 20_000,
        "(" * 50_000,
        "Ab" * 30_000,
    ],
    "repeated": [
        "Opens at nine. " * 50,
        QUESTION,
        SHOP,
        f"{SHOP} {SHOP} {SHOP}",
        ANSWER,
        ANSWER,
        "nine nine nine nine nine",
        "Nine. Nine. Nine! Nine? nine.",
    ],
}
"""Class -> responses."""

BYTES: list[tuple[str, bytes]] = [
    ("a Latin-1 letter", b"caf\xe9 opens at 9 a.m."),
    ("half a surrogate pair", "\ud83d opens".encode(errors="surrogatepass")),
    ("a pair of surrogates", "\ud83d\ude00 opens".encode(errors="surrogatepass")),
    ("a character cut off at the end", "It opens at nine é".encode()[:-1]),
    ("overlong zero", b"nine\xc0\x80 opens"),
    ("above the last code point", b"nine\xf5\x80\x80\x80"),
    ("a lone continuation byte", b"\x80"),
    ("no bytes of UTF-8 at all", b"\xff\xfe\x00\x9f" * 20),
]
"""Bytes that are not UTF-8."""


def _rows() -> dict[str, list[OddRow]]:
    rows: dict[str, list[OddRow]] = {kind: [in_every_column(text) for text in texts] for kind, texts in CASES.items()}
    rows |= {kind: [OddRow(response=text) for text in texts] for kind, texts in RESPONSES.items()}
    rows["empty question"] = [OddRow(question=text) for text in [None, *EMPTY]]
    rows["empty response"] = [OddRow(response=text) for text in [None, *EMPTY]]
    rows["empty context"] = [
        OddRow(context=context) for context in [None, [], [None], [None, None], *([text] for text in EMPTY)]
    ]  # fmt: skip
    rows["empty altogether"] = [OddRow(None, None, None), OddRow("", [], ""), OddRow(" ", [" "], " "), OddRow("", [""], "")]
    rows["shapes of contexts"] = [
        OddRow(context=[None, SHOP]),
        OddRow(context=["", " ", SHOP, "", None]),
        OddRow(context=[SHOP] * 50),
        OddRow(context=[f"Shop {i} opens at {i}." for i in range(500)]),
        OddRow(context=[""] * 500),
        OddRow(context=[None] * 500 + [SHOP]),
        OddRow(context=[ANSWER]),
        OddRow(context=[QUESTION]),
        OddRow(context=["x"]),
        OddRow(context=["x" * 100_000]),
        OddRow(context=["The shop opens at nine. " * 4000]),
        OddRow(context=["the shop opens at nine and " * 2000]),
        OddRow(context=["é" * 50_000, SHOP]),
        OddRow(context=["店は9時です。" * 3000]),
        OddRow(context=["9" * 30_000]),
        OddRow(context=[c for c in SHOP]),
        OddRow(context=[SHOP, SHOP.upper(), SHOP.lower(), SHOP[::-1]]),
        OddRow(context=["\n".join([SHOP] * 100)]),
        OddRow(context=[" " * 50_000 + SHOP]),
        OddRow(context=["```" + " " * 30_000]),
    ]
    rows["odd questions"] = [
        OddRow(question="shop " * 20_000),
        OddRow(question="x" * 100_000),
        OddRow(question="?"),
        OddRow(question="\n".join(["When?"] * 500)),
        OddRow(question=SHOP),
        OddRow(question=ANSWER, response=ANSWER),
        OddRow(question="When? " * 100),
        OddRow(question='"'),
    ]
    rows["long against long"] = [
        OddRow(context=[f"Shop {i} opens at nine." for i in range(300)], response="Shop 7 opens at nine. " * 20),
        OddRow(
            context=[" ".join(f"Fact {i} is {i * 7}." for i in range(500))],
            response=" ".join(f"Fact {i} is {i}." for i in range(12)),
        ),
        OddRow(question="When? " * 60, context=["It opens. " * 600], response="It opens. " * 30),
    ]
    return rows


def _invalid_rows() -> list[OddRow]:
    return [
        odd
        for _, text in BYTES
        for odd in (OddRow(question=text), OddRow(context=[SHOP, text]), OddRow(response=text), OddRow(text, [text], text))
    ]


ROWS: dict[str, list[OddRow]] = _rows() | {"not UTF-8": _invalid_rows()}
"""Class -> rows."""


def column(values: list[Text], kind: pa.DataType = pa.string()) -> pa.Array:  # noqa: B008
    """Make an Arrow column of texts without checking whether they are UTF-8."""
    raw = pa.array([value.encode() if isinstance(value, str) else value for value in values], pa.binary())
    _, offsets, data = raw.buffers()
    texts = pa.Array.from_buffers(pa.string(), len(raw), [raw.buffers()[0], offsets, data], raw.null_count)
    return texts if kind == pa.string() else texts.cast(kind)


def table(rows: list[OddRow]) -> pa.Table:
    """Make a table of logs."""
    passages = [row.context for row in rows]
    offsets = [0]
    for context in passages:
        offsets.append(offsets[-1] + len(context or []))
    mask = pa.array([context is None for context in passages])
    flat = column([text for context in passages for text in context or []])
    return pa.table(
        {
            "question": column([row.question for row in rows]),
            "context": pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), flat, mask=mask),
            "response": column([row.response for row in rows]),
        }
    )
