"""A quickstart says in one line whether its numbers may be trusted."""

from types import SimpleNamespace

import pytest

from opmark.studies.quickstart.judgement import FAIR, GOOD, NOISY, WRONG, judge_quickstart


def rows(ok: int, low: int, failed: int = 0) -> list[SimpleNamespace]:
    return [SimpleNamespace(status=name) for name in ["ok"] * ok + ["low_quality"] * low + ["failed"] * failed]


@pytest.mark.parametrize(
    ("low", "error", "word"),
    [
        (0, 0.05, GOOD),
        (10, 0.1, GOOD),
        (11, 0.05, FAIR),
        (0, 0.11, FAIR),
        (50, 0.25, FAIR),
        (0, 0.31, WRONG),
        (51, 0.01, NOISY),
        (96, 0.31, NOISY),
    ],
)
def test_noise_and_error_decide(low: int, error: float, word: str) -> None:
    verdict = judge_quickstart({"quiet": rows(100, 0), "noisy": rows(100 - low, low, failed=9)}, [error] * 3)
    assert verdict.word == word
    assert bool(verdict.advice) == (word != GOOD)
    assert verdict.sentence.startswith(f"Verdict: {word}. ")
    assert "\n" not in verdict.sentence


def test_the_noisiest_target_is_named_with_its_counts() -> None:
    verdict = judge_quickstart({"onnx": rows(300, 5), "torch": rows(10, 272)}, [0.31])
    assert "272 of 282 kernels on torch" in verdict.why
    assert "31 %" in verdict.why
    assert "doctor" in verdict.advice


def test_a_quiet_machine_with_large_errors_needs_more_time() -> None:
    assert "--minutes" in judge_quickstart({"onnx": rows(300, 5)}, [0.31]).advice
