"""The model of Placeto's simulator: a bus per source device, one transfer to all readers, ready units in turn.

Addanki et al., "Placeto: Learning Generalizable Device Placement Algorithms for Distributed Machine Learning",
NeurIPS 2019. A multicast lasts as long as the slowest of its ways, every hop and layout cost on it included.
"""

from opmark.leaderboards.problem.rules.profile import PublishedModel

PROFILE = PublishedModel(
    name="source_bus_multicast",
    summary="Placeto's model: one bus per source, one transfer to all readers, first ready first run",
    multicast=True,
    fifo=True,
)
