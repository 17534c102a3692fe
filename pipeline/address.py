"""What of a URI may be shown and stored: its scheme, host or bucket, and path.

The whole user part, the whole query and the whole fragment are left out, whatever their parameters are called: each of them may
hold a secret. `address_of` takes a URI, `without_secrets` finds URIs in a text.

A URI that is written by the rules has no raw `/`, `?`, `#` or `@` in its password. Passwords that have them are found as far as
the rest of the URI tells where they end. Where two readings are left, the shorter one is shown, or `…` in place of the host.
"""

import re
from urllib.parse import quote, unquote

HIDDEN = "…"
"""Stands where something was left out that had a place of its own."""

MOST_DECODED = 3
"""How often a text is decoded that was quoted again and again; deeper ones are hidden."""

_CONTAINER_SCHEMES = frozenset({"abfs", "abfss", "wasb", "wasbs"})
"""Schemes in which a name before the @ is part of the place."""

_CONTAINER = re.compile(r"[$a-z0-9-]{1,63}")
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]{0,31}$")
_SIGN = re.compile(
    r":(?P<raw>//)|:(?P<escaped>\\{1,4}/\\{1,4}/)|(?P<quoted>(?::|%(?:25)?3A)(?://|(?:%(?:25)?2F){2}))", re.IGNORECASE
)
"""What stands between a scheme and the rest: as it is, as JSON may escape it, and URL-quoted."""

_HOST = re.compile(r"(?:\[[0-9A-Fa-f:.%]{2,64}\]|[\w.~*${}<>-]{1,255})(?::[0-9]{1,5})?[^\w@%:]{0,8}")
"""A host with its port, and what a text may put behind it."""

_PARAMETER = re.compile(r"[?#&;][\w.~+\-\[\]]{1,64}=|%(?:25)?(?:3F|23|26)[\w.~+\-]{1,64}%(?:25)?3D", re.IGNORECASE)
"""Begin of a query where no `://` tells that it is one, as in `with url: /path?sig=…`."""

_CLOSERS = {"'": "'", '"': '"', "`": "`", "(": ")", "[": "]", "{": "}", "<": ">", "“": "”", "«": "»"}
_QUERY, _SLASH, _AT, _SEPARATOR, _BEHIND_HOST, _LINE_END = map(re.compile, ("[?#]", "/", "@", "[=&/]", "[/?#]", "[\n\r]"))
_SUSPECT = re.compile(r"//|%(?:25)?[23]|\\/|[?#&;].|authorization|bearer|basic|key|cookie|x-(?:amz|goog)", re.IGNORECASE)
_WORD = re.compile(r"\S+")

_HEADER = re.compile(
    r"""(?<!\w)(?:(?P<line>(?:proxy-)?authorization)|(?:x-)?api[-_]?key|access[-_]key|x-(?:amz|goog)-[a-z-]{1,32}|(?:set-)?cookie)"""
    r"""(?P<close>\\{0,4}["'])?(?:\s{0,8}[:=]\s{0,8}|(?<=["'])\s{0,8},\s{0,8})(?:b(?=["'\\]))?(?P<open>\\{0,4}["'])?""",
    re.IGNORECASE,
)
_KNOWN_SCHEME = re.compile(r"[A-Za-z][\w-]{1,31} {1,8}\S")
_LINE_SCHEME = re.compile(r"(?:digest|aws4|hawk|oauth|negotiate)\b", re.IGNORECASE)
_TOKEN = re.compile(r"\b(?P<scheme>bearer|basic)\s{1,8}(?P<token>[\w.~+/=-]{6,})", re.IGNORECASE)
_PLAIN_WORD = re.compile(r"[A-Za-z]?[a-z]+[.-]?")


def address_of(uri: str) -> str:
    """A path as it is; a URI without user, password, query and fragment: the same for one place, however its store is opened.

    In a URI `#` begins a fragment, as the stores' own readers take it: an object whose key holds `#` or `?` is written with
    %23 or %3F (`path_in_uri`). In a path without `://` they are plain characters.

    Args:
        uri: A path or URI.
    """
    scheme, sign, rest = uri.partition("://")
    if not sign:
        return uri
    marks = _Marks(rest)
    shown, start = _place(scheme, marks, 0, len(rest))
    return f"{scheme}://{shown}{rest[start : marks.first(_QUERY, start, len(rest))]}"


def is_ambiguous(uri: str) -> bool:
    """Whether a URI has a user part, and an @ in its path too: one of them may be part of a password.

    Args:
        uri: A path or URI.
    """
    scheme, _, rest = uri.partition("://")
    place, _, path = _QUERY.split(rest, maxsplit=1)[0].partition("/")
    user = place.rpartition("@")[0]
    is_container = scheme.lower() in _CONTAINER_SCHEMES and _CONTAINER.fullmatch(user) is not None
    return bool(user) and not is_container and "@" in path


def path_in_uri(path: str) -> str:
    """A path on a file system as a URI has it behind its scheme: what would begin a query or a fragment is quoted."""
    return path.replace("?", "%3F").replace("#", "%23")


def without_secrets(text: str) -> str:
    """A text in which every URI shows its scheme, host or bucket, and path alone, and no header shows a credential.

    It also finds URIs that are URL-quoted, escaped, wrapped in quotes or brackets, or nested, and queries without a URI. The
    time is linear in the length of the text. Applied again it changes nothing more.

    Args:
        text: Any.
    """
    if not _SUSPECT.search(text):
        return text
    # Words first: a header's value may be the end of a URI and of what it is wrapped in.
    return _without_headers(_WORD.sub(lambda word: _clean_word(word[0], MOST_DECODED), text))


def _clean_word(word: str, depth: int) -> str:
    """A stretch without spaces: what is before its first URI, then URI by URI; each ends where what it is wrapped in ends."""
    marks = _Marks(word)
    out: list[str] = []
    at = 0
    while at < len(word):
        sign = marks.sign(at, len(word))
        parameter = marks.first(_PARAMETER, at, len(word))
        if parameter < (sign.start() if sign else len(word)):
            out.append(word[at:parameter] + _tail(word))
            break
        if sign is None:
            out.append(word[at:])
            break
        end = _end(word, at, sign)
        out += [word[at : sign.end()], _clean_body(marks, sign, end, depth)]
        at = end
    return "".join(out)


class _Marks:
    """Where the marks of a word stand. They are asked for from left to right, and each is looked for once: in linear time."""

    def __init__(self, text: str) -> None:
        self.text = text
        self._next: dict[re.Pattern[str], tuple[int, re.Match[str] | None]] = {}
        self._last: dict[int, int] = {}

    def first(self, mark: re.Pattern[str], start: int, end: int) -> int:
        """Where the first one begins; the end where there is none."""
        found = self._search(mark, start)
        return found.start() if found is not None and found.end() <= end else end

    def last_at(self, start: int, end: int) -> int:
        """Where the last @ stands; -1 where there is none."""
        if end not in self._last:
            self._last[end] = self.text.rfind("@", 0, end)
        return self._last[end] if self._last[end] >= start else -1

    def sign(self, start: int, end: int) -> re.Match[str] | None:
        """The next sign that is one of a URI, and not a piece of code such as `partition("://")`."""
        found = self._search(_SIGN, start)
        while found is not None and found.end() <= end:
            before = self.text[found.start() - 1 : found.start()]
            if before not in ("'", '"') or not self.text.startswith(before, found.end()):
                return found
            found = self._search(_SIGN, found.end())
        return None

    def _search(self, mark: re.Pattern[str], start: int) -> re.Match[str] | None:
        since, found = self._next.get(mark, (len(self.text) + 1, None))
        if since > start or (found is not None and found.start() < start):
            found = mark.search(self.text, start)
            self._next[mark] = start, found
        return found


def _end(word: str, start: int, sign: re.Match[str]) -> int:
    """Where a URI ends at the latest: where what it is wrapped in is closed for the last time, or with the word."""
    scheme = _SCHEME.search(word, max(start, sign.start() - 32), sign.start())
    before = (scheme.start() if scheme else sign.start()) - 1
    closer = _CLOSERS.get(word[before]) if before >= start else None
    end = word.rfind(closer, sign.end()) if closer else -1
    if end < 0:
        return len(word)
    return end - 1 if word[end - 1] == "\\" and end > sign.end() else end


def _clean_body(marks: _Marks, sign: re.Match[str], end: int, depth: int) -> str:
    """What may be shown of a URI behind its sign, and of those nested in its path."""
    word, out = marks.text, list[str]()
    while sign["raw"] is not None:
        scheme = _SCHEME.search(word, max(0, sign.start() - 32), sign.start())
        shown, start = _place(scheme[0] if scheme else "", marks, sign.end(), end)
        stop = marks.first(_PARAMETER, start, marks.first(_QUERY, start, end))
        nested = marks.sign(start, stop)
        if nested is None:
            return "".join([*out, shown, word[start:stop], _tail(word) if stop < end == len(word) else ""])
        out += [shown, word[start : nested.end()]]
        sign, end = nested, stop if nested["raw"] is None else end
    return "".join([*out, _clean_coded(word[sign.end() : end], sign, depth)])


def _clean_coded(body: str, sign: re.Match[str], depth: int) -> str:
    """The same of a URI that is escaped or URL-quoted: decoded, cleaned, and coded again."""
    if depth == 0:
        return HIDDEN
    if sign["escaped"] is not None:
        slash = sign["escaped"][: len(sign["escaped"]) // 2]
        return _clean_rest(body.replace(slash, "/"), depth).replace("/", slash)
    return quote(_clean_rest(unquote(body), depth), safe="/:" if sign[0].endswith("//") else "")


def _clean_rest(body: str, depth: int) -> str:
    """What may be shown behind `://`."""
    return _clean_word(f"://{body}", depth - 1)[3:]


def _place(scheme: str, marks: _Marks, start: int, end: int) -> tuple[str, int]:
    """Where the host of a URI begins, behind its user part.

    Args:
        scheme: The URI's.
        marks: Of the text that holds it;
        start: what is behind its `://` begins here,
        end: and ends here, with its query and fragment.

    Returns:
        What is to be shown before the host (a container, or a mark where the host is not certain), and where the host begins.
    """
    text = marks.text
    front = marks.first(_QUERY, start, end)
    slash = marks.first(_SLASH, start, front)
    last = marks.last_at(start, front)
    if last < 0:
        return _place_without_at(marks, start, slash, front, end)
    at = text.rfind("@", start, slash)
    if at < 0:
        is_path = slash == start and scheme.lower() == "file"
        return "", start if is_path or _HOST.fullmatch(text, start, slash) else last + 1
    user = text[start:at]
    container = user.partition(":")[0] if scheme.lower() in _CONTAINER_SCHEMES else ""
    container = f"{container}@" if _CONTAINER.fullmatch(container) else ""
    if not _HOST.fullmatch(text, at + 1, slash):
        return container, last + 1
    sign = marks.sign(slash, front)
    later = text.rfind("@", slash, sign.start() if sign else front)
    if later < 0 or f"{user}@" == container or not _HOST.fullmatch(text, later + 1, marks.first(_SLASH, later, front)):
        return container, at + 1
    return container, later + 1  # it may be a password with @ and /, or a path with an @: nothing before is shown


def _place_without_at(marks: _Marks, start: int, slash: int, front: int, end: int) -> tuple[str, int]:
    """The same where no raw @ stands before the query: it may be quoted, or the password hold the ? or #."""
    text = marks.text
    quoted = text.rfind("%40", start, slash)
    if quoted >= 0:
        return "", quoted + 3
    if ":" not in text[start:slash] or marks.first(_AT, front, end) == end or _HOST.fullmatch(text, start, slash):
        return "", start
    at, stop = marks.first(_AT, front, end), marks.first(_SEPARATOR, front, end)
    if at < stop and text.find("@", at + 1, stop) < 0 and _HOST.fullmatch(text, at + 1, marks.first(_BEHIND_HOST, at, end)):
        return "", at + 1
    return HIDDEN, end


def _tail(word: str) -> str:
    """Punctuation of the text behind a query that is left out."""
    return word[-1] if word[-1] in ".,;:" else ""


def _without_headers(text: str) -> str:
    """A text without the values of headers that hold credentials."""
    marks = _Marks(text)
    out: list[str] = []
    at = 0
    for name in _HEADER.finditer(text):
        end = _end_of_value(marks, name) if name.start() >= at else at
        if end > name.end():
            out += [text[at : name.end()], HIDDEN]
            at = end
    found = "".join([*out, text[at:]])
    return _TOKEN.sub(lambda m: m[0] if _PLAIN_WORD.fullmatch(m["token"]) else f"{m['scheme']} {HIDDEN}", found)


def _end_of_value(marks: _Marks, name: re.Match[str]) -> int:
    """Where the value of a header ends: with its quotes; else with its token, or its line where it may have many."""
    text, start = marks.text, name.end()
    line = marks.first(_LINE_END, start, len(text))
    if name["open"] is not None:
        end = text.find(name["open"], start, line)
        return line if end < 0 else end
    if name["line"] is not None:
        if _LINE_SCHEME.match(text, start):
            return line
        scheme = _KNOWN_SCHEME.match(text, start, line)
        start = scheme.end() - 1 if scheme else start
    word = _WORD.match(text, start, line)
    return word.end() if word else name.end()
