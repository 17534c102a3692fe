"""What errors of this folder say."""

from ragassay.pipeline.errors import Message

URL_WITH_QUERY = Message(
    "publish.url-with-query",
    "the tool's address may hold no query (?) and no fragment (#): keys belong in the environment (docs/how-to/publish.md)",
)
URL_WITH_PASSWORD = Message(
    "publish.url-with-password",
    "the tool's address may hold no password: keys belong in the environment (docs/how-to/publish.md)",
)
NO_URL = Message("publish.no-url", "{url!r} is no address of a tool: give one such as https://host or http://localhost:6006")
UNREADABLE_URL = Message(
    "publish.unreadable-url",
    "the tool's address can't be read: give one such as https://host or http://localhost:6006",
)
KEY_REFUSED = Message("publish.key-refused", "{url} refuses the key ({reason}): see {keys}")
REDIRECTED = Message("publish.redirected", "{url} sends us on to {location}: name that address, if it is right")
WEB_PAGE = Message(
    "publish.web-page",
    "{url} answers with a web page ({status}), as no API does: is it the tool's address, or is there a login before it?",
)
UNREACHABLE = Message(
    "publish.unreachable",
    "{url}: {reason}, {tries} times. What was sent is recorded; run the same command again: it resumes",
)
WAIT_TOO_LONG = Message(
    "publish.wait-too-long",
    "{url} asks to wait {seconds:.0f} seconds. What was sent is recorded; run the same command again: it resumes",
)
NO_LANGFUSE_KEYS = Message(
    "publish.no-langfuse-keys",
    "Langfuse wants the keys of a project: set {public_key} and {secret_key}",
)
HEADERS_SYNTAX = Message("publish.headers-syntax", "{variable} must be name=value,name=value")
TOO_MANY_REFUSED = Message(
    "publish.too-many-refused",
    "{url} refuses more than {most:,} verdicts of a partition, such as {reason!r}. Fix the cause, then run the same command "
    "again: it resumes, and sends the refused verdicts again",
)
UNREADABLE_STATE = Message(
    "publish.unreadable-state",
    "{path} can't be read: {reason}. Move it away: all is sent anew then, over what is there",
)
SOME_REFUSED = Message(
    "publish.some-refused",
    "{url} refused {refused:,} verdicts. The same command tries those of named rows again; --resend sends all anew",
)
UNKNOWN_TRACES = Message(
    "publish.unknown-traces",
    "{url} knows none of the {traces:,} traces: set integrations.publish.trace_column, and span_column for "
    "spans, to the columns of their ids",
)
NO_API = Message("publish.no-api", "{url} has no such API ({reason}): is it the tool's address?")
NO_ADDRESS = Message("publish.no-address", "where is the tool? Name it with --url, or set {variable}")
