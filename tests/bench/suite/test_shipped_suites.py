"""What the suites of released datasets promise, as far as it can be told without a capture."""

import random
from collections import Counter

import pytest

from opmark.bench.suite.plan import plan
from opmark.bench.suite.suite import NetworkSpec, Suite, find_suite, load_suite, specs, suites
from opmark.core.kernels.kind import Setting
from opmark.core.shipped import shipped_content
from opmark.kinds import KINDS
from opmark.models.source import VARIANTS, source_of, split_variant
from opmark.models.zoo import family_of, held_out, models

FULL = load_suite(find_suite("full"))
GPU = load_suite(find_suite("full-gpu"))
LINEARS = load_suite(find_suite("linears-bf16"))


def base(spec: NetworkSpec) -> str:
    return split_variant(spec.model)[0]


def rows(suite_target: str) -> list[NetworkSpec]:
    """The whole networks of the full suite on one target."""
    language = "onnx" if suite_target.startswith("onnx") else "aten"
    named = [spec for role in ("training", "held-out") for spec in FULL.networks.of(role)]
    return [
        spec
        for spec in named
        if (suite_target in spec.targets if spec.targets else source_of(spec.model).language == language)
    ]


@pytest.mark.parametrize("suite", [FULL, GPU], ids=["full", "full-gpu"])
def test_nothing_is_learned_from_a_held_out_family(suite: Suite) -> None:
    learned = [*specs(suite.prior.networks), *suite.networks.of("training")]
    assert not {spec.model for spec in learned if held_out(base(spec))}
    assert all(held_out(base(spec)) for spec in suite.networks.of("held-out"))
    assert not {spec for spec in suite.prior.networks if isinstance(spec, NetworkSpec) and spec.family}


def test_the_full_suite_asks_for_what_a_release_promises() -> None:
    onnx, torch = (FULL.counts_on(target) for target in FULL.targets)
    # Kernels that judge count too: nearly all of them are in 32 bits.
    assert onnx["float32"] + FULL.judging["onnxruntime-cpu-t1"] >= 6_500
    assert onnx["int8"] >= 1_500
    assert sum(torch.values()) + FULL.judging["torch-eager-t1"] >= 4_000
    assert set(FULL.counts_on("torch-eager-t1")) == {"float32", "bfloat16"}
    assert FULL.at_least >= 60
    assert FULL.at_least_per_operator >= 20


def test_the_full_suite_measures_enough_networks_of_enough_families() -> None:
    measured = [spec for target in FULL.targets for spec in rows(target)]
    assert len(measured) >= 150
    assert len({source_of(spec.model).family for spec in measured}) >= 35
    assert {spec.dimensions.get("batch") for spec in measured} >= {1, 8}
    assert {split_variant(spec.model)[1] for spec in measured} == {"", *VARIANTS}
    sizes: dict[str, set[int]] = {}
    for spec in measured:
        if "size" in spec.dimensions:
            sizes.setdefault(base(spec), set()).add(spec.dimensions["size"])
    assert sum(len(found) >= 2 for found in sizes.values()) >= 35
    repeated = Counter(
        (target, spec.model, tuple(sorted(spec.dimensions.items()))) for target in FULL.targets for spec in rows(target)
    )
    assert max(repeated.values()) == 1
    # A training step's kernels are drawn only where a network has one.
    assert sum("training" in spec.model for spec in specs(FULL.prior.networks)) >= 10


def test_the_suite_of_a_gpu_has_the_dense_kinds_first_and_forty_networks() -> None:
    assert sum(GPU.counts_on("torch-cuda-t1").values()) >= 4_000
    assert set(GPU.first) <= set(GPU.kinds)
    assert len([*GPU.networks.of("training"), *GPU.networks.of("held-out")]) >= 40
    assert all(family_of(base(spec)) for spec in specs(GPU.prior.networks))
    assert all(
        source_of(spec.model).language == "aten" for role in ("training", "held-out") for spec in GPU.networks.of(role)
    )


def test_two_hundred_linears_are_within_published_sizes() -> None:
    sizes = {tuple(one.kernel.params[name] for name in ("m", "n", "k")) for one in LINEARS.exact}
    assert len(LINEARS.exact) == len(sizes) == 200
    assert {one.kernel.params["dtype"] for one in LINEARS.exact} == {"bfloat16"}
    assert max(max(size) for size in sizes) <= 16_384  # type: ignore[type-var]
    assert {one.kind for one in LINEARS.exact} == {"gemm"}


def test_a_suite_of_a_gpu_is_planned_without_one() -> None:
    planned = plan(LINEARS, elsewhere=True)
    assert len(planned.kernels) == 200
    assert {trial.target for trial in planned.kernels} == {"torch-cuda-t1"}


@pytest.mark.parametrize(("name", "target"), [("sealed", "torch-eager-t1"), ("sealed-onnx", "onnxruntime-cpu-t1")])
def test_the_sealed_suites_measure_every_sealed_family_and_no_kernel(name: str, target: str) -> None:
    suite = load_suite(find_suite(name))
    sealed = {model for model, family in models().items() if family.sealed}
    assert {spec.model for spec in suite.networks.of("sealed")} == sealed
    assert not suite.networks.of("training")
    assert not suite.networks.of("held-out")
    assert not any(suite.counts_on(target).values())
    assert suite.targets == (target,)


def test_no_other_suite_names_a_sealed_network() -> None:
    sealed = {model for model, family in models().items() if family.sealed}
    others = [path for path in shipped_content().suites.glob("*.yaml") if not path.stem.startswith("sealed")]
    assert len(others) >= 8
    assert not {path.stem for path in others if any(model in path.read_text() for model in sealed)}


def spaces() -> list[tuple[str, str]]:
    """The suites and kinds whose axes are not those of the kind."""
    loaded = {name: load_suite(path) for name, path in suites(None).items()}
    return [(name, kind) for name, suite in loaded.items() for kind, spec in suite.kinds.items() if spec.space]


@pytest.mark.parametrize(("name", "kind_name"), spaces())
def test_a_suite_draws_kernels_that_runtimes_know(name: str, kind_name: str) -> None:
    suite, kind = load_suite(find_suite(name)), KINDS.load(kind_name)
    axes = {**kind.space, **{axis: one.axis for axis, one in suite.kinds[kind_name].space.items()}}
    source = random.Random(kind_name)
    drawn = Counter[str]()
    for language in sorted(kind.languages):
        for _ in range(300):
            p = kind.draw({axis: one.at(source.random()) for axis, one in axes.items()}, Setting(language=language))
            if p is None:
                continue
            node = kind.to_onnx(p) if language == "onnx" else kind.to_aten(p)
            if node is None:
                continue
            read = kind.from_onnx(node) if language == "onnx" else kind.from_aten(node)
            assert read is not None
            assert kind.parse(kind.kernel(kind.vary(p, 1, 1))) == p
            drawn[language] += 1
    assert drawn
    assert min(drawn.values()) >= 20


@pytest.mark.parametrize("name", ["broad", "dense"])
def test_further_suites_draw_no_kernel_of_a_held_out_network(name: str) -> None:
    suite = load_suite(find_suite(name))
    assert not {spec.model for spec in specs(suite.prior.networks) if held_out(base(spec))}
    assert {spec.model for spec in FULL.networks.of("held-out")} <= {spec.model for spec in specs(suite.exclude)}


def test_the_dense_suite_also_leaves_out_what_judges_in_full_sizes() -> None:
    excluded = {spec.model for spec in specs(load_suite(find_suite("dense")).exclude)}
    judging = load_suite(find_suite("full-size")).networks.of("held-out")
    assert {spec.model for spec in judging} <= excluded


def test_the_broad_suite_has_what_no_network_of_the_full_one_has() -> None:
    norm, attention, gather = (KINDS.load(name) for name in ("norm", "attention", "gather"))
    onnx, aten = Setting(language="onnx"), Setting(language="aten")
    values = {axis: one.at(0.0) for axis, one in norm.space.items()}
    tokens = norm.draw(values | {"op": "batch", "size": 1, "length": 196, "channels": 256}, onnx)
    assert tokens is not None
    assert tokens.shape == (196, 256)
    values = {axis: one.at(0.0) for axis, one in attention.space.items()}
    reduced = attention.draw(values | {"queries": "many", "length": 1600}, aten)
    assert reduced is not None
    assert (reduced.query_length, reduced.key_length) == (1600, 100)
    bias = gather.draw({axis: one.at(0.0) for axis, one in gather.space.items()} | {"op": "position-bias"}, aten)
    assert bias is not None
    assert len(bias.indices) == 2
    assert bias.axis == 1
