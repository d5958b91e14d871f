"""Ring all-reduce: 2(r − 1) rounds in which every replica sends a chunk of bytes / r to its neighbour.

Patarasuk, Yuan, "Bandwidth optimal all-reduce algorithms for clusters of workstations", JPDC 69(2), 2009.
"""

from opmark.leaderboards.problem.rules.synchronisation import Message, Synchronisation


class RingAllReduce(Synchronisation):
    """Each replica sends and receives 2(r − 1)/r of the bytes."""

    summary = "every replica passes chunks to its neighbour, 2(r - 1)/r of the bytes each"

    def rounds(self, replicas: int, size_bytes: int) -> tuple[tuple[Message, ...], ...]:
        """2(r − 1) equal rounds, chunks rounded up."""
        chunk = -(-size_bytes // replicas)
        ring = tuple((number, (number + 1) % replicas, chunk) for number in range(replicas))
        return (ring,) * (2 * (replicas - 1))


SYNCHRONISATION = RingAllReduce()
