"""Load a tokenizer without transformers, whose import takes longer than to judge an answer."""

import json
from pathlib import Path
from threading import Lock
from types import SimpleNamespace
from typing import Any

from ragassay.pipeline.engines.model import Model
from ragassay.pipeline.engines.prepare import load_tokenizer
from ragassay.pipeline.engines.weights import cache_folder, prepare_weights


def load_light_tokenizer(model: Model) -> Any:
    """Load a model's tokenizer. Only files that this package wrote are read without transformers: it interprets others by the
    model's type.

    Raises:
        ModelError: The model is unknown or can't be loaded.
    """
    folder = Path(prepare_weights(model.model))
    return LightTokenizer(model, folder) if folder.is_relative_to(cache_folder()) else load_tokenizer(model)


class LightTokenizer:
    """The parts of a Hugging Face tokenizer that prompts without a chat template need; the others load transformers.

    Attributes:
        backend_tokenizer: A `tokenizers.Tokenizer`.
        bos_token_id: Id of the token that begins a text; None without one.
    """

    def __init__(self, model: Model, folder: Path) -> None:
        """Read the files in a folder."""
        from tokenizers import Tokenizer

        self._model = model
        self._full: Any = None
        self._lock = Lock()
        self.backend_tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
        bos = json.loads((folder / "tokenizer_config.json").read_text(encoding="utf-8")).get("bos_token")
        self.bos_token_id = None if bos is None else self.backend_tokenizer.token_to_id(bos)

    def __call__(self, text: str) -> Any:
        """Encode a text; the result has `input_ids`."""
        return SimpleNamespace(input_ids=self.backend_tokenizer.encode(text).ids)

    def __getattr__(self, name: str) -> Any:
        """Return another attribute, of the tokenizer of transformers."""
        if name.startswith("_"):
            raise AttributeError(name)
        with self._lock:  # threads that import transformers at the same time find only parts of it
            if self._full is None:
                self._full = load_tokenizer(self._model)
        return getattr(self._full, name)
