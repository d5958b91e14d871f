"""The model of HEFT and PEFT: every transfer has a link of its own.

Topcuoglu, Hariri, Wu, IEEE TPDS 13(3), 2002; Arabnejad, Barbosa, IEEE TPDS 25(3), 2014.
"""

from opmark.leaderboards.problem.rules.profile import PublishedModel

PROFILE = PublishedModel(name="contention_free", summary="the model of HEFT and PEFT: infinite ports", contention=False)
