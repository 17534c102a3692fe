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
        reused, sharing, key = 0, True, 0
        for end in range(self._block_size, len(prompt) + 1, self._block_size):
            block = (key, *prompt[end - self._block_size : end])
            key = hash(block)
            known = block in self._blocks
            self._blocks.add(block)
            sharing = sharing and known
            if sharing and end < len(prompt):
                reused = end
        return len(prompt) - reused
