import subprocess
import sys

CODE = """
import sys
from ragassay.pipeline.text.split import load_splitter, split_sentences
nlp = load_splitter("sentencizer", "en")
assert len(split_sentences(nlp, ["One. Two."])[0]) == 2
assert "torch" not in sys.modules, "spaCy imported torch"
assert not {"spacy.cli", "weasel", "sklearn"} & sys.modules.keys(), "spaCy imported its command line"
import torch
assert torch.ones(2).sum() == 2
import spacy.cli
assert spacy.cli.info and spacy.cli.download
"""


def test_spacy_is_imported_without_torch_and_command_line_which_can_be_imported_later() -> None:
    done = subprocess.run([sys.executable, "-c", CODE], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
