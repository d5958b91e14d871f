"""opsim 1 itself."""

from opmark.leaderboards.profile import OPSIM1

PROFILE = OPSIM1
