"""Cheap further labels: sentences of a context, said a little differently (supported) or changed in one place (not supported).

Both kinds get the same lead-ins, lengths and joins, so that neither can be told by its form alone.
"""

import re
from collections.abc import Sequence
from itertools import pairwise
from random import Random

from ragassay.pipeline.detectors.named import DAYS, LONGEST_NUMBER, MONTHS

_WORDS = ["two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve"]
_DIGITS = dict(enumerate(["zero", "one", *_WORDS]))
_COUNTS = {word: digit for digit, word in _DIGITS.items() if digit > 1}
_NUMBER = re.compile(r"(?<![\w.,])\d{1,3}(?:,\d{3})+(?![\w])|(?<![\w.,:/-])\d+(?:\.\d+)?(?![\w:/]|[.,]\d)")
_YEAR = re.compile(r"\b(?:1[5-9]|20)\d\d\b")
_WORD_NUMBER = re.compile(rf"\b(?:{'|'.join(_COUNTS)})\b")
_TIME = re.compile(r"\b\d{1,2}(?::\d\d)?\s?(?:[ap]\.m\.|[ap]m\b|[AP]M\b)|\b\d{1,2}:\d\d\b")
_DAY = re.compile(rf"\b(?:{'|'.join(day.title() for day in DAYS)})\b")
_MONTH = re.compile(rf"\b(?:{'|'.join(month.title() for month in MONTHS if month != 'may')})\b")
_NAME = re.compile(r"(?<=[a-z,] )(?!I\b)[A-Z][\w’'-]+(?:(?: (?:of|the|de|van|von|and))? [A-Z][\w’'-]+)*")
_KINDS = (_TIME, _YEAR, _NUMBER, _WORD_NUMBER, _DAY, _MONTH, _NAME)

_NEGATE = [
    (re.compile(rf"\b({verb})\b(?! not|n't)"), r"\1 not")
    for verb in ("is", "are", "was", "were", "will", "may", "must", "should", "could", "would", "does", "did")
] + [
    (re.compile(r"\b(is|are|was|were|will|may|must|should|could|would|does|did) not\b"), r"\1"),
    (re.compile(r"\bcan\b(?!not| not)"), "cannot"),
    (re.compile(r"\b(?:cannot|can not)\b"), "can"),
    (re.compile(r"\bonly\b"), "not only"),
]
_PAIRS = (
    "before/after, at least/at most, more than/less than, more/fewer, always/never, first/last, "
    "increased/decreased, increase/decrease, above/below, minimum/maximum, all/none of, every/no, higher/lower, "
    "earlier/later, larger/smaller, largest/smallest, paid/unpaid, with/without, northern/southern, "
    "eastern/western, includes/excludes, including/excluding, allowed/forbidden, required/optional, many/few, "
    "often/rarely, both/neither of, long/short, high/low, early/late, open/closed, won/lost, rose/fell, "
    "began/ended, start/end, started/stopped, oldest/youngest, older/younger, male/female, father/mother, "
    "son/daughter, brother/sister, husband/wife, he/she, his/her, north of/south of, mandatory/voluntary, "
    "inside/outside, directly/indirectly, same/different, positive/negative, best/worst, usually/seldom, "
    "some/none, up to/over"
)
_OPPOSITES = [pair.split("/") for pair in _PAIRS.split(", ")]
_LEADS = (
    "According to the context, ", "According to the passages, ", "Based on the given passages, ", "The context says that ",
    "As the text says, ", "The passages state that ", "In addition, ", "Also, ", "Overall, ", "However, ", "In short, ",
    "Based on the information provided, ", "Additionally, ", "It is stated that ",
)  # fmt: skip
_SAME = [
    (re.compile(r"\b(?:approximately|about|around)(?= \d)"), ("about", "around", "roughly")),
    (re.compile(r"\bfor example\b"), ("for instance",)),
    (re.compile(r" ?(?:percent|per cent)\b"), ("%", " percent")),
    (re.compile(r"(?<=\d)%"), (" percent", "%")),
    (re.compile(r"\bbegan\b"), ("started",)),
    (re.compile(r"\bpurchase\b"), ("buy",)),
    (re.compile(r"\bpermitted\b"), ("allowed",)),
    (re.compile(r"\ballowed\b"), ("permitted",)),
    (re.compile(r"\bhowever\b"), ("though",)),
    (re.compile(r"\blarge\b"), ("big",)),
    (re.compile(r"\bobtain\b"), ("get",)),
    (re.compile(r"\bprior to\b"), ("before",)),
    (re.compile(r"\badditional\b"), ("further", "extra")),
    (re.compile(r"\bbecause\b"), ("since",)),
    (re.compile(r"\bseveral\b"), ("a number of",)),
    (re.compile(r"\bimportant\b"), ("significant",)),
    (re.compile(r"\bcannot\b"), ("can't", "can not")),
    (re.compile(r"\b(is|are|was|were|does|did) not\b"), (r"\1n't",)),
]
_LOWER = re.compile(
    r"(?:The|A|An|It|In|On|At|There|This|These|They|You|He|She|Some|Many|All|Most|When|If|As|By|For|From|His|Her|Its|Their|After|"
    r"During|While|One|Two|Since|Each|Every|Both|Several|With|No|Although|Because|Unlike|Since)\b"
)
_TAIL = re.compile(r",? (?:which|who|where|although|because|while|whereas|so that)\b.*$|; .*$")
_BRACKET = re.compile(r" ?\([^()]*\)")


def corrupt(sentence: str, context: str, rng: Random) -> str | None:
    """A sentence changed so that the context no longer supports it; None where no rule applies.

    A number, time, day, month or name takes the place of another of its kind, mostly one of the same context; or a word is
    negated, or turned into its opposite.

    Args:
        sentence: A sentence that the context supports.
        context: All its passages.
        rng: Chooses.
    """
    ways = [_swap, _swap, _negate, _oppose]
    rng.shuffle(ways)
    for way in ways:
        changed = way(sentence, context, rng)
        if changed and changed.lower() not in context.lower() and changed != sentence:
            return changed
    return None


def rephrase(sentence: str, rng: Random) -> str:
    """A sentence in other words that says the same, or a part of it."""
    text = sentence
    if rng.random() < 0.5:
        text = _BRACKET.sub("", text)
    if rng.random() < 0.4:
        shorter = _TAIL.sub("", text)
        text = shorter.rstrip(",;") + "." if shorter != text and len(shorter.split()) >= 5 else text
    for pattern, others in _SAME:
        if rng.random() < 0.7:
            text = pattern.sub(rng.choice(others), text, count=1)
    if rng.random() < 0.7:
        text = _WORD_NUMBER.sub(lambda match: str(_COUNTS[match[0]]), text, count=1)
    elif rng.random() < 0.7:
        text = re.sub(
            r"(?<![\w.,$€£:])([2-9]|1[0-2])(?![\w:%.,]| ?[ap]\.?m)", lambda match: _DIGITS[int(match[1])], text, count=1
        )
    return text


def lead_in(sentence: str, rng: Random) -> str:
    """A sentence after a phrase such as answers begin with."""
    lower = sentence[:1].lower() + sentence[1:] if _LOWER.match(sentence) else sentence
    return rng.choice(_LEADS) + lower


def synthetic(
    sentences: Sequence[str], dropped: Sequence[str], context: str, count: int, rng: Random
) -> list[tuple[str, bool]]:
    """Labelled statements about a context: (statement, supported), `count` of each label where the context has enough.

    Args:
        sentences: Sentences of the context.
        dropped: Sentences of the same text that the context lacks: not supported.
        context: All its passages.
        count: Statements of each label.
        rng: Chooses.
    """
    fit = [s for s in sentences if 5 <= len(s.split()) <= 60]
    picked = rng.sample(fit, min(count, len(fit)))
    good = [rephrase(s, rng) for s in picked]
    bad = [*rng.sample(list(dropped), min(len(dropped), max(1, count // 2)))] if dropped else []
    for sentence in rng.sample(fit, len(fit)):
        changed = corrupt(rephrase(sentence, rng), context, rng)
        if len(bad) < count and changed:
            bad.append(changed)
    if len(good) > 1 and bad and rng.random() < 0.5:  # two claims in one sentence: one wrong half makes it wrong
        first, second = good[0].rstrip("."), rng.choice([(good[1], True), (bad[0], False)])
        joined = f"{first}, and {second[0][:1].lower()}{second[0][1:]}"
        (good if second[1] else bad)[0] = joined
    texts = [(text, True) for text in good] + [(text, False) for text in bad[: max(len(good), 1)]]
    return [(lead_in(text, rng) if rng.random() < 0.25 else text, label) for text, label in texts]


def _swap(sentence: str, context: str, rng: Random) -> str | None:
    places = [(kind, match) for kind in _KINDS for match in kind.finditer(sentence)]
    while places:
        kind, match = places.pop(rng.randrange(len(places)))
        others = sorted({m[0] for m in kind.finditer(context)} - {m[0] for m in kind.finditer(sentence)})
        if kind is _NAME:
            others = [name for name in others if not set(name.lower().split()) & set(sentence.lower().split())]
        if kind in (_NUMBER, _YEAR, _WORD_NUMBER) and (not others or rng.random() < 0.3):
            others = [_other_number(match[0], rng)]
        if others:
            return sentence[: match.start()] + rng.choice(others) + sentence[match.end() :]
    return None


def _other_number(text: str, rng: Random) -> str:
    if text in _COUNTS:
        return rng.choice([word for word in _COUNTS if word != text])
    if sum(c.isdecimal() for c in text) > LONGEST_NUMBER:  # no amount: another last digit
        return text[:-1] + str((int(text[-1]) + rng.randrange(1, 10)) % 10)
    value = float(text.replace(",", ""))
    changed = (
        value + rng.choice([-2, -1, 1, 2, 3, 5]) if value >= 1000 or value < 20 else value * rng.choice([0.5, 1.2, 1.5, 2])
    )
    changed = changed if changed > 0 and changed != value else value + 1
    if "." in text:
        return f"{changed:.{len(text.split('.')[1])}f}" if f"{changed:.1f}" != f"{value:.1f}" else f"{value + 1:.1f}"
    return f"{round(changed):,}" if "," in text else str(round(changed) if round(changed) != value else round(value) + 1)


def _negate(sentence: str, _: str, rng: Random) -> str | None:
    ways = [(pattern, to) for pattern, to in _NEGATE if pattern.search(sentence)]
    if not ways:
        return None
    pattern, to = rng.choice(ways)
    return pattern.sub(to, sentence, count=1)


def _oppose(sentence: str, _: str, rng: Random) -> str | None:
    ways = []
    for pair in _OPPOSITES:
        for one, other in (pair, pair[::-1]):
            if re.search(rf"\b{one}\b", sentence):
                ways.append((one, other))
    if not ways:
        return None
    one, other = rng.choice(ways)
    return re.sub(rf"\b{one}\b", other, sentence, count=1)


def drop_sentences(
    passages: Sequence[tuple[str, Sequence[tuple[int, int]]]], keep: Sequence[str], rng: Random
) -> tuple[list[str], list[str]]:
    """Take sentences out of a context, for statements about its subject that it does not support.

    Args:
        passages: Texts with the spans of their sentences.
        keep: Words, in lower case, of what labels speak of: a sentence that shares one of them stays.
        rng: Chooses.

    Returns:
        The passages without them, and the sentences: at most one a passage, none of a passage with fewer than four.
    """
    wanted = set(keep)
    left, dropped = [], []
    for text, spans in passages:
        free = [
            i for i, (start, end) in enumerate(spans)
            if i > 0
            and 6 <= len(text[start:end].split()) <= 40
            and wanted.isdisjoint(re.findall(r"\w+", text[start:end].lower()))
        ]  # fmt: skip
        if len(spans) < 4 or not free:
            left.append(text)
            continue
        i = rng.choice(free)
        cuts = [0, *(start for start, _ in spans[1:]), len(text)]
        pieces = [text[a:b] for a, b in pairwise(cuts)]
        dropped.append(text[spans[i][0] : spans[i][1]])
        left.append("".join(pieces[:i] + pieces[i + 1 :]).rstrip())
    return left, dropped
