"""Show URIs without secrets (scheme, host or bucket, and path), and hide credentials in headers.

The user part, the query and the fragment are removed as a whole, whatever their parameters are called, because each of them may
contain a secret. `strip_credentials` takes a URI; `hide_secrets` finds URIs in a text.

A valid URI has no raw `/`, `?`, `#` or `@` in its password. A password with these characters is removed as far as the rest of
the URI shows where it ends. If a URI is ambiguous, the shorter reading is shown, or `…` instead of the host.
"""

import re
from urllib.parse import quote, unquote

HIDDEN = "…"
"""Replaces a hidden part."""

MAX_DECODE_DEPTH = 3
"""How often a text that was quoted repeatedly is decoded; deeper levels are hidden."""

_CONTAINER_SCHEMES = frozenset({"abfs", "abfss", "wasb", "wasbs"})
"""Schemes in which a name before the @ is a container, part of the address."""

_CONTAINER = re.compile(r"[$a-z0-9-]{1,63}")
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]{0,31}$")
_SIGN = re.compile(
    r":(?P<raw>//)|:(?P<escaped>\\{1,4}/\\{1,4}/)|(?P<quoted>(?::|%(?:25)?3A)(?://|(?:%(?:25)?2F){2}))", re.IGNORECASE
)
"""Separator between a scheme and the rest: plain, escaped as in JSON, or URL-quoted."""

_HOST = re.compile(r"(?:\[[0-9A-Fa-f:.%]{2,64}\]|[\w.~*${}<>-]{1,255})(?::[0-9]{1,5})?[^\w@%:]{0,8}")
"""A host with its port, and what a text may append to it."""

_PARAMETER = re.compile(r"[?#&;][\w.~+\-\[\]]{1,64}=|%(?:25)?(?:3F|23|26)[\w.~+\-]{1,64}%(?:25)?3D", re.IGNORECASE)
"""Start of a query without a `://` before it, as in `with url: /path?sig=…`."""

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


def strip_credentials(uri: str) -> str:
    """Return a path unchanged; return a URI without user, password, query and fragment, the same for every way to open its
    store.

    In a URI, `#` begins a fragment, as the stores' own readers parse it: an object whose key contains `#` or `?` is written
    with %23 or %3F (`quote_path`). In a path without `://` they are plain characters.

    Args:
        uri: A path or URI.
    """
    scheme, sign, rest = uri.partition("://")
    if not sign:
        return uri
    marks = _MarkIndex(rest)
    shown, start = _find_host(scheme, marks, 0, len(rest))
    return f"{scheme}://{shown}{rest[start : marks.find_first(_QUERY, start, len(rest))]}"


def is_ambiguous_uri(uri: str) -> bool:
    """Return whether a URI has a user part and an @ in its path: one of them may belong to a password.

    Args:
        uri: A path or URI.
    """
    scheme, _, rest = uri.partition("://")
    authority, _, path = _QUERY.split(rest, maxsplit=1)[0].partition("/")
    user = authority.rpartition("@")[0]
    is_container = scheme.lower() in _CONTAINER_SCHEMES and _CONTAINER.fullmatch(user) is not None
    return bool(user) and not is_container and "@" in path


def quote_path(path: str) -> str:
    """Quote a file-system path for use in a URI: `?` and `#` would begin a query or a fragment."""
    return path.replace("?", "%3F").replace("#", "%23")


def hide_secrets(text: str) -> str:
    """Return a text in which every URI shows only its scheme, host or bucket, and path, and no header shows a credential.

    It also finds URIs that are URL-quoted, escaped, wrapped in quotes or brackets, or nested, and queries without a URI. It
    takes linear time, and a second call changes nothing.

    Args:
        text: Any text.
    """
    if not _SUSPECT.search(text):
        return text
    # Words first: the value of a header may end a URI and its wrapping.
    return _hide_headers(_WORD.sub(lambda word: _clean_word(word[0], MAX_DECODE_DEPTH), text))


def _clean_word(word: str, depth: int) -> str:
    """Clean a word, URI by URI; a URI ends where its wrapping ends."""
    marks = _MarkIndex(word)
    parts: list[str] = []
    position = 0
    while position < len(word):
        sign = marks.find_sign(position, len(word))
        parameter = marks.find_first(_PARAMETER, position, len(word))
        if parameter < (sign.start() if sign else len(word)):
            parts.append(word[position:parameter] + _trailing_punctuation(word))
            break
        if sign is None:
            parts.append(word[position:])
            break
        end = _find_uri_end(word, position, sign)
        parts += [word[position : sign.end()], _clean_body(marks, sign, end, depth)]
        position = end
    return "".join(parts)


class _MarkIndex:
    """Index of separators in a word. Queries go from left to right, and each separator is searched once, so the time is
    linear."""

    def __init__(self, text: str) -> None:
        self.text = text
        self._next: dict[re.Pattern[str], tuple[int, re.Match[str] | None]] = {}
        self._last: dict[int, int] = {}

    def find_first(self, mark: re.Pattern[str], start: int, end: int) -> int:
        """Return the start of the first match in [start, end); `end` if there is none."""
        match = self._search(mark, start)
        return match.start() if match is not None and match.end() <= end else end

    def find_last_at(self, start: int, end: int) -> int:
        """Return the position of the last @ in [start, end); -1 if there is none."""
        if end not in self._last:
            self._last[end] = self.text.rfind("@", 0, end)
        return self._last[end] if self._last[end] >= start else -1

    def find_sign(self, start: int, end: int) -> re.Match[str] | None:
        """Return the next URI separator, ignoring code such as `partition("://")`."""
        match = self._search(_SIGN, start)
        while match is not None and match.end() <= end:
            quote_mark = self.text[match.start() - 1 : match.start()]
            if quote_mark not in ("'", '"') or not self.text.startswith(quote_mark, match.end()):
                return match
            match = self._search(_SIGN, match.end())
        return None

    def _search(self, mark: re.Pattern[str], start: int) -> re.Match[str] | None:
        since, match = self._next.get(mark, (len(self.text) + 1, None))
        if since > start or (match is not None and match.start() < start):
            match = mark.search(self.text, start)
            self._next[mark] = start, match
        return match


def _find_uri_end(word: str, start: int, sign: re.Match[str]) -> int:
    """Return the last possible end of a URI: the last closing mark of its wrapping, or the end of the word."""
    scheme = _SCHEME.search(word, max(start, sign.start() - 32), sign.start())
    opener = (scheme.start() if scheme else sign.start()) - 1
    closer = _CLOSERS.get(word[opener]) if opener >= start else None
    end = word.rfind(closer, sign.end()) if closer else -1
    if end < 0:
        return len(word)
    return end - 1 if word[end - 1] == "\\" and end > sign.end() else end


def _clean_body(marks: _MarkIndex, sign: re.Match[str], end: int, depth: int) -> str:
    """Return the visible part of a URI after its separator, and of URIs nested in its path."""
    word, parts = marks.text, list[str]()
    while sign["raw"] is not None:
        scheme = _SCHEME.search(word, max(0, sign.start() - 32), sign.start())
        shown, start = _find_host(scheme[0] if scheme else "", marks, sign.end(), end)
        stop = marks.find_first(_PARAMETER, start, marks.find_first(_QUERY, start, end))
        nested = marks.find_sign(start, stop)
        if nested is None:
            return "".join([*parts, shown, word[start:stop], _trailing_punctuation(word) if stop < end == len(word) else ""])
        parts += [shown, word[start : nested.end()]]
        sign, end = nested, stop if nested["raw"] is None else end
    return "".join([*parts, _clean_coded(word[sign.end() : end], sign, depth)])


def _clean_coded(body: str, sign: re.Match[str], depth: int) -> str:
    """Decode an escaped or URL-quoted URI, clean it, and encode it again."""
    if depth == 0:
        return HIDDEN
    if sign["escaped"] is not None:
        slash = sign["escaped"][: len(sign["escaped"]) // 2]
        return _clean_rest(body.replace(slash, "/"), depth).replace("/", slash)
    return quote(_clean_rest(unquote(body), depth), safe="/:" if sign[0].endswith("//") else "")


def _clean_rest(body: str, depth: int) -> str:
    """Clean the text after `://`."""
    return _clean_word(f"://{body}", depth - 1)[3:]


def _find_host(scheme: str, marks: _MarkIndex, start: int, end: int) -> tuple[str, int]:
    """Find where the host of a URI begins.

    Args:
        scheme: Scheme of the URI.
        marks: Index of the text that contains the URI.
        start: Start of the part after `://`.
        end: End of the URI, including its query and fragment.

    Returns:
        The text to show before the host (a container, or a mark if the host is uncertain), and where the host begins.
    """
    text = marks.text
    path_end = marks.find_first(_QUERY, start, end)
    slash = marks.find_first(_SLASH, start, path_end)
    last = marks.find_last_at(start, path_end)
    if last < 0:
        return _find_host_without_at(marks, start, slash, path_end, end)
    user_end = text.rfind("@", start, slash)
    if user_end < 0:
        is_path = slash == start and scheme.lower() == "file"
        return "", start if is_path or _HOST.fullmatch(text, start, slash) else last + 1
    user = text[start:user_end]
    container = user.partition(":")[0] if scheme.lower() in _CONTAINER_SCHEMES else ""
    container = f"{container}@" if _CONTAINER.fullmatch(container) else ""
    if not _HOST.fullmatch(text, user_end + 1, slash):
        return container, last + 1
    sign = marks.find_sign(slash, path_end)
    later = text.rfind("@", slash, sign.start() if sign else path_end)
    if later < 0 or f"{user}@" == container or not _HOST.fullmatch(text, later + 1, marks.find_first(_SLASH, later, path_end)):
        return container, user_end + 1
    return container, later + 1  # a password with @ and /, or a path with an @: show nothing before it


def _find_host_without_at(marks: _MarkIndex, start: int, slash: int, path_end: int, end: int) -> tuple[str, int]:
    """Find the host if no raw @ precedes the query: the @ may be quoted, or the password may contain the ? or #."""
    text = marks.text
    quoted = text.rfind("%40", start, slash)
    if quoted >= 0:
        return "", quoted + 3
    if ":" not in text[start:slash] or marks.find_first(_AT, path_end, end) == end or _HOST.fullmatch(text, start, slash):
        return "", start
    at, stop = marks.find_first(_AT, path_end, end), marks.find_first(_SEPARATOR, path_end, end)
    if (
        at < stop
        and text.find("@", at + 1, stop) < 0
        and _HOST.fullmatch(text, at + 1, marks.find_first(_BEHIND_HOST, at, end))
    ):
        return "", at + 1
    return HIDDEN, end


def _trailing_punctuation(word: str) -> str:
    """Return the punctuation after a removed query."""
    return word[-1] if word[-1] in ".,;:" else ""


def _hide_headers(text: str) -> str:
    """Return a text without the values of headers that contain credentials."""
    marks = _MarkIndex(text)
    parts: list[str] = []
    position = 0
    for name in _HEADER.finditer(text):
        end = _find_value_end(marks, name) if name.start() >= position else position
        if end > name.end():
            parts += [text[position : name.end()], HIDDEN]
            position = end
    cleaned = "".join([*parts, text[position:]])
    return _TOKEN.sub(
        lambda match: match[0] if _PLAIN_WORD.fullmatch(match["token"]) else f"{match['scheme']} {HIDDEN}", cleaned
    )


def _find_value_end(marks: _MarkIndex, name: re.Match[str]) -> int:
    """Return where a header's value ends: at its closing quote, after its token, or at the line end if it may have several
    tokens."""
    text, start = marks.text, name.end()
    line = marks.find_first(_LINE_END, start, len(text))
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
