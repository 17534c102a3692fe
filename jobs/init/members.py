"""The members of a job for a machine: what stands in its file, and why."""

from collections.abc import Iterator

from ragassay.jobs.init.machine import Machine
from ragassay.jobs.init.wording import comment

A_CARD = 4
"""Replicas of the bundled verifier that share a card: a model of 135M doesn't fill one alone (infra/job_gpu.yaml)."""

MEMORY_SHARE = 0.22  # of a card, a replica: four stay below 1
CPU_MEMORY = 6.0  # GiB that a run with the bundled verifier takes beside the system

DETECTORS = """\
detectors:               # members that need no model: names and numbers, passages, new words; docs/detectors.md
  - {name: entities, kind: entities}
  - {name: attribution, kind: attribution}
  - {name: novelty, kind: novelty}"""
WEIGHTS = "weights: {facts: 27, entities: 1, attribution: 1, novelty: 1}   # as the bundled calibration has them"


def members_text(asked: bool, machine: Machine) -> Iterator[str]:
    """Lines of the job file about members and their engines.

    Args:
        asked: Whether there are questions.
        machine: Where it will run.
    """
    if not asked:
        yield from comment(
            "There is no question, or in too few rows, and the bundled verifier asks with it: it would leave the others "
            "without a score. The detectors below need neither a question nor a model. For the verifier, write a question into "
            "every row (where there is none, one for all, such as `Is the statement right?`), and take these lines out."
        )
        yield "slms: []"
        yield DETECTORS
    elif machine.gpus:
        yield from _on_gpus(machine)
    else:
        yield from _on_cpu(machine)


def _on_gpus(machine: Machine) -> Iterator[str]:
    cards, memory = len(machine.gpus), min(machine.gpus)
    replicas = A_CARD * cards
    cache = max(1, min(4, int(MEMORY_SHARE * memory - 1)))
    cpus = max(0.01, min(0.75, int(75 * machine.cores / replicas) / 100))
    yield from comment(
        f"{cards} GPU(s) of {memory:.0f} GiB: {A_CARD} replicas of the small bundled verifier share a card. "
        "infra/job_gpu.yaml has the reasons."
    )
    yield "slms:"
    yield "  - name: facts"
    yield "    adapter: facts                  # the verifier that comes with the package"
    yield f"    gpu_memory_utilization: {MEMORY_SHARE}    # of a card's memory, a replica"
    yield f"    kv_cache_gib: {cache}                 # for contexts that are under way"
    yield "    max_num_batched_tokens: 16384   # a step; halve it if memory runs out"
    yield "    max_num_seqs: 1024"
    yield f"    replicas: {{min: 1, max: {replicas}, num_cpus: {cpus:g}, num_gpus: {1 / A_CARD:g}}}"
    yield DETECTORS
    yield WEIGHTS
    yield "block_mib: 16            # rows go to an engine in blocks of this size; GPUs want large ones"


def _on_cpu(machine: Machine) -> Iterator[str]:
    if machine.unused_gpus:
        yield from comment(
            f"IN DOUBT: {machine.unused_gpus} GPU(s) are here, and the PyTorch of this installation can't use them: install "
            "requirements/gpu.txt, and run init again."
        )
    yield from comment(
        "Who judges: where nothing is said, the bundled verifier `facts` and three detectors, by a threshold that was measured "
        f"on labelled logs of other origin. One replica of `facts` takes {_cores(machine)}."
    )
    if machine.memory < CPU_MEMORY:
        yield from comment(
            f"IN DOUBT: {machine.memory:.1f} GiB of memory are few for it (8 are asked for); detectors alone take far less."
        )
    yield "# A model of your own (docs/slm.yaml has every setting of one), which judges alone:"
    yield "# slms: [{name: qwen, model: Qwen/Qwen2.5-1.5B-Instruct}]"
    yield "# Detectors alone: no model, thousands of responses a second, weaker verdicts:"
    yield "# slms: []"
    yield from (f"# {line}" for line in DETECTORS.splitlines())


def _cores(machine: Machine) -> str:
    return "the one core of this machine" if machine.cores == 1 else f"all {machine.cores} cores of this machine"
