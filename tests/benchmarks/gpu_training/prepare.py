"""Write the prompts of a mix, of watched logs, and the model's weights: see `tests.benchmarks.gpu_training`.

OUT/examples.pkl.xz has the token ids of all prompts. OUT/model.pkl has the blocks of the model's GGUF file as they are, and of
the vocabulary only the rows that the prompts use: a third less to carry. OUT/config.json is the model's configuration.
"""

import argparse
import lzma
import pickle
import shutil
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import polars as pl

from ragassay.jobs.config.job import Job, load_job
from ragassay.jobs.evaluation.labels import LabelSource
from ragassay.jobs.training.command import UNTUNED
from ragassay.jobs.training.examples import ContextGroup, read_examples, split_held_out, split_large_groups
from ragassay.pipeline.engines.prepare import load_tokenizer
from ragassay.pipeline.engines.weights import find_model, prepare_weights
from ragassay.pipeline.slm.config import Slm
from ragassay.pipeline.slm.evidence import without_whole_response
from ragassay.pipeline.slm.prompt import PromptBuilder
from ragassay.pipeline.text.split import load_splitter
from ragassay.pipeline.token_tree.tree import count_shared_tokens
from ragassay.pipeline.training.loss import find_pair_indices
from tests.benchmarks.gpu_training.examples import HELD_OUT, PackedGroup, PackedUnit

MAX_PROMPT, MAX_TREE = 2048, 3072
HELD_OUT_SHARE = 0.02
HEAD_TOKENS = 6000
"""Rows of the LM head to carry: the most frequent tokens, over which P(yes) is normalized in training."""


def pack_group(group: ContextGroup) -> PackedGroup:
    """Store the tokens that all prompts of a group begin with once."""
    prompts = [prompt for unit in group.units for prompt in unit.prompts]
    shared = prompts[0][: count_shared_tokens(min(prompts), max(prompts))]
    units = [
        PackedUnit([np.array(prompt[len(shared) :], dtype=np.int32) for prompt in unit.prompts], *unit[1:])
        for unit in group.units
    ]
    return PackedGroup(np.array(shared, dtype=np.int32), units, find_pair_indices(group.pairs, group.units))


def read_log(path: Path, slm: Slm, builder: PromptBuilder, job: Job) -> list[ContextGroup]:
    """Read a labeled log."""
    nlp = load_splitter(job.splitting.pipeline, job.splitting.language)
    examples = read_examples(str(path), LabelSource("label"), job.input.columns, slm, builder, nlp, MAX_PROMPT)
    return split_large_groups(examples.groups, MAX_TREE)


def count_tokens(groups: Sequence[PackedGroup]) -> Counter[int]:
    """Count the occurrences of each token id."""
    counts: Counter[int] = Counter()
    for group in groups:
        counts.update(group.prefix.tolist())
        for unit in group.units:
            for suffix in unit.suffixes:
                counts.update(suffix.tolist())
    return counts


def read_blocks(gguf: Path, ids: Any, head_ids: Any) -> dict[str, tuple[int, Any]]:
    """Read tensor name -> GGML type and raw blocks, with only some rows of the embeddings and of the head."""
    from gguf import GGUFReader

    tensors = {t.name: (t.tensor_type.value, np.asarray(t.data)) for t in GGUFReader(str(gguf)).tensors}
    kind, rows = tensors.get("output.weight", tensors["token_embd.weight"])  # a tied head is the embeddings
    embedding_kind, embeddings = tensors["token_embd.weight"]
    cut = {"output.weight": (kind, rows[head_ids]), "token_embd.weight": (embedding_kind, embeddings[ids])}
    return {name: (kind, np.ascontiguousarray(data)) for name, (kind, data) in (tensors | cut).items()}


def main() -> None:
    """Write the files."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("mix", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--config", help="job file with one SLM; the bundled verifier's untuned model without")
    parser.add_argument("--watch", type=Path, nargs="*", default=[])
    arguments = parser.parse_args()
    job = load_job(arguments.config)
    slm = without_whole_response(job.members.slms[0] if arguments.config else UNTUNED)
    builder = PromptBuilder(slm, load_tokenizer(slm))
    groups: dict[str, list[PackedGroup]] = {}
    watched = {path.stem: [pack_group(g) for g in read_log(path, slm, builder, job)] for path in arguments.watch}
    watched[HELD_OUT] = []
    with TemporaryDirectory() as folder:
        for (source,), part in pl.read_parquet(arguments.mix).group_by(["source"], maintain_order=True):
            path = Path(folder, "part.parquet")
            has_labels = part["sentence_labels"].null_count() < len(part)
            (part if has_labels else part.drop("sentence_labels")).write_parquet(path)
            training, held_out = split_held_out(read_log(path, slm, builder, job), HELD_OUT_SHARE)
            groups[str(source)] = [pack_group(group) for group in training]
            watched[HELD_OUT] += [pack_group(group) for group in held_out]
            print(f"{source}: {len(groups[str(source)]):,} contexts")
    counts = count_tokens([group for part in (*groups.values(), *watched.values()) for group in part])
    labels = {*builder.yes_ids, *builder.no_ids}
    ids = np.array(sorted({*counts, *labels}))
    head_ids = np.array(sorted({*(token for token, _ in counts.most_common(HEAD_TOKENS)), *labels}))
    arguments.out.mkdir(parents=True, exist_ok=True)
    shutil.copy(Path(prepare_weights(slm.model), "config.json"), arguments.out / "config.json")
    examples = {"yes": list(builder.yes_ids), "no": list(builder.no_ids), "train": groups, "watched": watched}
    with lzma.open(arguments.out / "examples.pkl.xz", "wb", preset=2) as file:
        pickle.dump(examples, file)
    model = {"ids": ids, "head_ids": head_ids, "tensors": read_blocks(Path(find_model(slm.model)), ids, head_ids)}
    (arguments.out / "model.pkl").write_bytes(pickle.dumps(model))


if __name__ == "__main__":
    main()
