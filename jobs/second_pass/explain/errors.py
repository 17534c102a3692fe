"""What errors of this folder say."""

from ragassay.pipeline.errors import Message

TOO_FEW_SENTENCES = Message(
    "explain.too-few-sentences",
    "the first response alone has {flagged} flagged sentences, more than {sentences}: give more",
)
NO_OPINIONS = Message(
    "explain.no-opinions",
    "the strategy vanilla explains every flag and rejects none: take fallback or categorized",
)
NO_EXPLANATIONS = Message(
    "explain.no-explanations",
    "output {output} has no explanations yet: run `ragassay explain {output}` first",
)
NO_REASONER = Message(
    "explain.no-reasoner",
    "the job file names no model that explains: add to it, for example,\nescalation:\n  explainer:\n    model: gpt-4.1-mini\n "
    "   engine: {{kind: server, base_url: https://api.openai.com/v1, api_key_env: OPENAI_API_KEY}}\nor `escalation: "
    "{{explainer: {{model: Qwen/Qwen2.5-7B-Instruct, replicas: {{num_gpus: 1}}}}}}` for a pool of vLLM in the same Ray job, "
    "and name it with --config",
)
NO_PRICE = Message(
    "explain.no-price",
    "a budget in money needs to know what tokens cost: set escalation.explainer.price: {{input: …, output: …}}",
)
BUDGET_OF_SEVERAL = Message(
    "explain.budget-of-several",
    "a budget in money is for a server that one replica asks: leave replicas out, and raise concurrency",
)
