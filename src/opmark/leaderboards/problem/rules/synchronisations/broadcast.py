"""All-to-all broadcast: every replica sends its whole gradient to every other, and sums all that it receives.

The baseline that Ko et al., "An In-Depth Analysis of Distributed Training of Deep Neural Networks", IPDPS 2021, and
sufficient-factor broadcasting (Xie et al., UAI 2016) start from: one round, r(r − 1) × bytes in all.
"""

from opmark.leaderboards.problem.rules.synchronisation import Message, Synchronisation


class Broadcast(Synchronisation):
    """One round: low latency, many bytes."""

    summary = "every replica sends its gradient to every other"

    def rounds(self, replicas: int, size_bytes: int) -> tuple[tuple[Message, ...], ...]:
        """One round between all pairs."""
        numbers = range(replicas)
        pairs = tuple((a, b, size_bytes) for a in numbers for b in numbers if a != b)
        return (pairs,) if pairs else ()


SYNCHRONISATION = Broadcast()
