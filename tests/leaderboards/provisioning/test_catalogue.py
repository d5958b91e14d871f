from pathlib import Path

import pytest
import yaml

from opmark.core.errors import ContentError, UnknownNameError
from opmark.leaderboards.provisioning.catalogue import catalogue_names, load_catalogue
from opmark.leaderboards.provisioning.fleet import Fleet

LEADERBOARDS = Path("leaderboards")


def written(tmp_path, change):
    content = yaml.safe_load((LEADERBOARDS / "catalogues" / "cloud-gpus.yaml").read_text(encoding="utf-8"))
    change(content)
    path = tmp_path / "offers.yaml"
    path.write_text(yaml.safe_dump(content), encoding="utf-8")
    return path


@pytest.mark.parametrize("name", catalogue_names(LEADERBOARDS))
def test_every_shipped_catalogue_links_every_fleet(name):
    catalogue = load_catalogue(LEADERBOARDS, name)
    fleet = Fleet.of({kind: min(2, offer.available) for kind, offer in catalogue.offers.items()})
    cluster = catalogue.cluster(fleet)
    assert len(cluster.links) == fleet.size * (fleet.size - 1)
    assert catalogue.price_per_hour(fleet) == pytest.approx(sum(one.price_per_hour for one in cluster.devices))


def test_devices_of_other_types_stand_in_other_hosts():
    cluster = load_catalogue(LEADERBOARDS, "cloud-gpus").cluster(Fleet.of({"a100": 2, "t4": 1}))
    ports = {(link.source, link.destination): link.port for link in cluster.links}
    assert ports["a100-0", "a100-1"] == ""
    assert ports["a100-0", "t4-0"] == ports["a100-1", "t4-0"] == "a100/0>"
    assert ports["t4-0", "a100-0"] == "t4/0>"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda c: c["devices"]["t4"]["price"].update(per_hour=0), "devices.t4.price.per_hour: must be positive"),
        (lambda c: c["devices"]["t4"]["price"].update(per_hour=-1), "devices.t4.price.per_hour: must be positive"),
        (lambda c: c["devices"]["t4"]["price"].pop("date"), "devices.t4.price.date: missing"),
        (lambda c: c["devices"]["t4"]["price"].update(source=" "), "devices.t4.price.source: must not be empty"),
        (lambda c: c["devices"]["t4"]["price"].update(currency="EUR"), "one currency"),
        (lambda c: c["devices"]["t4"]["price"].update(per_hour=1e30), "devices.t4.price.per_hour: must be positive"),
        (lambda c: c["devices"]["t4"].update(available=0), "devices.t4.available"),
        (lambda c: c["devices"]["t4"].update(per_host=2**40), "devices.t4.per_host: from 1 to"),
        (lambda c: c["devices"]["t4"].update(device="../secret"), "devices.t4.device: expected at most"),
        (lambda c: c.update(bandwidths="../../elsewhere"), "bandwidths: expected at most"),
        (lambda c: c["links"].pop("same-zone"), "links.same-zone: missing"),
        (lambda c: c["links"].pop("same-host"), "links.same-host: missing"),
        (lambda c: c["devices"]["t4"].update(zone="b"), "links.across-zones: missing"),
        (lambda c: c["links"].update({"same-zone": "carrier-pigeon"}), "carrier-pigeon"),
        (lambda c: c.update(devices={}), "at least one is needed"),
    ],
)
def test_a_wrong_catalogue_is_refused_with_its_file_and_field(tmp_path, change, message):
    path = written(tmp_path, change)
    with pytest.raises(ContentError) as raised:
        load_catalogue(LEADERBOARDS, str(path))
    assert message in raised.value.message
    assert str(path) in str(raised.value)


def test_an_unknown_device_type_is_named_with_its_file_and_field(tmp_path):
    path = written(tmp_path, lambda c: c["devices"]["t4"].update(device="nvidia-t5"))
    with pytest.raises(UnknownNameError, match="no device type is called") as raised:
        load_catalogue(LEADERBOARDS, str(path))
    assert f"{path}: devices.t4.device" in str(raised.value)
    assert raised.value.hint


def test_an_unknown_catalogue_and_a_missing_file_are_named(tmp_path):
    with pytest.raises(UnknownNameError, match="cloud-gpu"):
        load_catalogue(LEADERBOARDS, "cloud-gpu")
    with pytest.raises(ContentError, match="no such file") as raised:
        load_catalogue(LEADERBOARDS, str(tmp_path / "nothing.yaml"))
    assert "nothing.yaml" in str(raised.value)
    assert "cloud-gpus" in raised.value.hint


def test_links_that_many_pairs_lack_are_one_sentence(tmp_path):
    path = written(tmp_path, lambda c: c["links"].pop("same-zone"))
    with pytest.raises(ContentError) as raised:
        load_catalogue(LEADERBOARDS, str(path))
    # four types have six pairs, and three types fill more than one host
    assert raised.value.message.count("links.same-zone") == 1
    assert "nor 8 other pairs" in raised.value.message


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda c: c.update(links={"same-zone": "ethernet-25g"}), "bandwidths: they link all devices"),
        (lambda c: c["devices"]["v100"].update(zone="mars"), "devices.a100: no bandwidth between"),
        (lambda c: c["devices"]["v100"].update(device="nvidia-t4"), "devices.v100: its device type has no layers"),
    ],
)
def test_measured_bandwidths_must_link_every_fleet(tmp_path, change, message):
    content = yaml.safe_load((LEADERBOARDS / "catalogues" / "training-layers.yaml").read_text(encoding="utf-8"))
    change(content)
    path = tmp_path / "offers.yaml"
    path.write_text(yaml.safe_dump(content), encoding="utf-8")
    with pytest.raises(ContentError) as raised:
        load_catalogue(LEADERBOARDS, str(path))
    assert message in raised.value.message
