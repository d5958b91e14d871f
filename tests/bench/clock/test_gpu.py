"""What nvidia-smi says of a card, as facts."""

import subprocess

import pytest

from opmark.bench.clock import gpu as cards
from opmark.bench.clock.gpu import card_facts, card_slug, parse_card

H200 = "NVIDIA H200, 570.86.15, 143771, 1980, 3201, [Deprecated], 700.00, Enabled, Disabled, Enabled, Default\n"


@pytest.fixture(autouse=True)
def _ask_again():
    card_facts.cache_clear()
    yield
    card_facts.cache_clear()


def test_facts_of_a_card():
    assert parse_card(H200) == {
        "gpu": "NVIDIA H200",
        "driver": "570.86.15",
        "memory_mib": 143771,
        "most_sm_mhz": 1980,
        "most_memory_mhz": 3201,
        "application_sm_mhz": None,
        "power_limit_w": 700.0,
        "ecc": True,
        "mig": False,
        "persistence": True,
        "compute_mode": "Default",
    }


def test_a_card_without_ecc_and_mig():
    found = parse_card(
        "NVIDIA GeForce RTX 4090, 550.1, 24564, 3105, 10501, [N/A], 450.00, [N/A], [N/A], Disabled, Default"
    )
    assert found["ecc"] is None
    assert found["mig"] is None
    assert found["persistence"] is False


@pytest.mark.parametrize("text", ["", "No devices were found", "a, b"])
def test_anything_else_gives_no_facts(text: str):
    assert parse_card(text) == {}


@pytest.mark.parametrize(
    ("name", "slug"),
    [
        ("NVIDIA H200", "nvidia-h200"),
        ("NVIDIA GeForce RTX 4090", "nvidia-geforce-rtx-4090"),
        ("Tesla T4", "nvidia-tesla-t4"),
        ("NVIDIA A100-SXM4-80GB MIG 1g.10gb", "nvidia-a100-sxm4-80gb-mig-1g-10gb"),
    ],
)
def test_a_slug_is_the_gpus_name(name: str, slug: str):
    assert card_slug(name) == slug


def test_the_tool_is_only_asked_never_told(monkeypatch: pytest.MonkeyPatch):
    asked: list[tuple[str, ...]] = []

    def run(command: tuple[str, ...], **_: object) -> subprocess.CompletedProcess[str]:
        asked.append(command)
        return subprocess.CompletedProcess(command, 0, stdout=H200)

    monkeypatch.setattr(cards.shutil, "which", lambda _: "/usr/bin/nvidia-smi")
    monkeypatch.setattr(cards.subprocess, "run", run)
    assert card_facts()["gpu"] == "NVIDIA H200"
    assert asked[0][1].startswith("--query-gpu=")
    assert set(asked[0][2:]) == {"--format=csv,noheader,nounits", "--id=0"}


def test_without_the_tool_or_when_it_fails_there_are_no_facts(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(cards.shutil, "which", lambda _: None)
    assert card_facts() == {}
    card_facts.cache_clear()

    def fail(*_: object, **__: object) -> None:
        raise subprocess.CalledProcessError(9, "nvidia-smi")

    monkeypatch.setattr(cards.shutil, "which", lambda _: "/usr/bin/nvidia-smi")
    monkeypatch.setattr(cards.subprocess, "run", fail)
    assert card_facts() == {}
