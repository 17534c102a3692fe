"""Count the tokens that an engine with a prefix cache computes: those in the tree of all prompts, at the cache's block size."""

from collections.abc import Sequence


class PrefixTree:
    """Every prefix sent so far, block by block, as vLLM's prefix cache stores it (without eviction).

    A prompt reuses the leading whole blocks that it shares with an earlier prompt, except its last token, which is always
    computed.
    """

    def __init__(self, block_size: int) -> None:
        """Start with an empty tree; block size 0 reuses nothing.

        Args:
            block_size: Tokens per block.
        """
        self._block_size = block_size
        self._blocks: set[tuple[int, ...]] = set()

    def add(self, prompt: Sequence[int]) -> int:
        """Add a prompt.

        Args:
            prompt: Its token ids.

        Returns:
            Number of its tokens to compute, 1 to all.
        """
        if not self._block_size:
            return len(prompt)
        reused = key = 0
        for end in range(self._block_size, len(prompt) + 1, self._block_size):
            block = (key, *prompt[end - self._block_size : end])
            key = hash(block)
            if block in self._blocks and end < len(prompt):  # its key covers the blocks before it, so they are in the tree too
                reused = end
            self._blocks.add(block)
        return len(prompt) - reused
