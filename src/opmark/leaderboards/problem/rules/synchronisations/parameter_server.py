"""Parameter server: every replica sends its gradient to the first one, which sends the sum back.

Li et al., "Scaling Distributed Machine Learning with the Parameter Server", OSDI 2014.
"""

from opmark.leaderboards.problem.rules.synchronisation import Message, Synchronisation


class ParameterServer(Synchronisation):
    """The first replica is the server: its links carry (r − 1) × bytes each way."""

    summary = "the first replica collects all gradients and returns their sum"

    def rounds(self, replicas: int, size_bytes: int) -> tuple[tuple[Message, ...], ...]:
        """One round in, one round out."""
        others = range(1, replicas)
        if not others:
            return ()
        return tuple((number, 0, size_bytes) for number in others), tuple((0, number, size_bytes) for number in others)


SYNCHRONISATION = ParameterServer()
