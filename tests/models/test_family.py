import pytest

from opmark.core.errors import UsageError
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
