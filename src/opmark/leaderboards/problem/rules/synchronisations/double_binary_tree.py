"""Tree all-reduce: gradients are summed up a binary tree and the sum comes down again.

Sanders, Speck, Träff, "Two-tree algorithms for full bandwidth broadcast, reduction and scan", Parallel Computing
35(12), 2009; each of two mirrored trees carries one half of the bytes.
"""

from opmark.leaderboards.problem.rules.synchronisation import Message, Synchronisation


class DoubleBinaryTree(Synchronisation):
    """2⌈log2 r⌉ rounds: fewer than a ring, for many replicas and small gradients."""

    summary = "halves go up and down two mirrored binary trees, 2 log2 r rounds"

    def rounds(self, replicas: int, size_bytes: int) -> tuple[tuple[Message, ...], ...]:
        """Up level by level, then down; parent of p is p with its lowest set bit cleared."""
        half = -(-size_bytes // 2)
        up: list[tuple[Message, ...]] = []
        step = 1
        while step < replicas:
            pairs = [(number, number - step) for number in range(step, replicas, 2 * step)]
            mirrored = [(replicas - 1 - a, replicas - 1 - b) for a, b in pairs]
            up.append(tuple((a, b, half) for a, b in (*pairs, *mirrored)))
            step *= 2
        down = [tuple((b, a, size) for a, b, size in level) for level in reversed(up)]
        return (*up, *down)


SYNCHRONISATION = DoubleBinaryTree()
