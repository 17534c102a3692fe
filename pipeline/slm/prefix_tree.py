"""How many tokens an engine with a prefix cache has to run: those of the tree of all prompts, at the cache's block size."""

from collections.abc import Sequence


class PrefixTree:
    """Every prefix that was asked about, block by block, as vLLM's prefix cache keeps it (without ever evicting one).

    A prompt reuses its leading whole blocks that an earlier prompt had, but for its last token, which is always computed.
    """

    def __init__(self, block_size: int) -> None:
        """Start empty; a block size of 0 reuses nothing.

        Args:
            block_size: Tokens a block.
        """
        self._block_size = block_size
        self._blocks: set[tuple[int, ...]] = set()

    def add(self, prompt: Sequence[int]) -> int:
        """Add a prompt.

        Args:
            prompt: Its tokens.

        Returns:
            Tokens of it that have to be computed, 1 to all.
        """
        if not self._block_size:
            return len(prompt)
        reused = key = 0
        for end in range(self._block_size, len(prompt) + 1, self._block_size):
            block = (key, *prompt[end - self._block_size : end])
            key = hash(block)
            if block in self._blocks and end < len(prompt):  # its key holds those before it, so they were known too
                reused = end
            self._blocks.add(block)
        return len(prompt) - reused
