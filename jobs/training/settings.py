"""Read the settings file of `ragassay tune`, a YAML document that is checked before training starts."""

from pydantic import Field

from ragassay.jobs.config.section import Section
from ragassay.jobs.config.settings_file import check_settings, read_settings
from ragassay.jobs.training.train import Recipe

_DEFAULTS = Recipe()


class TrainingSettings(Section):
    """Settings of `tune`.

    Attributes:
        base: Model to train; null for the model of the SLM.
        corruptions: Synthetic statements per label and context.
        epochs: Passes over the training data.
        learning_rate: Peak of the learning rate, which rises over the first 3 % of the steps and then falls to 0 as a cosine.
        rank: Rank of the LoRA matrices.
        layers: Number of upper layers with LoRA matrices; null for all.
        batch: Labels per optimizer step.
        pack: Tokens per forward pass; larger on a GPU.
        held_out: Share of contexts to measure on instead of training on them.
        check_every: Steps between measurements.
        patience: Measurements without improvement after which training stops.
        seed: Seed of the initial weights and of the order.
    """

    base: str | None = None
    corruptions: int = Field(0, ge=0)
    epochs: float = Field(_DEFAULTS.epochs, ge=0.01)
    learning_rate: float = Field(_DEFAULTS.learning_rate, ge=0)
    rank: int = Field(_DEFAULTS.rank, ge=1)
    layers: int | None = Field(_DEFAULTS.layers, ge=1)
    batch: int = Field(_DEFAULTS.batch, ge=1)
    pack: int = Field(_DEFAULTS.pack, ge=64)
    held_out: float = Field(0.1, ge=0.01, le=0.5)
    check_every: int = Field(_DEFAULTS.check_every, ge=1)
    patience: int = Field(_DEFAULTS.patience, ge=1)
    seed: int = _DEFAULTS.seed

    @property
    def recipe(self) -> Recipe:
        """Settings of the training loop."""
        return Recipe(
            epochs=self.epochs,
            learning_rate=self.learning_rate,
            rank=self.rank,
            layers=self.layers,
            batch=self.batch,
            pack=self.pack,
            check_every=self.check_every,
            patience=self.patience,
            seed=self.seed,
        )


def load_training_settings(path: str | None) -> TrainingSettings:
    """Read and check a settings file.

    Args:
        path: A YAML file; None for the defaults.

    Raises:
        ConfigError: The file can't be read, or settings are wrong; the error lists all faults.
    """
    if path is None:
        return TrainingSettings()
    return check_settings(TrainingSettings, read_settings(path, "settings file"), f"settings file {path}")
