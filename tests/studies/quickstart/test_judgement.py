"""A quickstart says in one line whether its numbers may be trusted."""

from types import SimpleNamespace

import pytest

from opmark.studies.quickstart.judgement import FAIR, GOOD, NOISY, POOR, judge_quickstart


def rows(ok: int, low: int, failed: int = 0, status: str = "doubtful") -> list[SimpleNamespace]:
    return [SimpleNamespace(status=name) for name in ["ok"] * ok + [status] * low + ["failed"] * failed]


@pytest.mark.parametrize("status", ["doubtful", "low_quality"])
@pytest.mark.parametrize(
    ("low", "errors", "word"),
    [
        (0, [0.05, 0.05, 0.15], GOOD),
        (10, [0.02, 0.05, 0.05], GOOD),
        (11, [0.05, 0.05, 0.05], FAIR),
        (0, [0.051, 0.051, 0.051], FAIR),
        (0, [0.01, 0.01, 0.16], FAIR),
        (50, [0.1, 0.1, 0.3], FAIR),
        (0, [0.101, 0.101, 0.101], POOR),
        (0, [0.01, 0.01, 0.31], POOR),
        (51, [0.01, 0.01, 0.01], FAIR),
        (51, [0.01, 0.06, 0.06], NOISY),
        (96, [0.31, 0.31, 0.31], NOISY),
    ],
)
def test_noise_and_errors_decide(status: str, low: int, errors: list[float], word: str) -> None:
    noisy = rows(100 - low, low, failed=9, status=status)
    verdict = judge_quickstart({"quiet": rows(100, 0), "noisy": noisy}, errors)
    assert verdict.word == word
    assert bool(verdict.advice) == (word != GOOD)
    assert verdict.sentence.startswith(f"Verdict: {word}. ")
    assert "\n" not in verdict.sentence


@pytest.mark.parametrize(("floor", "word"), [(0.014, GOOD), (0.05, GOOD), (0.058, FAIR), (None, FAIR)])
def test_good_sums_of_doubtful_kernels_need_a_machine_that_tells_networks(floor: float | None, word: str) -> None:
    verdict = judge_quickstart({"torch": rows(5, 95)}, [0.014, 0.03], [floor])
    assert verdict.word == word
    assert "95 of 100 kernels on torch are doubtful" in verdict.why
    assert judge_quickstart({"torch": rows(5, 95)}, [0.06], [floor]).word == NOISY


def test_coarse_labels_are_no_reason_for_doubt() -> None:
    assert judge_quickstart({"quiet": rows(10, 90, status="coarse")}, [0.01]).word == GOOD


def test_the_noisiest_target_is_named_with_its_counts() -> None:
    verdict = judge_quickstart({"onnx": rows(300, 5), "torch": rows(10, 272)}, [0.31])
    assert "272 of 282 kernels on torch" in verdict.why
    assert "31.0 %" in verdict.why
    assert "doctor" in verdict.advice


def test_a_quiet_machine_with_large_errors_needs_more_time() -> None:
    assert "--minutes" in judge_quickstart({"onnx": rows(300, 5)}, [0.31]).advice


def test_the_noise_floor_is_told_and_decides_what_helps() -> None:
    verdict = judge_quickstart({"onnx": rows(300, 5)}, [0.08], [0.021, None, 0.045])
    assert verdict.floor == 0.045
    assert "this machine tells a network within 4.5 %" in verdict.why
    assert "doctor" in verdict.advice
    longer = judge_quickstart({"onnx": rows(300, 5)}, [0.08], [0.02, None])
    assert "--minutes" in longer.advice
    assert judge_quickstart({"onnx": rows(300, 5)}, [0.08], [None]).floor is None
