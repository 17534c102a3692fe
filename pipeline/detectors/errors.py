"""Error messages of the detectors."""

from ragassay.pipeline.errors import Message

EMBEDDING_NOT_LOADED = Message(
    "model.embedding-not-loaded",
    "embedding model {model!r} can't be loaded ({reason}): set `model` to a local folder or a hub id",
)
NO_ENTITY_RECOGNIZER = Message(
    "config.no-entity-recognizer",
    "detector: spaCy pipeline {pipeline!r} has no entity recognizer, only {components}: set `ner` to another pipeline, or "
    "remove it to find names by rules",
)
PIPELINE_NOT_INSTALLED = Message(
    "config.pipeline-not-installed",
    "detector: spaCy pipeline {pipeline!r} is not installed: install it, or remove `ner` to find names by rules",
)
