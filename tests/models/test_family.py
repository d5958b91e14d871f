from dataclasses import replace

import pytest

from opmark.core.errors import UsageError
from opmark.models.origin import network_code
from opmark.models.zoo import FAMILIES, build, family_of, models


def test_model_names_are_unique_and_families_are_called_like_their_files():
    names = [name for family in FAMILIES for name in family.names]
    assert len(names) == len(set(names)) == len(models())
    assert [family.name for family in FAMILIES] == list(FAMILIES.names())


def test_labels_and_small_models_name_models_of_the_family():
    for family in FAMILIES:
        assert set(family.labels) <= set(family.names)
        assert set(family.small) <= set(family.names)


def test_an_onnx_only_model_has_a_file_and_refuses_to_be_built():
    path = family_of("light-squeezenet").onnx_path("light-squeezenet")
    assert path is not None
    assert path.is_file()
    assert family_of("light-resnet50").label("light-resnet50") == "resnet"
    with pytest.raises(UsageError, match="no torch module"):
        build("light-squeezenet")


def test_an_entry_of_the_table_is_a_family_with_a_summary() -> None:
    entries = [family.entry for family in FAMILIES if family.entry is not None]
    assert len(entries) >= 30
    for entry in entries:
        assert entry.summary.endswith(".")
        assert FAMILIES.load(entry.name).small == (next(iter(entry.models)),)


def test_a_changed_entry_changes_the_code_of_its_own_networks_alone(monkeypatch) -> None:
    before = {model: network_code(model) for model in ("bert-tiny", "gpt2-tiny", "encoder-tiny")}
    bert = FAMILIES.load("bert")
    changed = replace(bert, entry=replace(bert.entry, common={}))
    monkeypatch.setitem(models(), "bert-tiny", changed)
    after = {model: network_code(model) for model in before}
    assert [before[model] == after[model] for model in before] == [False, True, True]
