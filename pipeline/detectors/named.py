"""Names, numbers, dates and order in a text, brought to one form, so that "9 AM" is "09:00" and "$1.2k" is "1,200 dollars"."""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

Key = tuple[Any, ...] | str
"""Normal form of a number, date or step; or, of a name, one of its words."""


class EntityKind(StrEnum):
    """What a text may invent: statistics, dates and times, order, names."""

    NUMBER = "number"
    DATE = "date"
    SEQUENCE = "sequence"
    NAME = "name"


@dataclass(frozen=True)
class Entity:
    """Something that a text names.

    Attributes:
        kind: What it is.
        text: As it stands in the text.
        keys: Its normal forms: of a number or date one of them has to be known, of a name all (its words).
    """

    kind: EntityKind
    text: str
    keys: frozenset[Key]

    def is_in(self, known: set[Key]) -> bool:
        """Whether a context that has these keys has it."""
        return self.keys <= known if self.kind is EntityKind.NAME else not self.keys.isdisjoint(known)


def _words(text: str) -> list[str]:
    return text.split()


MONTHS = _words("january february march april may june july august september october november december")
DAYS = _words("monday tuesday wednesday thursday friday saturday sunday")
_SMALL = _words(
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen eighteen "
    "nineteen"
)
_TENS = _words("twenty thirty forty fifty sixty seventy eighty ninety")
_VALUES = {word: i for i, word in enumerate(_SMALL)} | {word: 10 * i for i, word in enumerate(_TENS, 2)} | {"dozen": 12}
_SCALES = {"hundred": 100, "thousand": 1000, "million": 10**6, "billion": 10**9, "trillion": 10**12}
_SUFFIXES = {"k": 1000, "m": 10**6, "mn": 10**6, "bn": 10**9, "b": 10**9} | _SCALES
_ORDINAL_WORDS = _words("first second third fourth fifth sixth seventh eighth ninth tenth eleventh twelfth")
_ORDINALS = {word: i for i, word in enumerate(_ORDINAL_WORDS, 1)}
_CURRENCIES = {"$": "$", "€": "€", "£": "£", "¥": "¥", "dollar": "$", "usd": "$", "euro": "€", "eur": "€"} | {
    "pound": "£", "gbp": "£", "yen": "¥",
}  # fmt: skip
# unit -> (the unit it is counted in, how many of them)
_UNITS: dict[str, tuple[str, float]] = {
    "second": ("second", 1), "sec": ("second", 1), "minute": ("second", 60), "min": ("second", 60), "hour": ("second", 3600),
    "hr": ("second", 3600), "day": ("day", 1), "week": ("day", 7), "fortnight": ("day", 14), "month": ("month", 1),
    "quarter": ("month", 3), "year": ("month", 12), "decade": ("month", 120), "century": ("month", 1200),
    "metre": ("metre", 1), "meter": ("metre", 1), "kilometre": ("metre", 1000), "kilometer": ("metre", 1000),
    "km": ("metre", 1000), "cm": ("metre", 0.01), "mm": ("metre", 0.001), "mile": ("mile", 1), "gram": ("gram", 1),
    "kg": ("gram", 1000),
    "kilogram": ("gram", 1000), "litre": ("litre", 1), "liter": ("litre", 1),
}  # fmt: skip


def _any(words: Iterable[str]) -> str:
    return "|".join(sorted(map(re.escape, words), key=len, reverse=True))


_NUMBER = r"\d{1,3}(?:,\d{3})+(?:\.\d+)?|\d+(?:\.\d+)?"
_SPELLED = rf"(?:{_any(_VALUES)})(?:(?:[\s-]|\sand\s)(?:{_any([*_VALUES, *_SCALES])}))*"
_MONTH = rf"(?:{_any(MONTHS)}|jan|feb|mar|apr|jun|jul|aug|sept|sep|oct|nov|dec)\b\.?"
_UNIT = rf"(?:{_any(_UNITS)})s?\b\.?"
_MONEY = r"(?:dollars?|usd|euros?|eur|pounds?|gbp|yen)\b"

_SCAN = re.compile(
    rf"""
    (?P<iso>\b(?P<iy>\d{{4}})-(?P<im>\d\d)-(?P<id>\d\d)\b)
  | (?P<slash>\b(?P<sa>\d{{1,2}})[/.](?P<sb>\d{{1,2}})[/.](?P<sy>\d{{4}})\b)
  | (?P<dmy>\b(?P<dd>\d{{1,2}})(?:st|nd|rd|th)?\s+(?:of\s+)?(?P<dm>{_MONTH})(?:,?\s+(?P<dy>\d{{4}}))?(?!\w))
  | (?P<mdy>\b(?P<mm>{_MONTH})\s+(?P<md>\d{{1,2}})(?:st|nd|rd|th)?(?:,?\s+(?P<my>\d{{4}}))?(?![\w:]))
  | (?P<my2>\b(?P<ym>{_MONTH})\s+(?P<yy>\d{{4}})\b)
  | (?P<days>\b(?P<d1>{_any(DAYS)})s?\s*(?:to|through|thru|until|till|-|–)\s*(?P<d2>{_any(DAYS)})s?\b)
  | (?P<day>\b(?:{_any(DAYS)})s?\b)
  | (?P<week>\b(?:weekdays?|weekends?|daily)\b)
  | (?P<clock>\b(?P<ch>\d{{1,2}})(?:[:.](?P<cm>\d\d))?\s*(?P<cap>[ap]\.\s?m\.?|[ap]m\b)|\b(?P<ch2>\d{{1,2}}):(?P<cm2>\d\d)\b
      |\b(?P<ch3>\d{{1,2}}|{_any(_SMALL)})\s+o['’]clock\b|\b(?:noon|midday|midnight)\b)
  | (?P<quarter>\bq[1-4]\b)
  | (?P<reference>\b(?:passage|document|source|reference|context)s?\s+\d+(?:\s*(?:,|and|&)\s*\d+)*\b)
  | (?P<step>\b(?:step|phase|stage|chapter|section|article|level|rule|part|page|room|floor)\s+(?P<sn>\d+|{_any(_SMALL)})\b)
  | (?P<ordinal>\b(?:{_any(_ORDINALS)}|\d+(?:st|nd|rd|th))\b)
  | (?P<half>\b(?:half\s+an?|one\s+and\s+a\s+half)\s+(?P<hu>{_UNIT}))
  | (?P<number>(?:(?P<cur>[$€£¥])\s?)?(?<![\w.])(?P<value>{_NUMBER}|\b{_SPELLED}\b)
      (?:[\s-]?(?P<scale>{_any(_SCALES)}|(?:k|mn|bn|m|b)(?![\w])))?
      (?:\s?(?P<pct>%|percent\b|per\s?cent\b)|[\s-]?(?P<unit>{_UNIT})|\s(?P<money>{_MONEY}))?)
    """,
    re.VERBOSE,
)
_TRIGGERS = frozenset([
    *_VALUES, *_SCALES, *_ORDINALS, *MONTHS, *DAYS, *(day + "s" for day in DAYS),
    *_words("jan feb mar apr jun jul aug sept sep oct nov dec noon midday midnight weekday weekdays weekend weekends daily"),
    *_words("passage passages document documents source sources reference references context contexts q1 q2 q3 q4"),
    *_words("half step phase stage chapter section article level rule part page room floor"),
])  # fmt: skip
"""Words that a number, date or step may begin with, digits aside: the long pattern is tried at these only."""

_TOKEN = re.compile(r"[^\W_]+")
_DIGIT = re.compile(r"\d")
_SIGN = re.compile(r"[$€£¥]\s?$")
_ENUMERATOR = re.compile(r"^\s*(?:[-*•]\s*)?\(?\d{1,2}[.)]\s+")
_IDIOM = re.compile(r"(?:\bat|\bfrom the|^)\s*$")
_CAPITAL = re.compile(r"\b(?:[A-Z][\w’'&-]*|[A-Za-z]+\d[\w-]*)(?:\s+(?:[A-Z][\w’'&-]*))*")
_TITLES = "".join(rf"(?<!\b{title})" for title in ("Mr", "Ms", "Dr", "St", "No", "Mrs", "Prof"))
_START = re.compile(rf"(?:^|{_TITLES}[.!?:\n]|[\"“”(])[\s\"“(*•-]*$")
_A_UNIT = re.compile(rf"\ban?\s+({_UNIT})")
_NAME_WORD = re.compile(r"\w+")
_BEHIND = 40  # characters before a word that say whether it begins a sentence

LONGEST_NUMBER = 15
"""Digits that a float holds: a longer number (of an account, say) is itself and no other, and stands for no amount."""

_ALIKE = str.maketrans({"İ": "i", "ı": "i", "ſ": "s"})
_NOT_NAMES = frozenset(
    [*MONTHS, *DAYS, *(day + "s" for day in DAYS), *_words("i mr mrs ms dr am pm a the yes no passage passages context")]
)


def fold(text: str) -> str:
    """A text in lower case, letter for letter, so that offsets hold; all patterns are for this form."""
    return (text if text.isascii() else text.translate(_ALIKE)).lower()


def find_entities(text: str, *, names: Sequence[str] | None = None, stop_words: frozenset[str] = frozenset()) -> list[Entity]:
    """Everything that a text names, in order of kinds.

    Args:
        text: A sentence, or a passage.
        names: Its names, where an entity recogniser has found them; None finds them by capitals.
        stop_words: Words that make no name at the start of a sentence, in lower case.
    """
    offset = match.end() if (match := _ENUMERATOR.match(text)) else 0
    found: list[Entity] = []
    spans: list[tuple[int, int]] = []
    for match in _matches(fold(text), offset):
        entity = _entity(match, text[match.start() : match.end()].strip())
        spans.append(match.span())
        if entity is not None:
            found.append(entity)
    by_rules = _names(text, offset, spans, stop_words) if names is None else [(name, name) for name in names]
    for name, counted in dict.fromkeys(by_rules):
        keys = name_keys(counted)
        if keys:
            found.append(Entity(EntityKind.NAME, name, keys))
    return found


def _matches(text: str, offset: int = 0) -> Iterator[re.Match[str]]:
    """Matches of the long pattern in a folded text, one after the other, tried only where a word may begin one."""
    if not _DIGIT.search(text, offset) and _TRIGGERS.isdisjoint(_TOKEN.findall(text, offset)):
        return
    end = offset
    for token in _TOKEN.finditer(text, offset):
        start = token.start()
        if start < end or not (token[0][0].isdigit() or token[0] in _TRIGGERS):
            continue
        if start and (sign := _SIGN.search(text, max(offset, start - 2), start)):
            start = sign.start()
        match = _SCAN.match(text, start)
        if match:
            end = match.end()
            yield match


def name_keys(name: str) -> frozenset[Key]:
    """A name's words, possessives and case aside."""
    bare = re.sub(r"['’]s\b", "", name)
    return frozenset(_name_words(bare)) - _NOT_NAMES


def _name_words(text: str) -> list[str]:
    return _NAME_WORD.findall(fold(text).casefold())


def known_keys(texts: Iterable[str]) -> set[Key]:
    """Every normal form that texts have, and what follows from it: a date has its month, 36 months are 3 years.

    A number without a unit may stand for one with any; a range of week days has the days between.
    """
    known: set[Key] = set()
    for text in texts:
        known.update(_name_words(text))
        folded = fold(text)
        for match in _matches(folded):
            entity = _entity(match, match[0].strip(), generous=True)
            if entity is not None:
                for key in entity.keys:
                    known |= _implied(key)
        # "an hour" is one: a response need not mean it so ("$20 an hour"), a context may
        for match in _A_UNIT.finditer(folded):
            unit, size = _unit(match[1])
            known.add(("number", size, unit))
    return known


def _implied(key: Key) -> set[Key]:
    match key:
        case ("date", year, month, day):
            parts = {("date", y, m, d) for y in {year, None} for m in {month, None} for d in {day, None} if m or (y and not d)}
            number: Key = ("number", float(year or 0), None)
            return {*parts, number} if year else set(parts)
        case _:
            return {key}


def _entity(match: re.Match[str], text: str, *, generous: bool = False) -> Entity | None:  # noqa: PLR0911
    """The entity of a match in a folded text; None where it is none. `generous`: take what a context may mean, but a response
    need not claim. `text`: as it stands."""
    said = match[0].strip()
    group = next(name for name in _GROUPS if match[name] is not None)
    if group in {"iso", "slash", "dmy", "mdy", "my2"}:
        return _date(group, match, text)
    if group == "days":
        first, last = DAYS.index(match["d1"]), DAYS.index(match["d2"])
        days = [(first + i) % 7 for i in range((last - first) % 7 + 1)]
        ends = days if generous else [first, last]
        return Entity(EntityKind.DATE, text, frozenset(("weekday", day) for day in ends))
    if group == "day":
        return Entity(EntityKind.DATE, text, frozenset([("weekday", DAYS.index(said.removesuffix("s")))]))
    if group == "week":
        span = {"weekday": range(5), "weekend": range(5, 7)}.get(said.removesuffix("s"), range(7))
        return Entity(EntityKind.DATE, text, frozenset(("weekday", day) for day in span)) if generous else None
    if group == "clock":
        return Entity(EntityKind.DATE, text, frozenset(("time", minute) for minute in _minutes(match)))
    if group == "reference":
        return None  # "as passage 2 says": a pointer into the context, no claim about the world
    if group == "quarter":
        return Entity(EntityKind.DATE, text, frozenset([("quarter", int(said[1]))]))
    if group == "step":
        number = match["sn"]
        place = _VALUES[number] if number in _VALUES else _whole(number)
        return Entity(EntityKind.SEQUENCE, text, frozenset([("ordinal", place)]))
    if group == "ordinal":
        behind = match.string[max(0, match.start() - _BEHIND) : match.start()]
        if not generous and (_IDIOM.search(behind) or match.string[match.end() : match.end() + 1] == ","):
            return None  # "at first", "First, …" order the text, not what it says
        return Entity(EntityKind.SEQUENCE, text, frozenset([("ordinal", _ORDINALS.get(said) or _whole(said[:-2]))]))
    if group == "half":
        return _fraction(match, text)
    return _number(match, text, generous)


_GROUPS = tuple(_words("iso slash dmy mdy my2 days day week clock quarter reference step ordinal half number"))


def _date(group: str, match: re.Match[str], whole: str) -> Entity | None:
    """A date's keys are (year, month, day), None for what it does not say; 3/4/2024 may be read both ways."""
    dates: list[tuple[int | None, int, int | None]]
    match group:
        case "iso":
            dates = [(int(match["iy"]), int(match["im"]), int(match["id"]))]
        case "slash":
            a, b, year = int(match["sa"]), int(match["sb"]), int(match["sy"])
            dates = [(year, m, d) for m, d in ((a, b), (b, a))]
        case "dmy":
            dates = [(int(match["dy"]) if match["dy"] else None, _month(match["dm"]), int(match["dd"]))]
        case "mdy":
            dates = [(int(match["my"]) if match["my"] else None, _month(match["mm"]), int(match["md"]))]
        case _:
            dates = [(int(match["yy"]), _month(match["ym"]), None)]
    real = [("date", y, m, d) for y, m, d in dates if 1 <= m <= 12 and (d is None or 1 <= d <= 31)]
    return Entity(EntityKind.DATE, whole, frozenset(real)) if real else None


def _month(name: str) -> int:
    return 1 + next(i for i, month in enumerate(MONTHS) if month.startswith(name.rstrip(".")[:3]))


def _minutes(match: re.Match[str]) -> set[int]:
    """Minutes after midnight that a time may mean: without a.m. or p.m., an hour up to 12 may be either."""
    word = match[0].strip()
    if word in {"noon", "midday"}:
        return {720}
    if word == "midnight":
        return {0}
    if match["cap"]:
        hour, minute = int(match["ch"]) % 12, int(match["cm"] or 0)
        return {60 * (hour + (12 if match["cap"].startswith("p") else 0)) + minute}
    text = match["ch2"] or match["ch3"]
    hour, minute = _VALUES[text] if text in _VALUES else int(text), int(match["cm2"] or 0)
    both = {60 * hour + minute, 60 * ((hour + 12) % 24) + minute}
    exact = hour > 12 or text.startswith("0")
    return {60 * hour + minute} if exact else both


def _fraction(match: re.Match[str], whole: str) -> Entity:
    """Half an hour, one and a half days."""
    share = 0.5 if match[0].startswith("half") else 1.5
    unit, size = _unit(match["hu"])
    return Entity(EntityKind.NUMBER, whole, frozenset([("number", share * size, unit)]))


def _number(match: re.Match[str], whole: str, generous: bool) -> Entity | None:
    value = _value(match["value"])
    if isinstance(value, str):
        return Entity(EntityKind.NUMBER, whole, frozenset([("number", value)]))
    scale = _SUFFIXES[match["scale"]] if match["scale"] else 1
    unit: str | None = None
    size = 1.0
    if match["pct"]:
        unit = "%"
    elif match["cur"] or match["money"]:
        unit = _CURRENCIES[match["cur"] or match["money"].removesuffix("s")]
    elif match["unit"]:
        unit, size = _unit(match["unit"])
    if not generous and unit is None and match["value"] in {"one", "zero"}:
        return None  # "one of them", "no one" count nothing
    # "any" joins a claim with a unit to a context's number without one, None a claim without a unit to any number.
    plain = ("number", value * scale, None if generous or unit is None else "any")
    other = ("number", value * scale, "any") if generous and unit is None else ("number", value * scale * size, unit)
    return Entity(EntityKind.NUMBER, whole, frozenset([plain, other]))


def _unit(text: str) -> tuple[str, float]:
    name = text.rstrip(".")
    return _UNITS[name if name in _UNITS else name.removesuffix("s")]


def _whole(digits: str) -> int | str:
    """A whole number; its digits where it is too long to count anything."""
    return int(digits) if len(digits) <= LONGEST_NUMBER else digits


def _value(text: str) -> float | str:
    """Value of digits or of spelled-out words: one hundred and twenty-five; its digits where a float does not hold them."""
    if text[0].isdigit():
        digits = text.replace(",", "")
        return float(digits) if len(digits.partition(".")[0]) <= LONGEST_NUMBER else digits
    total = part = 0.0
    for word in re.split(r"[\s-]+", text):
        if word in _SCALES:
            part = (part or 1) * _SCALES[word]
            if _SCALES[word] > 100:
                total, part = total + part, 0.0
        elif word in _VALUES:
            part += _VALUES[word]
    return total + part


def _names(text: str, offset: int, spans: Sequence[tuple[int, int]], stop_words: frozenset[str]) -> list[tuple[str, str]]:
    """Names by their capitals: as they stand, and the part that counts.

    At the start of a sentence any word has a capital ("Call Ada", "See Oduya's office"): there the first counts only if it is
    written like a name in itself.
    """
    names = []
    i = 0
    for match in _CAPITAL.finditer(text, offset):
        while i < len(spans) and spans[i][1] <= match.start():
            i += 1
        if i < len(spans) and spans[i][0] < match.end():
            continue
        words = match[0].split()
        if _START.search(text[max(offset, match.start() - _BEHIND) : match.start()]):
            if words[0].lower() in stop_words:
                words = words[1:]
            elif not any(c.isupper() or c.isdigit() for c in words[0][1:]):
                names.append((" ".join(words), " ".join(words[1:])))
                continue
        elif len(words) == 1 and words[0].lower() in stop_words:
            continue
        names.append((" ".join(words), " ".join(words)))
    return names
