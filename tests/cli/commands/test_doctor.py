"""`opmark doctor` and `opmark devices show`."""

import json

from click.testing import CliRunner

from opmark.cli.main import cli


def test_doctor_says_what_works_and_what_to_do() -> None:
    result = CliRunner().invoke(cli, ["doctor", "--watch", "100ms"])
    assert result.exit_code == 0, result.stderr
    for word in ("caches:", "GPU:", "SCHED_FIFO", "null-t1", "noise:"):
        assert word in result.stdout


def test_doctor_as_json() -> None:
    result = CliRunner().invoke(cli, ["doctor", "--watch", "50ms", "--json"])
    found = json.loads(result.stdout)
    assert set(found) == {"device", "environment", "gpus", "runtimes", "extras", "noise", "advice"}
    assert {part["name"] for part in found["runtimes"]} >= {"null", "onnxruntime"}


def test_a_negative_watch_is_a_usage_error() -> None:
    assert CliRunner().invoke(cli, ["doctor", "--watch", "-5"]).exit_code == 2


def test_devices_show() -> None:
    result = CliRunner().invoke(cli, ["devices", "show"])
    assert result.exit_code == 0, result.stderr
    assert "last_level_bytes" in result.stdout
    found = json.loads(CliRunner().invoke(cli, ["devices", "show", "--json"]).stdout)
    assert set(found) == {"device", "environment", "gpus"}
    assert found["device"] == found["environment"]["device"]
