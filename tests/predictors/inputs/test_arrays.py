from threadpoolctl import threadpool_info

from opmark.predictors.inputs.arrays import single_thread


def test_linear_algebra_has_one_thread_within_and_its_own_afterwards() -> None:
    import scipy.linalg  # noqa: F401

    def threads() -> list[int]:
        return [library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas"]

    before = threads()
    with single_thread():
        assert set(threads()) == {1}
    assert threads() == before
