"""Layer profiles: the model of a plan, interpolation, the published profile, the derived vocabulary product."""

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from opmark.core.errors import ContentError, UsageError
from opmark.core.shipped import shipped_content
from opmark.leaderboards.plans.layer_times import LayerProfiles

PUBLISHED = shipped_content().leaderboards / "layers" / "sailor"


def shipped() -> LayerProfiles:
    return LayerProfiles(PUBLISHED / "profiles", PUBLISHED)


MODEL: dict[str, Any] = {
    "name": "M",
    "layers": 2,
    "hidden_size": 4,
    "sequence_length": 4,
    "vocabulary": 9,
    "tied_embedding": False,
    "head_in_profile": True,
    "memory": {"1": [[1, 1, 1], [1, 1, 1]]},
}


def profile_file(folder: Path, model: str, gpu: str, table: Any) -> Path:
    path = folder / model / f"{gpu}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(table))
    return path


def layers(count: int, forward_s: float = 1.0) -> dict[str, list[float]]:
    return {str(number): [forward_s, 2.0, 0.5] for number in range(count)}


def test_models_by_their_layers() -> None:
    profiles = shipped()
    for name, count in (("OPT-350", 26), ("GPT-Neo-2.7", 34), ("LLAMA-3-8", 35), ("OPT-30", 50)):
        assert profiles.model_of("", count, ["GH-96"], "plan").name == name
        assert profiles.profile(profiles.models[name], "GH-96").layers == count
    with pytest.raises(ContentError, match="no model has 33 layers: some are missing"):
        profiles.model_of("", 33, ["GH-96"], "plan")
    with pytest.raises(ContentError, match=r"26 layers, but GPT-Neo-2.7 has 34"):
        profiles.model_of("GPT-Neo-2.7", 26, ["GH-96"], "plan")
    with pytest.raises(UsageError, match="opt-351"):
        profiles.model_of("opt-351", 26, ["GH-96"], "plan")


def test_micro_batches_between_measured_ones(tmp_path: Path) -> None:
    profile_file(tmp_path, "OPT-350", "X", {"2": {"1": layers(26, 1.0)}, "4": {"1": layers(26, 3.0)}})
    profiles = LayerProfiles(tmp_path, PUBLISHED)
    found = profiles.profile(profiles.models["OPT-350"], "X")
    assert found.times(3, 1)[0].forward_s == pytest.approx(2.0)
    assert found.nearest_times(8, 1)[0].forward_s == pytest.approx(6.0)
    with pytest.raises(ContentError, match="a micro-batch of 8 was not measured, only 2 to 4"):
        found.times(8, 1)
    with pytest.raises(ContentError, match="tensor parallelism 2 was not measured"):
        found.times(2, 2)
    with pytest.raises(ContentError, match="no profile of Y"):
        profiles.profile(profiles.models["OPT-350"], "Y")


def test_a_file_of_another_model_yields_to_the_published_one(tmp_path: Path) -> None:
    path = profile_file(tmp_path, "GPT-Neo-2.7", "GH-96", {"4": {"4": layers(26)}})
    profiles = LayerProfiles(tmp_path, PUBLISHED)
    model = profiles.model_of("", 34, ["GH-96"], "plan")
    assert profiles.profile(model, "GH-96").layers == 34
    assert str(path) in profiles.notes[0]
    profile_file(tmp_path, "GPT-Neo-2.7", "new", {"4": {"4": layers(26)}})
    with pytest.raises(ContentError, match=r"26 layers, but GPT-Neo-2.7 has 34"):
        LayerProfiles(tmp_path, PUBLISHED).profile(model, "new")


def test_the_vocabulary_product_is_derived_by_equal_work() -> None:
    profiles = shipped()
    model, donor = profiles.models["GPT-Neo-2.7"], profiles.models["OPT-350"]
    plain = profiles.profile(model, "GH-96").times(4, 4)
    derived = profiles.layer_times(model, "GH-96", 4, 4)
    # 2560 / 1024 as much work per token: as the donor with 10 sequences
    head = profiles.profile(donor, "GH-96").times(10, 4)[-1]
    assert derived[-1].forward_s == pytest.approx(plain[-1].forward_s + head.forward_s)
    assert derived[:-1] == plain[:-1]
    assert profiles.layer_times(donor, "GH-96", 4, 4) == profiles.profile(donor, "GH-96").times(4, 4)


@pytest.mark.parametrize(
    ("table", "fault"),
    [
        ({}, "holds no times"),
        ({"2": {"1": {"0": [1, 2, 3], "2": [1, 2, 3]}}}, "not all there"),
        ({"2": {"1": {"0": [1, -2, 3]}}}, "negative"),
        ({"2": {"1": {"0": [1, 2]}}}, "times.2.1.0"),
        ({"2": {"1": layers(2), "2": layers(3)}}, "2 and 3 layers"),
        ([], "times"),
    ],
)
def test_broken_profiles(tmp_path: Path, table: Any, fault: str) -> None:
    profile_file(tmp_path, "OPT-350", "X", table)
    profiles = LayerProfiles(tmp_path, PUBLISHED)
    with pytest.raises(ContentError, match=fault):
        profiles.profile(profiles.models["OPT-350"], "X")


def test_a_folder_without_profiles(tmp_path: Path) -> None:
    with pytest.raises(ContentError, match="holds no profile"):
        LayerProfiles(tmp_path, PUBLISHED)


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"memory": {}}, "memory: the rows of tensor parallelism 1 are missing"),
        ({"memory": {"one": []}}, "memory.one"),
        ({"memory": {"1": [[1, 1, 1]]}}, "memory.1: a row of three counts is needed for each of 2 layers"),
        ({"memory": {"1": [[1, 1, 1], [1, -1, 1]]}}, "memory.1: a row of three counts"),
        ({"layers": 0}, "layers: must be from 1 to"),
        ({"vocabulary": 2**62}, "vocabulary: must be from 1 to"),
    ],
)
def test_a_wrong_model_is_refused(tmp_path: Path, change: dict[str, Any], sentence: str) -> None:
    profile_file(tmp_path / "profiles", "M", "X", {"1": {"1": layers(2)}})
    for content in (MODEL, MODEL | change):
        with gzip.open(tmp_path / "models.json.gz", "wt") as file:
            json.dump([content], file)
        profiles = LayerProfiles(tmp_path / "profiles", tmp_path)
        if content is MODEL:
            assert profiles.models["M"].rows(2)[0] == (0.5, 0.5, 1)
            continue
        with pytest.raises(ContentError, match=r"models\.json\.gz: ") as refused:
            profiles.models  # noqa: B018
        assert sentence in str(refused.value)
