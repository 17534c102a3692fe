"""Find and normalize the names, numbers, dates and positions in an order (step 3, second) in a text.

"9 AM" equals "09:00", and "$1.2k" equals "1,200 dollars".
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

EntityKey = tuple[Any, ...] | str
"""Normal form of a number, date or position; or one word of a name."""


class EntityKind(StrEnum):
    """Kinds of facts that a text can invent: numbers, dates and times, positions in an order, names."""

    NUMBER = "number"
    DATE = "date"
    SEQUENCE = "sequence"
    NAME = "name"


@dataclass(frozen=True)
class Entity:
    """A name, number, date or position in a text.

    Attributes:
        kind: Kind of the entity.
        text: The entity as written.
        keys: Normal forms of a number, date or position, which is known if any key is; or words of a name, which is known only
            if all are.
    """

    kind: EntityKind
    text: str
    keys: frozenset[EntityKey]

    def is_known(self, known: set[EntityKey]) -> bool:
        """Return whether a context with the keys `known` contains the entity."""
        return self.keys <= known if self.kind is EntityKind.NAME else not self.keys.isdisjoint(known)


def _split(words: str) -> list[str]:
    return words.split()


MONTHS = _split("january february march april may june july august september october november december")
DAYS = _split("monday tuesday wednesday thursday friday saturday sunday")
_SMALL = _split(
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen eighteen "
    "nineteen"
)
_TENS = _split("twenty thirty forty fifty sixty seventy eighty ninety")
_VALUES = {word: i for i, word in enumerate(_SMALL)} | {word: 10 * i for i, word in enumerate(_TENS, 2)} | {"dozen": 12}
_SCALES = {"hundred": 100, "thousand": 1000, "million": 10**6, "billion": 10**9, "trillion": 10**12}
_SUFFIXES = {"k": 1000, "m": 10**6, "mn": 10**6, "bn": 10**9, "b": 10**9} | _SCALES
_ORDINAL_WORDS = _split("first second third fourth fifth sixth seventh eighth ninth tenth eleventh twelfth")
_ORDINALS = {word: i for i, word in enumerate(_ORDINAL_WORDS, 1)}
_CURRENCIES = {"$": "$", "€": "€", "£": "£", "¥": "¥", "dollar": "$", "usd": "$", "euro": "€", "eur": "€"} | {
    "pound": "£", "gbp": "£", "yen": "¥",
}  # fmt: skip
# unit -> (base unit, number of base units)
_UNITS: dict[str, tuple[str, float]] = {
    "second": ("second", 1), "sec": ("second", 1), "minute": ("second", 60), "min": ("second", 60), "hour": ("second", 3600),
    "hr": ("second", 3600), "day": ("second", 86400), "week": ("second", 604800), "fortnight": ("second", 1209600),
    "month": ("month", 1), "quarter": ("month", 3), "year": ("month", 12), "decade": ("month", 120), "century": ("month", 1200),
    "metre": ("metre", 1), "meter": ("metre", 1), "kilometre": ("metre", 1000), "kilometer": ("metre", 1000),
    "km": ("metre", 1000), "cm": ("metre", 0.01), "mm": ("metre", 0.001), "mile": ("mile", 1), "gram": ("gram", 1),
    "kg": ("gram", 1000), "mg": ("gram", 0.001), "kilogram": ("gram", 1000),
    "litre": ("litre", 1), "liter": ("litre", 1), "ml": ("litre", 0.001),
}  # fmt: skip


def _any_of(words: Iterable[str]) -> str:
    return "|".join(sorted(map(re.escape, words), key=len, reverse=True))


_NUMBER = r"\d{1,3}(?:,\d{3})+(?:\.\d+)?|\d+(?:\.\d+)?"
_SPELLED = rf"(?:{_any_of(_VALUES)})(?:(?:[\s-]|\sand\s)(?:{_any_of([*_VALUES, *_SCALES])}))*"
_MONTH = rf"(?:{_any_of(MONTHS)}|jan|feb|mar|apr|jun|jul|aug|sept|sep|oct|nov|dec)\b\.?"
_UNIT = rf"(?:{_any_of(_UNITS)})s?\b\.?"
_PERIOD = r"(?:\s?/\s?|\s(?:per|an?|each|every)\s)(?P<period>minute|hour|day|night|week|month|quarter|year)\b"
_MONEY = r"(?:dollars?|usd|euros?|eur|pounds?|gbp|yen)\b"

_ENTITY = re.compile(
    rf"""
    (?P<iso>\b(?P<iy>\d{{4}})-(?P<im>\d\d)-(?P<id>\d\d)\b)
  | (?P<slash>\b(?P<sa>\d{{1,2}})[/.](?P<sb>\d{{1,2}})[/.](?P<sy>\d{{4}})\b)
  | (?P<dmy>\b(?P<dd>\d{{1,2}})(?:st|nd|rd|th)?\s+(?:of\s+)?(?P<dm>{_MONTH})(?:,?\s+(?P<dy>\d{{4}}))?(?!\w))
  | (?P<mdy>\b(?P<mm>{_MONTH})\s+(?P<md>\d{{1,2}})(?:st|nd|rd|th)?(?:,?\s+(?P<my>\d{{4}}))?(?![\w:]))
  | (?P<my2>\b(?P<ym>{_MONTH})\s+(?P<yy>\d{{4}})\b)
  | (?P<days>\b(?P<d1>{_any_of(DAYS)})s?\s*(?:to|through|thru|until|till|-|–)\s*(?P<d2>{_any_of(DAYS)})s?\b)
  | (?P<day>\b(?:{_any_of(DAYS)})s?\b)
  | (?P<week>\b(?:weekdays?|weekends?|daily)\b)
  | (?P<clock>\b(?P<ch>\d{{1,2}})(?:[:.](?P<cm>\d\d))?\s*(?P<cap>[ap]\.\s?m\.?|[ap]m\b)
      |\b(?P<ch4>\d{{1,2}}|{_any_of(_SMALL)})\s+(?P<part>in\s+the\s+(?:morning|afternoon|evening)|at\s+night)\b|\b(?P<ch2>\d{{1,2}}):(?P<cm2>\d\d)\b
      |\b(?P<ch3>\d{{1,2}}|{_any_of(_SMALL)})\s+o['’]clock\b|\b(?:noon|midday|midnight)\b)
  | (?P<quarter>\bq[1-4]\b)
  | (?P<reference>\b(?:passage|document|source|reference|context)s?\s+\d+(?:\s*(?:,|and|&)\s*\d+)*\b)
  | (?P<step>\b(?:step|phase|stage|chapter|section|article|level|rule|part|page|room|floor)\s+(?P<sn>\d+|{_any_of(_SMALL)})\b)
  | (?P<ordinal>\b(?:{_any_of(_ORDINALS)}|\d+(?:st|nd|rd|th))\b)
  | (?P<half>\b(?:half\s+an?|one\s+and\s+a\s+half)\s+(?P<hu>{_UNIT}))
  | (?P<number>(?:(?P<cur>[$€£¥])\s?)?(?<![\w.])(?P<value>{_NUMBER}|\b{_SPELLED}\b)
      (?:[\s-]?(?P<scale>{_any_of(_SCALES)}|(?:k|mn|bn|m|b)(?![\w])))?
      (?:\s?(?P<pct>%|percent\b|per\s?cent\b)|[\s-]?(?P<unit>{_UNIT})|\s(?P<money>{_MONEY}))?(?:{_PERIOD})?)
    """,
    re.VERBOSE,
)
_TRIGGERS = frozenset([
    *_VALUES, *_SCALES, *_ORDINALS, *MONTHS, *DAYS, *(day + "s" for day in DAYS),
    *_split("jan feb mar apr jun jul aug sept sep oct nov dec noon midday midnight weekday weekdays weekend weekends daily"),
    *_split("passage passages document documents source sources reference references context contexts q1 q2 q3 q4"),
    *_split("half step phase stage chapter section article level rule part page room floor"),
])  # fmt: skip
"""Words that can begin a number, date or step. The long pattern is matched only at these words and at digits."""

_TOKEN = re.compile(r"[^\W_]+")
_DIGIT = re.compile(r"\d")
_CURRENCY_SIGN = re.compile(r"[$€£¥]\s?$")
_ENUMERATOR = re.compile(r"^\s*(?:[-*•]\s*)?\(?\d{1,2}[.)]\s+")
_IDIOM = re.compile(r"(?:\bat|\bfrom the|^)\s*$")
_CAPITAL = re.compile(r"\b(?:[A-Z][\w’'&-]*|[A-Za-z]+\d[\w-]*)(?:\s+(?:[A-Z][\w’'&-]*))*")
_TITLES = "".join(rf"(?<!\b{title})" for title in ("Mr", "Ms", "Dr", "St", "No", "Mrs", "Prof"))
_START = re.compile(rf"(?:^|{_TITLES}[.!?:\n]|[\"“”(])[\s\"“(*•-]*$")
_A_UNIT = re.compile(rf"\ban?\s+({_UNIT})")
_HOURS = re.compile(r"(?<![\d.,:])\b(\d{1,2})\s?(?:to|until|till|-|–)\s?(\d{1,2})\b(?![.,:]\d)")  # "8 to 18"
_LAST_HOUR = 24
_BEFORE_HOUR = re.compile(r"(?:\b(?:from|to|until|till|at|by|before|after|between|and|since)\s|[-–])\s?$")
_AFTER_HOUR = re.compile(r"\s*(?:$|[.,;:!?)–-]|(?:to|until|till|and|on|from|daily|every|each|o['’]clock)\b)")
_NAME_WORD = re.compile(r"\w+")
_PRECEDING_CHARS = 40  # characters before a word that show whether it begins a sentence

MAX_NUMBER_DIGITS = 15
"""Digits that a float represents exactly. A longer number, such as an account number, is compared by its digits."""

_LETTER_VARIANTS = str.maketrans({"İ": "i", "ı": "i", "ſ": "s"})
_NOT_NAMES = frozenset(
    [*MONTHS, *DAYS, *(day + "s" for day in DAYS), *_split("i mr mrs ms dr am pm a the yes no passage passages context")]
)


def fold_case(text: str) -> str:
    """Return a text in lower case with unchanged offsets. All patterns expect this form."""
    return (text if text.isascii() else text.translate(_LETTER_VARIANTS)).lower()


def find_entities(text: str, *, names: Sequence[str] | None = None, stop_words: frozenset[str] = frozenset()) -> list[Entity]:
    """Find the entities of a text: numbers, dates and steps in order, then names.

    Args:
        text: A sentence, or a passage.
        names: Names that an entity recognizer found in the text; None finds names by capital letters.
        stop_words: Words in lower case that are not names at the start of a sentence.
    """
    offset = match.end() if (match := _ENUMERATOR.match(text)) else 0
    entities: list[Entity] = []
    spans: list[tuple[int, int]] = []
    for match in _find_matches(fold_case(text), offset):
        entity = _make_entity(match, text[match.start() : match.end()].strip())
        spans.append(match.span())
        if entity is not None:
            entities.append(entity)
    candidates = _find_names(text, offset, spans, stop_words) if names is None else [(name, name) for name in names]
    for name, significant_part in dict.fromkeys(candidates):
        keys = get_name_keys(significant_part)
        if keys:
            entities.append(Entity(EntityKind.NAME, name, keys))
    return entities


def _find_matches(text: str, offset: int = 0) -> Iterator[re.Match[str]]:
    """Yield the matches of the long pattern in a folded text, tried only at words that can begin one."""
    if not _DIGIT.search(text, offset) and _TRIGGERS.isdisjoint(_TOKEN.findall(text, offset)):
        return
    end = offset
    for token in _TOKEN.finditer(text, offset):
        start = token.start()
        if start < end or not (token[0][0].isdigit() or token[0] in _TRIGGERS):
            continue
        if start and (sign := _CURRENCY_SIGN.search(text, max(offset, start - 2), start)):
            start = sign.start()
        match = _ENTITY.match(text, start)
        if match:
            end = match.end()
            yield match


def get_name_keys(name: str) -> frozenset[EntityKey]:
    """Return the words of a name, without possessives, in lower case."""
    bare = re.sub(r"['’]s\b", "", name)
    return frozenset(_split_name(bare)) - _NOT_NAMES


def _split_name(text: str) -> list[str]:
    return _NAME_WORD.findall(fold_case(text).casefold())


def collect_known_keys(texts: Iterable[str]) -> set[EntityKey]:
    """Collect the normal forms in texts and the forms they imply: a date implies its month, 36 months imply 3 years.

    A number without a unit can mean any unit, and a range of weekdays includes the days between.
    """
    known: set[EntityKey] = set()
    for text in texts:
        known.update(_split_name(text))
        folded = fold_case(text)
        for match in _find_matches(folded):
            entity = _make_entity(match, match[0].strip(), is_context=True)
            if entity is not None:
                for key in entity.keys:
                    known |= _expand_key(key)
        for match in _HOURS.finditer(folded):
            known |= {("time", 60 * int(hour)) for hour in match.groups() if int(hour) <= _LAST_HOUR}
        # "an hour" can mean one hour in a context; in a response ("$20 an hour") it makes no claim
        for match in _A_UNIT.finditer(folded):
            unit, size = _parse_unit(match[1])
            known.add(("number", size, unit))
    return known


def _expand_key(key: EntityKey) -> set[EntityKey]:
    match key:
        case ("date", year, month, day):
            parts = {("date", y, m, d) for y in {year, None} for m in {month, None} for d in {day, None} if m or (y and not d)}
            number: EntityKey = ("number", float(year or 0), None)
            return {*parts, number} if year else set(parts)
        case ("time", minute) if minute % 60 == 0:  # "6 p.m." implies the 18 and the 6 of "8 to 18" and "8 to 6"
            hour = minute // 60
            return {key, ("hour", float(hour)), ("hour", float(hour % 12 or 12))}
        case _:
            return {key}


def _make_entity(match: re.Match[str], text: str, *, is_context: bool = False) -> Entity | None:  # noqa: PLR0911
    """Make the entity of a match, or None if the match is not an entity.

    Args:
        match: Match in a folded text.
        text: The match as written.
        is_context: Include every possible meaning. In a response, only a meaning that makes a claim counts.
    """
    folded = match[0].strip()
    group = next(name for name in _GROUPS if match[name] is not None)
    text = text if group == "clock" else text.removesuffix(".")  # "30 May." ends a sentence; "9 a.m." keeps its full stop
    if group == "dmy" and not is_context and text.endswith(" may"):
        return None  # "children who are not yet 18 may use it"
    if group in {"iso", "slash", "dmy", "mdy", "my2"}:
        return _make_date(group, match, text)
    if group == "days":
        first, last = DAYS.index(match["d1"]), DAYS.index(match["d2"])
        days = [(first + i) % 7 for i in range((last - first) % 7 + 1)] if is_context else [first, last]
        return Entity(EntityKind.DATE, text, frozenset(("weekday", day) for day in days))
    if group == "day":
        return Entity(EntityKind.DATE, text, frozenset([("weekday", DAYS.index(folded.removesuffix("s")))]))
    if group == "week":
        week_days = {"weekday": range(5), "weekend": range(5, 7)}.get(folded.removesuffix("s"), range(7))
        return Entity(EntityKind.DATE, text, frozenset(("weekday", day) for day in week_days)) if is_context else None
    if group == "clock":
        return Entity(EntityKind.DATE, text, frozenset(("time", minute) for minute in _parse_minutes(match)))
    if group == "reference":
        return None  # "as passage 2 states" refers to the context and makes no claim
    if group == "quarter":
        return Entity(EntityKind.DATE, text, frozenset([("quarter", int(folded[1]))]))
    if group == "step":
        number = match["sn"]
        position = _VALUES[number] if number in _VALUES else _parse_integer(number)
        return Entity(EntityKind.SEQUENCE, text, frozenset([("ordinal", position)]))
    if group == "ordinal":
        before = match.string[max(0, match.start() - _PRECEDING_CHARS) : match.start()]
        if not is_context and (_IDIOM.search(before) or match.string[match.end() : match.end() + 1] == ","):
            return None  # "at first" and "First, …" structure the text and make no claim
        position = _ORDINALS.get(folded) or _parse_integer(folded[:-2])
        return Entity(EntityKind.SEQUENCE, text, frozenset([("ordinal", position)]))
    if group == "half":
        return _make_fraction(match, text)
    return _make_number(match, text, is_context)


_GROUPS = tuple(_split("iso slash dmy mdy my2 days day week clock quarter reference step ordinal half number"))


def _make_date(group: str, match: re.Match[str], text: str) -> Entity | None:
    """Make a date with the keys (year, month, day); missing parts are None. 3/4/2024 has both readings."""
    dates: list[tuple[int | None, int, int | None]]
    match group:
        case "iso":
            dates = [(int(match["iy"]), int(match["im"]), int(match["id"]))]
        case "slash":
            a, b, year = int(match["sa"]), int(match["sb"]), int(match["sy"])
            dates = [(year, m, d) for m, d in ((a, b), (b, a))]
        case "dmy":
            dates = [(int(match["dy"]) if match["dy"] else None, _parse_month(match["dm"]), int(match["dd"]))]
        case "mdy":
            dates = [(int(match["my"]) if match["my"] else None, _parse_month(match["mm"]), int(match["md"]))]
        case _:
            dates = [(int(match["yy"]), _parse_month(match["ym"]), None)]
    valid = [("date", y, m, d) for y, m, d in dates if 1 <= m <= 12 and (d is None or 1 <= d <= 31)]
    return Entity(EntityKind.DATE, text, frozenset(valid)) if valid else None


def _parse_month(name: str) -> int:
    return 1 + next(i for i, month in enumerate(MONTHS) if month.startswith(name.rstrip(".")[:3]))


def _parse_minutes(match: re.Match[str]) -> set[int]:
    """Return the minutes after midnight that a time can mean. Without a.m. or p.m., an hour up to 12 can mean both."""
    word = match[0].strip()
    if word in {"noon", "midday"}:
        return {720}
    if word == "midnight":
        return {0}
    if match["cap"]:
        hour, minute = int(match["ch"]) % 12, int(match["cm"] or 0)
        return {60 * (hour + (12 if match["cap"].startswith("p") else 0)) + minute}
    if match["part"]:
        hour = (_VALUES[match["ch4"]] if match["ch4"] in _VALUES else int(match["ch4"])) % 12
        is_late = match["part"].endswith(("afternoon", "evening")) or (match["part"].startswith("at") and hour > 5)
        return {60 * (hour + (12 if is_late else 0))}
    text = match["ch2"] or match["ch3"]
    hour, minute = _VALUES[text] if text in _VALUES else int(text), int(match["cm2"] or 0)
    is_24_hour = hour > 12 or text.startswith("0")
    exact = 60 * hour + minute
    return {exact} if is_24_hour else {exact, 60 * ((hour + 12) % 24) + minute}


def _make_fraction(match: re.Match[str], text: str) -> Entity:
    """Make the number of "half an hour" or "one and a half days"."""
    value = 0.5 if match[0].startswith("half") else 1.5
    unit, size = _parse_unit(match["hu"])
    return Entity(EntityKind.NUMBER, text, frozenset([("number", value * size, unit)]))


def _make_number(match: re.Match[str], text: str, is_context: bool) -> Entity | None:
    value = _parse_value(match["value"])
    if isinstance(value, str):
        return Entity(EntityKind.NUMBER, text, frozenset([("number", value)]))
    scale = _SUFFIXES[match["scale"]] if match["scale"] else 1
    unit: str | None = None
    size = 1.0
    if match["pct"]:
        unit = "%"
    elif match["cur"] or match["money"]:
        unit = _CURRENCIES[match["cur"] or match["money"].removesuffix("s")]
    elif match["unit"]:
        unit, size = _parse_unit(match["unit"])
    if not is_context and unit is None and match["value"] in {"one", "zero"}:
        return None  # "one of them" and "no one" count nothing
    # "any" matches a claim with a unit to a context number without one; None matches a claim without a unit to any number.
    values = {(value * scale, None if is_context or unit is None else "any")}
    values.add((value * scale, "any") if is_context and unit is None else (value * scale * size, unit))
    keys: set[EntityKey] = {("number", *part) for part in values}
    # "9.99 per year" is known if the context has 9.99 per year, or 9.99 without a period.
    periods = [match["period"] or "any"] if is_context or match["period"] is None else [match["period"], "any"]
    rates: set[EntityKey] = {("rate", *part, period) for part in values for period in periods}
    if not is_context and unit is None and _is_hour(match):
        keys.add(("hour", value))
    return Entity(EntityKind.NUMBER, text, frozenset(keys | rates if is_context else rates if match["period"] else keys))


def _is_hour(match: re.Match[str]) -> bool:
    """Return whether a number without a unit can be an hour: "from 8 to 18", but not "6 cubic metres"."""
    before = match.string[max(0, match.start() - _PRECEDING_CHARS) : match.start()]
    return _BEFORE_HOUR.search(before) is not None and _AFTER_HOUR.match(match.string, match.end()) is not None


def _parse_unit(text: str) -> tuple[str, float]:
    """Return the base unit, and the number of base units."""
    name = text.rstrip(".")
    return _UNITS[name if name in _UNITS else name.removesuffix("s")]


def _parse_integer(digits: str) -> int | str:
    """Return the integer, or its digits if they are too many to be a position."""
    return int(digits) if len(digits) <= MAX_NUMBER_DIGITS else digits


def _parse_value(text: str) -> float | str:
    """Return the value of digits or of words ("one hundred and twenty-five"), or the digits if a float can't represent them."""
    if text[0].isdigit():
        digits = text.replace(",", "")
        return float(digits) if len(digits.partition(".")[0]) <= MAX_NUMBER_DIGITS else digits
    total = part = 0.0
    for word in re.split(r"[\s-]+", text):
        if word in _SCALES:
            part = (part or 1) * _SCALES[word]
            if _SCALES[word] > 100:
                total, part = total + part, 0.0
        elif word in _VALUES:
            part += _VALUES[word]
    return total + part


def _find_names(text: str, offset: int, spans: Sequence[tuple[int, int]], stop_words: frozenset[str]) -> list[tuple[str, str]]:
    """Find names by capital letters: (name as written, significant part).

    Every sentence begins with a capital letter ("Call Ada", "See Oduya's office"). Its first word is significant only if it
    looks like a name by itself.
    """
    names = []
    i = 0
    for match in _CAPITAL.finditer(text, offset):
        while i < len(spans) and spans[i][1] <= match.start():
            i += 1
        if i < len(spans) and spans[i][0] < match.end():
            continue
        words = match[0].split()
        if _START.search(text[max(offset, match.start() - _PRECEDING_CHARS) : match.start()]):
            if words[0].lower() in stop_words:
                words = words[1:]
            elif not any(c.isupper() or c.isdigit() for c in words[0][1:]):
                names.append((" ".join(words), " ".join(words[1:])))
                continue
        elif len(words) == 1 and words[0].lower() in stop_words:
            continue
        names.append((" ".join(words), " ".join(words)))
    return names
