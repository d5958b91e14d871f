"""The model of Baechi's scheduler: a device sends or receives one tensor at a time.

Jeon et al., "Baechi: Fast Device Placement of Machine Learning Graphs", SoCC 2020, section 3.2.
"""

from opmark.leaderboards.problem.rules.profile import PublishedModel

PROFILE = PublishedModel(
    name="half_duplex_port", summary="Baechi's model: one port per device, sending or receiving", half_duplex=True
)
