"""Which release a command about predictors means."""

from pathlib import Path

import click
import pytest
from tests.datasets import sample

from opmark.cli.lookup import evidence_by_target, release_named, targets_named
from opmark.cli.main import cli
from opmark.core.errors import NothingSelectedError, UnknownNameError
from opmark.core.workspace import ROOMS
from opmark.datasets.release.building import build_from


@pytest.fixture
def ctx(tmp_path: Path) -> click.Context:
    for room in ROOMS:
        (tmp_path / room).mkdir()
    return click.Context(cli, obj=tmp_path)


def test_the_only_device_needs_no_name(ctx: click.Context) -> None:
    with pytest.raises(NothingSelectedError, match="there is no release yet"):
        release_named(ctx, None)
    build_from([sample.contents(networks=[])], ctx.obj / "datasets")
    found = release_named(ctx, None)
    assert found.device == release_named(ctx, sample.DEVICE).device == sample.DEVICE
    assert targets_named(found, ()) == [sample.TARGET.name]
    with pytest.raises(UnknownNameError):
        targets_named(found, ("torch-eager-t9",))
    (evidence,) = evidence_by_target(ctx, None, ()).values()
    assert evidence.target.name == sample.TARGET.name
    assert len(evidence.measurements) == len(found.measurements(sample.TARGET.name))
