from dataclasses import replace
from pathlib import Path

import pytest

from opmark.bench.suite.suite import ExactKernel, NetworkSpec, Suite, find_suite, load_suite, suites
from opmark.core.canonical import content_id, plain
from opmark.core.errors import ContentError, UnknownNameError
from opmark.core.kernels.kind import Choice, Range
from opmark.core.shipped import shipped_content

GOOD = """
schema: 1
name: mine
targets: [null-t1]
quality: quick
budget: 10m
kernels: 30
kinds:
  conv: {count: 5, space: {size: {low: 7, high: 56, multiple: 7}, stride: {choice: [1, 2]}}}
  gemm: {}
prior: {networks: [light-alexnet], share: 0.5}
networks:
  training: [light-alexnet]
  held_out: [{model: light-squeezenet, family: squeezenet}]
"""


def write(folder: Path, text: str) -> Path:
    path = folder / "suite.yaml"
    path.write_text(text)
    return path


def test_a_suite_says_what_to_measure(tmp_path: Path) -> None:
    suite = load_suite(write(tmp_path, GOOD))
    assert suite.budget_s == 600
    space = suite.kinds["conv"].space
    assert space["size"].axis == Range(7, 56, 7)
    assert space["stride"].axis == Choice((1, 2))
    assert suite.networks.of("training") == (NetworkSpec(model="light-alexnet"),)
    assert suite.networks.of("held-out") == (NetworkSpec(model="light-squeezenet", family="squeezenet"),)


def test_the_budget_is_no_part_of_what_is_measured(tmp_path: Path) -> None:
    long = load_suite(write(tmp_path, GOOD))
    short = load_suite(write(tmp_path, GOOD.replace("10m", "5m")))
    plain = load_suite(write(tmp_path, GOOD.replace("10m", "600")))
    assert plain.budget_s == long.budget_s
    other = load_suite(write(tmp_path, GOOD.replace("count: 5", "count: 6")))
    assert long.id == short.id != other.id


def test_counts_of_a_target_win_over_those_of_the_suite(tmp_path: Path) -> None:
    suite = load_suite(write(tmp_path, GOOD.replace("targets: [null-t1]", "targets: [null-t1, null-a-t1]")))
    assert suite.counts_on("null-t1") == {"float32": 30}
    counts = "counts: {null-a-t1: {bfloat16: 5}}\nkernels: 30"
    text = GOOD.replace("targets: [null-t1]", "targets: [null-t1, null-a-t1]").replace("kernels: 30", counts)
    other = load_suite(write(tmp_path, text))
    assert other.counts_on("null-t1") == {"float32": 30}
    assert other.counts_on("null-a-t1") == {"bfloat16": 5}
    assert other.id != suite.id
    assert len({suite, other, suite}) == 2


@pytest.mark.parametrize(
    ("before", "after", "said"),
    [
        ("name: mine", "name: mine\ncolour: red", "colour: unknown key"),
        ("kernels: 30", "kernels: many", "kernels"),
        ("kernels: 30", "kernels: -30", "kernels: must not be negative, not -30"),
        ("kernels: 30", "at_least_per_operator: -1", "at_least_per_operator: must not be negative, not -1"),
        ("kernels: 30", "least_moved_bytes: -1", "least_moved_bytes: must be from 0 to 2^40, not -1"),
        ("budget: 10m", "budget: -10m", "budget: '-10m' is not a duration"),
        ("budget: 10m", "budget: 0s", "budget: must be positive"),
        ("budget: 10m", "budget: -600", "budget: must be positive, not -600"),
        ("budget: 10m", "budget: soon", "budget: 'soon' is not a duration"),
        ("count: 5", "count: -5", "kinds.conv.count: must not be negative, not -5"),
        ("conv:", "convolution:", "kinds.convolution: no kind is called 'convolution'"),
        ("size:", "sizes:", "kinds.conv.space.sizes: no axis is called 'sizes' (did you mean 'size'?)"),
        ("low: 7", "low: 77", "low and high must be positive and in order"),
        ("choice: [1, 2]", "choice: [1], low: 3", "exclude each other"),
        ("targets: [null-t1]", "targets: []", "targets: at least one"),
        ("targets: [null-t1]", "targets: [gpu]", "targets.0: 'gpu' is not a target"),
        ("targets: [null-t1]", "targets: [nul-t1]", "targets.0: no backend is called 'nul' (did you mean 'null'?)"),
        ("quality: quick", "quality: slow", "quality: no quality is called 'slow'"),
        ("kernels: 30", "counts: {null-t2: {float32: 3}}", "counts.null-t2: no target of the suite is called"),
        ("kernels: 30", "counts: {null-t1: {float31: 3}}", "counts.null-t1.float31: unknown element type"),
        ("kernels: 30", "counts: {null-t1: {float32: -3}}", "counts.null-t1.float32: must not be negative, not -3"),
        ("kernels: 30", "first: [cov]", "first.0: no kind is called 'cov' (did you mean 'conv'?)"),
        ("share: 0.5", "share: 1.5", "prior.share: must be between 0 and 1"),
        ("training: [light-alexnet]", "training: [light-squeezenet]", "both training and held out"),
        ("networks: [light-alexnet]", "networks: [light-squeezenet]", "prior.networks: 'light-squeezenet' is held out"),
        (
            "networks: [light-alexnet]",
            "networks: [light-squeezenet@int8-static]",
            "prior.networks: 'light-squeezenet' is held out",
        ),
        ("networks: [light-alexnet]", "networks: [light-alexnet@int4]", "no variant of a network is called 'int4'"),
        ("schema: 1", "schema: 2", "newer"),
        ("schema: 1", "", "missing"),
        ("name: mine", "name: [mine", "not YAML"),
    ],
)
def test_what_is_wrong_is_named_with_file_and_key(tmp_path: Path, before: str, after: str, said: str) -> None:
    path = write(tmp_path, GOOD.replace(before, after, 1))
    with pytest.raises(ContentError) as caught:
        load_suite(path)
    assert said in str(caught.value)
    assert str(path) in str(caught.value)


def test_nothing_is_learned_from_held_out_families_where_something_is_measured(tmp_path: Path) -> None:
    told = GOOD.replace("[light-alexnet], share", "[light-alexnet, light-resnet50@int8-static], share")
    told = told.replace("training: [light-alexnet]", "training: [light-densenet121]")
    load_suite(write(tmp_path, told))  # a made-up target has no secrets
    with pytest.raises(ContentError) as caught:
        load_suite(write(tmp_path, told.replace("null-t1", "onnxruntime-cpu-t1")))
    assert "prior.networks: 'light-resnet50' is of the held-out family 'resnet', which nothing is drawn from" in str(
        caught.value
    )
    assert "networks.training: 'light-densenet121' is of the held-out family 'densenet'" in str(caught.value)


def test_every_problem_is_named_at_once(tmp_path: Path) -> None:
    text = GOOD.replace("count: 5", "count: -5").replace("share: 0.5", "share: 7")
    with pytest.raises(ContentError, match=r"prior\.share.*kinds\.conv\.count"):
        load_suite(write(tmp_path, text))


def test_shipped_suites_are_sound_and_found_by_name(tmp_path: Path) -> None:
    found = suites()
    assert {"null", "quick", "small"} <= set(found)
    for name, path in found.items():
        suite: Suite = load_suite(path)
        assert suite.name == name
        assert suite.description.endswith(".")
    assert find_suite("null").parent == shipped_content().suites
    with pytest.raises(UnknownNameError, match="no suite is called 'nul'") as caught:
        find_suite("nul")
    assert caught.value.hint == "did you mean 'null'?"
    mine = write(tmp_path, GOOD)
    assert find_suite(str(mine)) == mine
    mine.rename(tmp_path / "null.yaml")
    assert find_suite("null", tmp_path) == tmp_path / "null.yaml"
    with pytest.raises(ContentError, match="no such file"):
        find_suite(str(tmp_path / "none.yaml"))


def test_exact_kernels_are_named_and_checked(tmp_path: Path) -> None:
    head = "schema: 1\nname: next\ntargets: [null-t1]\nat_least: 0\n"
    text = f"{head}exact:\n- kind: gemm\n  parameters: {{m: 1, k: 8, n: 4}}\n"
    path = tmp_path / "next.yaml"
    path.write_text(text)
    (one,) = load_suite(path).exact
    assert one.kernel.params["bias"] == "row"
    path.write_text(text.replace("gemm", "gem"))
    with pytest.raises(ContentError, match=r"exact\.0\.kind: no kind is called 'gem'"):
        load_suite(path)
    path.write_text(text.replace("n: 4", "n: 4, odd: 1"))
    with pytest.raises(ContentError, match=r"exact\.0\.parameters: not a gemm kernel"):
        load_suite(path)


def test_a_suite_that_uses_nothing_newer_keeps_its_identity() -> None:
    plain_suite = Suite(name="a", targets=("null-t1",))
    one = ExactKernel(kind="gemm", parameters={"m": 1, "k": 8, "n": 4})
    later = {"exact", "judging", "at_least_per_operator", "least_moved_bytes"}
    unnamed = {"budget", "description", "first", "only", *later}
    content = plain(plain_suite)
    del content["networks"]["sealed"]
    before = content_id({name: value for name, value in content.items() if name not in unnamed})
    assert plain_suite.id == before
    assert replace(plain_suite, exact=(one,)).id != before
    assert replace(plain_suite, least_moved_bytes=1).id != before


SEALED = """
schema: 1
name: sealed
targets: [onnxruntime-cpu-t1]
networks: {sealed: [timm-shvit-s1]}
"""


def test_sealed_networks_have_a_role_of_their_own(tmp_path: Path) -> None:
    suite = load_suite(write(tmp_path, SEALED))
    assert suite.networks.of("sealed") == (NetworkSpec(model="timm-shvit-s1"),)
    open_suite = replace(suite, networks=replace(suite.networks, sealed=()))
    assert open_suite.id != suite.id


@pytest.mark.parametrize(
    ("networks", "said"),
    [
        ("{held_out: [timm-shvit-s1]}", "'timm-shvit-s1' is of a sealed family, which nobody looks at"),
        ("{training: [timm-shvit-s1]}", "'timm-shvit-s1' is of a sealed family, which nobody looks at"),
        ("{sealed: [vit-base]}", "networks.sealed: 'vit-base' is used elsewhere, so its seal is broken"),
        ("{sealed: [light-alexnet]}", "networks.sealed: 'light-alexnet' is used elsewhere"),
    ],
)
def test_a_broken_seal_is_refused(tmp_path: Path, networks: str, said: str) -> None:
    with pytest.raises(ContentError) as caught:
        load_suite(write(tmp_path, SEALED.replace("{sealed: [timm-shvit-s1]}", networks)))
    assert said in caught.value.message


def test_nothing_is_drawn_from_a_sealed_network(tmp_path: Path) -> None:
    text = SEALED.replace("networks:", "prior: {networks: [timm-shvit-s1]}\nnetworks:")
    with pytest.raises(ContentError, match="sealed family"):
        load_suite(write(tmp_path, text))


def test_a_suite_knows_its_file_which_is_no_part_of_it(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    suite, copy = load_suite(write(tmp_path, GOOD)), load_suite(write(tmp_path / "elsewhere", GOOD))
    assert (suite.id, hash(suite), suite) == (copy.id, hash(copy), copy)
    assert (suite.where, copy.where) == (str(tmp_path / "suite.yaml"), str(tmp_path / "elsewhere" / "suite.yaml"))
    assert replace(suite, only=("x",)).where == suite.where
    assert Suite(name="mine", targets=("null-t1",)).where == "suite 'mine'"
