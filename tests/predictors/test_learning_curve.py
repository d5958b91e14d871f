"""Error over the number of kernels."""

from tests.predictors import law

from opmark.predictors.evidence import Evidence
from opmark.predictors.learning_curve import learning_curve


def test_more_kernels_help_and_the_same_ones_judge() -> None:
    evidence = Evidence(target=law.TARGET, measurements=law.rows(150, ("gemm", "softmax")), hardware=law.HARDWARE)
    heard: list[tuple[str, str]] = []
    points = learning_curve(
        evidence,
        estimators=("lightgbm", "nearest"),
        counts=(20, 60, 100_000),
        progress=lambda name, what: heard.append((name, what)),
    )
    assert len(points) == len(heard) == 6
    assert len({point.n for point in points}) == 1
    for name in ("lightgbm", "nearest"):
        own = [point for point in points if point.estimator == name]
        assert [point.rows for point in own] == sorted(point.rows for point in own)
        assert own[-1].median < own[0].median
    assert points[2].rows + points[2].n == 300


def test_without_two_sides_there_is_no_curve() -> None:
    assert learning_curve(Evidence(target=law.TARGET, measurements=law.rows(3, ("gemm",)))) == []
