"""opsim 1 itself."""

from opmark.leaderboards.problem.rules.profile import OPSIM1

PROFILE = OPSIM1
