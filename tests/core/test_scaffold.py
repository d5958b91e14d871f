"""Templates become extensions that the registries load and that do what their room asks of them."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from tests.datasets import sample
from tests.kinds import test_families
from tests.leaderboards.examples import heft_canonical

import opmark.kinds
import opmark.leaderboards.placers
import opmark.predictors.estimators
from opmark.core import registry, scaffold
from opmark.core.errors import UnavailableError, UnknownNameError, UsageError
from opmark.core.registry import Registry
from opmark.core.scaffold import PLACES, render, write_extension
from opmark.core.schema import load
from opmark.kinds import KINDS
from opmark.leaderboards.problem.placement import placement_of
from opmark.leaderboards.scoring.track import SCHEMA, Rules, load_track
from opmark.leaderboards.search.placer import PLACERS
from opmark.leaderboards.simulator.simulate import simulate
from opmark.predictors.estimators import ESTIMATORS
from opmark.predictors.inputs.features import features
from opmark.predictors.inputs.tables import Latencies

NAME = "my-first-try"
CODE = {what: place for what, place in PLACES.items() if place.package}
PACKAGES = {
    "kind": opmark.kinds,
    "placer": opmark.leaderboards.placers,
    "estimator": opmark.predictors.estimators,
}


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Every template written into a folder that its package also looks in."""
    for what, package in PACKAGES.items():
        write_extension(what, NAME, output=tmp_path / what / "my_first_try.py")
        monkeypatch.setattr(package, "__path__", [*package.__path__, str(tmp_path / what)])
    registry._module_names.cache_clear()
    yield
    registry._module_names.cache_clear()
    for package in PACKAGES.values():
        sys.modules.pop(f"{package.__name__}.my_first_try", None)


@pytest.mark.usefixtures("installed")
@pytest.mark.parametrize("found", [KINDS, PLACERS, ESTIMATORS], ids=lambda item: item.noun)
def test_registries_find_the_files(found: Registry[object]) -> None:
    assert NAME in found.names()
    assert type(found.load(NAME)).__name__.startswith("MyFirstTry")


@pytest.mark.usefixtures("installed")
def test_the_kind_keeps_every_promise_of_a_kind() -> None:
    opmark.kinds._by_operator.cache_clear()
    test_families.test_a_drawn_kernel_is_whole(NAME)
    test_families.test_a_relative_is_a_kernel_of_the_same_family(NAME)
    test_families.test_features_have_the_same_names_for_every_kernel(NAME)
    test_families.test_onnx_runtime_runs_what_is_drawn(NAME)
    opmark.kinds._by_operator.cache_clear()


@pytest.mark.usefixtures("installed")
def test_the_placer_places_the_same_way_twice() -> None:
    problem = heft_canonical()
    placer = PLACERS.load(NAME)
    first, again = (placer.place(problem, budget_s=60.0, seed=3) for _ in range(2))
    assert first == again
    assert simulate(problem, placement_of(problem, first)).cost_ns > 0
    assert placer.summary
    hurried = placer.place(problem, budget_s=0.0, seed=3)
    placement_of(problem, hurried)


@pytest.mark.usefixtures("installed")
def test_the_estimator_predicts_and_comes_back_from_its_files() -> None:
    kernels = sample.kernels(20)
    inputs = features(kernels)
    measured = [sample.measurement(kernel) for kernel in kernels]
    labels = Latencies(
        hot_ns=np.array([item.latency_hot_ns for item in measured]),
        rotated_ns=np.array([item.latency_rotated_ns for item in measured]),
    )
    estimator = ESTIMATORS.load(NAME)
    fitted = estimator.fit(inputs, labels)
    predicted = fitted.predict(inputs)
    assert (predicted.hot_ns > 0).all()
    restored = estimator.restore(fitted.files()).predict(inputs)
    assert (restored.hot_ns == predicted.hot_ns).all()
    assert (restored.rotated_ns == predicted.rotated_ns).all()


def test_a_track_is_one_that_loads(tmp_path: Path) -> None:
    path = write_extension("track", "branchy", leaderboards=tmp_path)
    assert path == tmp_path / "branchy" / "track.yaml"
    assert load(path, Rules, schema=SCHEMA).title == "Branchy"
    assert load_track(tmp_path, "branchy").name == "branchy"


@pytest.mark.parametrize("what", CODE)
def test_templates_keep_the_house_style(what: str, tmp_path: Path) -> None:
    ruff = pytest.importorskip("ruff")
    root = Path(__file__).resolve().parents[2]
    command = [sys.executable, "-m", ruff.__name__]
    name = f"{CODE[what].package}/my_first_try.py"
    for arguments in (["check"], ["format", "--check"]):
        finished = subprocess.run(
            [*command, *arguments, "--stdin-filename", name, "-"],
            input=render(what, NAME),
            capture_output=True,
            text=True,
            cwd=root,
            check=False,
        )
        assert finished.returncode == 0, finished.stdout + finished.stderr


def test_a_long_name_still_fits_the_template() -> None:
    text = render("placer", "a-name-of-five-words")
    assert "class ANameOfFiveWords(Placer):" in text
    assert "{{" not in text


@pytest.mark.parametrize("name", ["Upper", "under_score", "9lives", "a--b", "", "class", "../evil"])
def test_a_bad_name_is_refused(name: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="cannot be a name"):
        write_extension("kind", name, output=tmp_path / "file.py")
    assert not list(tmp_path.iterdir())


def test_nothing_is_overwritten(tmp_path: Path) -> None:
    path = tmp_path / "kept.py"
    path.write_text("mine")
    with pytest.raises(UsageError, match="the file exists already"):
        write_extension("kind", "kept", output=path)
    assert path.read_text() == "mine"
    with pytest.raises(UsageError, match="the file exists already"):
        write_extension("kind", "conv")


def test_what_cannot_be_made_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(UnknownNameError, match="no extension point is called 'placers'"):
        write_extension("placers", "x")
    with pytest.raises(UsageError, match="a track needs a workspace"):
        write_extension("track", "x")
    monkeypatch.setattr(scaffold, "checkout", lambda: None)
    with pytest.raises(UnavailableError, match="installed copy"):
        write_extension("kind", "x")
