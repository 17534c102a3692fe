"""What errors of this folder say."""

from ragassay.pipeline.errors import Message

NEEDS_WEIGHTS = Message(
    "config.needs-weights",
    "SLM {member!r} is behind a server: this needs its weights, so name another engine",
)
NO_LINE_BREAK = Message(
    "model.no-line-break",
    "SLM {member!r}: model {model!r} has no single token for a line break: take {{{{ {padding} }}}} out of its prompt",
)
NO_LABEL_TOKEN = Message(
    "model.no-label-token",
    "SLM {member!r}: model {model!r} has no single token for any of {words}: name words that are one token of it in `{which}`",
)
CHAT_TEMPLATE_FAILS = Message(
    "model.chat-template-fails",
    "SLM {member!r}: its chat template fails ({reason}): set chat: false, or another prompt",
)
JUDGED_ONCE = Message(
    "prompt.judged-once",
    "{member}: the prompt must hold {{{{ {judged} }}}} exactly once, it holds it {times} times",
)
NO_CONTEXT = Message("prompt.no-context", "{member}: the prompt must hold all passages of `context`: loop over it, or join it")
ORDER = Message("prompt.order", "{member}: {{{{ {before} }}}} may stand once in the prompt, before {{{{ {judged} }}}}")
FILTERED = Message(
    "prompt.filtered",
    "{member}: the prompt may not change or cut question, context or {judged} by filters or slices",
)
UNUSABLE = Message("prompt.unusable", "{member}: the prompt is no usable template: {reason}")
