"""Building and loading: byte-identical, immutable, whole or absent, and refused where anything is off."""

import errno
import itertools
import json
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.datasets import sample
from tests.datasets.journals import write_journal
from tests.datasets.tampering import change_manifest, fit_manifest, set_value
from tests.sealing import unsealed

from opmark.core.errors import ContentError, NothingSelectedError, OpMarkError, UnknownNameError, UsageError
from opmark.core.files import sha256
from opmark.core.measurements.measurement import QUANTILES, Measurement
from opmark.datasets.format.manifest import FILE
from opmark.datasets.release.building import build, build_from, merge
from opmark.datasets.release.release import Release, load


@pytest.fixture
def release(tmp_path: Path) -> Release:
    return build_from([sample.contents()], tmp_path / "datasets")


def checksums(folder: Path) -> dict[str, str]:
    return {path.name: sha256(path) for path in folder.iterdir()}


def test_a_release_holds_what_was_measured(release: Release) -> None:
    assert release.path.name == release.version == "1.0.0"
    assert release.path.parent.name == release.device == sample.DEVICE
    assert release.targets == (sample.TARGET,)
    assert len(release.kernels) == 42
    assert len(release.networks) == 1
    expected = sorted(item.key for item in sample.kernels(42))
    assert sorted(item.kernel.key for item in release.measurements(sample.TARGET.name)) == expected
    assert release.network_measurements(sample.TARGET.name)[0].latency_ns == 1.5e6
    files = {"manifest.json", "kernels.parquet", "networks.parquet", "README.md", "croissant.json"}
    assert set(checksums(release.path)) == files
    assert release.manifest.licence == "CC-BY-4.0"
    with pytest.raises(UnknownNameError, match="no target of"):
        release.measurements("onnxruntime-cpu-t2")


def test_tables_have_the_types_pandas_users_expect(release: Release) -> None:
    assert release.kernels["latency_hot_ns"].dtype == "float64"
    assert release.kernels["flops"].dtype == "int64"
    failed = release.kernels[release.kernels["status"] == "failed"]
    assert failed["latency_hot_ns"].isna().all()
    assert all(len(quantiles) == 21 for quantiles in release.kernels["hot_quantiles_ns"].head(3))


@given(st.permutations(range(40)), st.lists(st.integers(0, 40), min_size=2, max_size=2))
@settings(deadline=None, max_examples=6)
def test_the_same_rows_give_the_same_bytes(
    tmp_path_factory: pytest.TempPathFactory, order: list[int], cuts: list[int]
) -> None:
    trials = [sample.measurement(kernel) for kernel in sample.kernels(40)]
    low, high = sorted(cuts)
    whole = [sample.contents(trials, name="a"), sample.contents(trials[:9], [], name="b")]
    shuffled = [trials[index] for index in order]
    parts = [sample.contents(part, name=name) for part, name in ((shuffled[:low], "a"), (shuffled[low:high], "a"))]
    parts.append(sample.contents([*shuffled[high:], *shuffled[:5]], name="b"))
    same_sources = [replace(part, sources=()) for part in parts]
    one = build_from([replace(part, sources=()) for part in whole], tmp_path_factory.mktemp("one"))
    two = build_from(same_sources, tmp_path_factory.mktemp("two"))
    assert checksums(one.path) == checksums(two.path)
    assert one.id == two.id


def test_journals_in_any_order_give_the_same_bytes(tmp_path: Path) -> None:
    kernels = sample.kernels(12)
    journals = [
        write_journal(tmp_path / f"{name}.jsonl", part, noted={"load": load_average}, slower=1 + load_average / 100)
        for name, part, load_average in (("a", kernels[:5], 0.1), ("b", kernels[4:9], 0.7), ("c", kernels[9:], 0.4))
    ]
    built = [
        build(order, tmp_path / f"datasets{number}", version="1.0.0")
        for number, order in enumerate(itertools.permutations(journals))
    ]
    assert len({json.dumps(checksums(release.path), sort_keys=True) for release in built}) == 1
    first = built[0]
    assert len(first.kernels) == 12
    assert first.manifest.entry("kernel_repeats.parquet") is not None
    sources = {source.name: source for source in first.manifest.sources}
    assert set(sources) == {"a.jsonl", "b.jsonl", "c.jsonl"}
    assert sources["a.jsonl"].sentinels_ns == {f"{sample.TARGET.name}/compute": 1000.0}


def test_repeats_keep_the_best_trial_and_lose_none(tmp_path: Path) -> None:
    kernel = sample.kernels(1)[0]
    trials = [
        sample.measurement(kernel, status="low_quality", reason="noisy", latency_hot_ns=1e4, samples=90),
        sample.measurement(kernel, latency_hot_ns=1.1e4, samples=60),
        sample.measurement(kernel, latency_hot_ns=1.2e4, samples=75),
        sample.without_latency(kernel),
    ]
    release = build_from([sample.contents([trial], []) for trial in trials], tmp_path)
    assert release.kernels["samples"].tolist() == [75]
    repeats = release.tables["kernel_repeats"].to_pylist()
    assert sorted(row["samples"] for row in repeats) == [0, 60, 90]
    retest = release.manifest.statistics[sample.TARGET.name]["retest"]
    assert retest["rows"] == 2, "every repeat with a latency counts, whatever its status"
    assert retest["median"] == pytest.approx(((1 - 1.1 / 1.2) + (1 - 1 / 1.2)) / 2)


def test_networks_measured_again_come_in_pairs(tmp_path: Path) -> None:
    trials = [
        sample.network(samples=30),
        sample.network(latency_ns=1.6e6),
        sample.network(status="failed", reason="the worker crashed", latency_ns=None, quantiles_ns=(), samples=0),
        sample.network(batch=8, latency_ns=2e6),
    ]
    release = build_from([sample.contents([], [trial]) for trial in trials], tmp_path)
    ((trial, again),) = release.network_retests(sample.TARGET.name)
    assert (trial.latency_ns, again.latency_ns) == (1.5e6, 1.6e6)
    with pytest.raises(UnknownNameError, match="no target of"):
        release.network_retests("onnxruntime-cpu-t2")


def test_versions_count_up_and_none_is_overwritten(tmp_path: Path, release: Release) -> None:
    before = checksums(release.path)
    folder = tmp_path / "datasets"
    with pytest.raises(UsageError, match="exists already") as refused:
        build_from([sample.contents()], folder, version="1.0.0")
    assert refused.value.hint == "build --version 1.1.0"
    assert checksums(release.path) == before
    assert build_from([sample.contents()], folder).version == "1.1.0"
    assert build_from([sample.contents()], folder, version="2.0.0").version == "2.0.0"
    assert build_from([sample.contents()], folder).version == "2.1.0"
    with pytest.raises(UsageError, match="'latest' is not a version"):
        build_from([sample.contents()], folder, version="latest")


def test_a_version_that_was_released_elsewhere_is_not_written(tmp_path: Path, release: Release) -> None:
    folder = tmp_path / "datasets"
    place = f"{release.device}/3.0.0/{FILE}"
    (folder / "SHA256SUMS").write_text(f"{'0' * 64}  {place}\n", encoding="utf-8")
    with pytest.raises(UsageError, match=r"3\.0\.0 was released before") as refused:
        build_from([sample.contents()], folder, version="3.0.0")
    assert refused.value.where.endswith("SHA256SUMS")
    assert not (folder / place).parent.exists()


def test_parts_of_different_machines_are_refused_by_fact(tmp_path: Path) -> None:
    other = replace(sample.ENVIRONMENT, checked={**sample.ENVIRONMENT.checked, "cpu": "Other"})
    with pytest.raises(ContentError, match=r"b: the environment differs from that of a: cpu is 'Other', not 'Acme'"):
        build_from([sample.contents(name="a"), sample.contents(name="b", environment=other)], tmp_path / "d")
    elsewhere = replace(sample.ENVIRONMENT, device="other")
    with pytest.raises(ContentError, match="measured on 'other'"):
        build_from([sample.contents(), sample.contents(environment=elsewhere)], tmp_path / "d")
    newer = replace(sample.TARGET, version="1.32")
    with pytest.raises(ContentError, match=r"version is '1\.32', not '1\.31'"):
        build_from([sample.contents(), sample.contents(target=newer)], tmp_path / "d")
    assert not (tmp_path / "d").exists()


def test_facts_of_a_runtime_measured_on_one_side_only_are_no_conflict(tmp_path: Path) -> None:
    checked = {name: value for name, value in sample.ENVIRONMENT.checked.items() if "." not in name}
    torch = replace(sample.ENVIRONMENT, checked={**checked, "torch-eager.version": "2.13"})
    target = replace(sample.TARGET, backend="torch-eager", provider="")
    parts = [sample.contents(), sample.contents(environment=torch, target=target)]
    release = build_from(parts, tmp_path)
    assert {item.name for item in release.targets} == {"onnxruntime-cpu-t1", "torch-eager-t1"}
    assert len(release.kernels) == 84


def test_nothing_to_build_is_said(tmp_path: Path) -> None:
    with pytest.raises(NothingSelectedError):
        build_from([], tmp_path)
    with pytest.raises(NothingSelectedError, match="nothing was measured"):
        build_from([sample.contents([], [])], tmp_path)


@pytest.mark.parametrize("value", [float("nan"), float("inf"), -5.0])
def test_a_bad_number_never_gets_into_a_release(tmp_path: Path, value: float) -> None:
    trial = replace(sample.measurement(sample.kernels(1)[0]), latency_rotated_ns=value)
    with pytest.raises(ContentError, match=r"a\.jsonl: kernels row 0: latency_rotated_ns"):
        build_from([sample.contents([trial])], tmp_path / "d")
    assert not (tmp_path / "d").exists()


def test_wrong_work_never_gets_into_a_release(tmp_path: Path) -> None:
    trial = sample.measurement(sample.kernels(1)[0])
    wrong = replace(trial, work=replace(trial.work, flops=trial.work.flops + 1))
    with pytest.raises(ContentError, match=r"kernels\.parquet: row 0: flops"):
        build_from([sample.contents([wrong])], tmp_path / "d")
    assert not list(tmp_path.glob("d/*"))


def test_an_impossible_label_becomes_a_failed_row(tmp_path: Path) -> None:
    trials = [sample.measurement(kernel) for kernel in sample.kernels(60)]
    fastest = max(trials, key=lambda trial: trial.work.flops / (trial.latency_hot_ns or 1))
    trials[trials.index(fastest)] = _scaled(fastest, 0.01)
    release = build_from([sample.contents(trials)], tmp_path)
    row = release.kernels[release.kernels["kernel_key"] == fastest.kernel.key].iloc[0]
    assert row["status"] == "failed"
    assert "times the peak" in row["reason"]
    assert (release.kernels["status"] == "ok").sum() == 59
    assert all(peak.rate < 6e10 for peak in release.manifest.peaks)


def _scaled(trial: Measurement, factor: float) -> Measurement:
    latency_ns = (trial.latency_hot_ns or 0) * factor
    return replace(
        trial, latency_hot_ns=latency_ns, hot_quantiles_ns=tuple(latency_ns * (0.98 + at / 10) for at in QUANTILES)
    )


@pytest.mark.parametrize("fails", ["write_table", "rename"])
def test_a_full_disk_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fails: str) -> None:
    def full(*arguments: Any, **keywords: Any) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("pyarrow.parquet.write_table" if fails == "write_table" else "pathlib.Path.rename", full)
    with pytest.raises(OpMarkError, match="cannot write: No space left"):
        build_from([sample.contents()], tmp_path / "datasets")
    assert not list(tmp_path.rglob("*.parquet"))
    assert not list(tmp_path.rglob("*.tmp"))


def test_a_flipped_byte_is_refused_by_file(release: Release) -> None:
    for name in ("kernels.parquet", "networks.parquet", "README.md", "croissant.json"):
        path = release.path / name
        content = path.read_bytes()
        flipped = bytearray(content)
        flipped[len(flipped) // 2] ^= 1
        path.write_bytes(bytes(flipped))
        with pytest.raises(ContentError, match=rf"{name}: its content is not what manifest\.json says"):
            load(release.path)
        path.write_bytes(content)
    load(release.path)


def test_a_missing_or_shortened_file_is_refused_by_name(release: Release) -> None:
    path = release.path / "kernels.parquet"
    content = path.read_bytes()
    path.write_bytes(content[:-10])
    with pytest.raises(ContentError, match=r"kernels\.parquet: \d+ bytes, but manifest\.json says"):
        load(release.path)
    path.unlink()
    with pytest.raises(ContentError, match=r"kernels\.parquet: the file is missing"):
        load(release.path)
    shutil.rmtree(release.path)
    with pytest.raises(ContentError, match="no such release folder"):
        load(release.path)


def test_parquet_that_is_none_is_refused(release: Release) -> None:
    (release.path / "networks.parquet").write_bytes(b"PAR1 not really PAR1")
    change_manifest(release.path, lambda content: content["files"][1].update(size_bytes=20))
    fixed = json.loads(unsealed((release.path / "manifest.json").read_text()))
    fixed["files"][1]["sha256"] = sha256(release.path / "networks.parquet")
    (release.path / "manifest.json").write_text(json.dumps(fixed))
    with pytest.raises(ContentError, match="is not the id of the listed tables"):
        load(release.path)


@pytest.mark.parametrize(
    ("schema", "message"),
    [(3, "version 3 is newer than 2"), (0, "version 0 is older than 2"), (None, "schema: missing")],
)
def test_three_messages_for_three_wrong_schemas(release: Release, schema: int | None, message: str) -> None:
    def change(content: dict[str, Any]) -> None:
        content.pop("schema") if schema is None else content.update(schema=schema)

    change_manifest(release.path, change)
    with pytest.raises(ContentError, match=rf"manifest\.json: .*{message}"):
        load(release.path)


def test_a_manifest_with_wrong_keys_is_refused(release: Release) -> None:
    change_manifest(release.path, lambda content: content.update(colour="red"))
    with pytest.raises(ContentError, match="colour: unknown key"):
        load(release.path)
    (release.path / "manifest.json").write_text("{")
    with pytest.raises(ContentError, match=r"manifest\.json:1: not JSON"):
        load(release.path)


def test_a_manifest_cannot_point_outside_its_folder(release: Release) -> None:
    change_manifest(release.path, lambda content: content["files"][0].update(name="../kernels.parquet"))
    with pytest.raises(ContentError, match=r"files\.0\.name: expected at most 160 letters"):
        load(release.path)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"latency_hot_ns": float("nan")}, "row 3: latency_hot_ns: nan is not a number"),
        ({"latency_hot_ns": -1.0}, r"row 3: latency_hot_ns: -1\.0 is negative"),
        ({"latency_rotated_ns": float("inf")}, "row 3: latency_rotated_ns: inf is not a number"),
        ({"status": "great"}, "row 3: status: unknown status 'great'"),
        ({"latency_hot_ns": None}, "row 3: latency_hot_ns: the row is ok and has no latency"),
    ],
)
def test_bad_values_are_refused_with_file_row_and_column(
    release: Release, values: dict[str, Any], message: str
) -> None:
    rows = load(release.path).kernels
    row = int(rows.index[rows["status"] == "ok"][0])
    set_value(release.path, "kernels", row, **values)
    again = load(release.path)
    with pytest.raises(ContentError, match=rf"kernels\.parquet: {message.replace('row 3', f'row {row}')}"):
        _ = again.kernels


def test_a_row_that_stands_twice_is_refused(release: Release) -> None:
    row = release.kernels.iloc[1]
    set_value(release.path, "kernels", 2, kind=row["kind"], parameters=row["parameters"])
    with pytest.raises(ContentError, match=r"kernels\.parquet: row 2: parameters: row 1 already holds the same target"):
        _ = load(release.path).kernels


def test_a_foreign_column_is_refused_when_read(release: Release) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    path = release.path / "networks.parquet"
    table = pq.read_table(path)
    pq.write_table(table.append_column("extra", pa.array([1])), path)
    fit_manifest(release.path)
    with pytest.raises(ContentError, match=r"networks\.parquet: extra: unknown column"):
        _ = load(release.path).networks


def test_a_machine_that_neighbours_disturb_for_a_whole_run_is_still_the_same(tmp_path: Path) -> None:
    # A slower memory never reads as fast as the calm one does.
    readings = {
        "calm": (1000.0,) * 31 + (2000.0,) * 31,
        "disturbed": (1000.0,) * 6 + (1100.0,) * 25 + (2000.0,) * 6 + (3100.0,) * 25,
        "slower": (1000.0,) * 6 + (1100.0,) * 25 + (2600.0,) * 6 + (3100.0,) * 25,
    }
    calm, disturbed, slower = (
        write_journal(
            tmp_path / f"{name}.jsonl",
            sample.kernels(60)[20 * number : 20 * number + 20],
            memory_ns=2000.0,
            beside={"compute": own[:31], "memory": own[31:]},
        )
        for number, (name, own) in enumerate(readings.items())
    )
    assert len(build([calm, disturbed], tmp_path / "datasets").kernels) == 40
    with pytest.raises(ContentError, match=r"slower\.jsonl: its sentinels on .* off those of the other journals"):
        build([calm, slower], tmp_path / "other")


def test_one_machine_at_two_clocks_is_built_and_two_machines_are_not(tmp_path: Path) -> None:
    calm, slow, other = (
        write_journal(tmp_path / f"{name}.jsonl", kernels, sentinel_ns=compute, memory_ns=memory)
        for name, kernels, compute, memory in (
            ("calm", sample.kernels(3)[:1], 1000.0, 2000.0),
            ("slow", sample.kernels(3)[1:2], 1080.0, 2160.0),
            ("other", sample.kernels(3)[2:], 1000.0, 2300.0),
        )
    )
    assert len(build([calm, slow], tmp_path / "datasets").kernels) == 2
    with pytest.raises(ContentError, match=r"are 7\.0% off those of the other journals"):
        build([calm, other], tmp_path / "datasets")
    with pytest.raises(ContentError, match=r"memory \+15\.0%"):
        merge([calm, other], tmp_path / "datasets")
    assert len(list((tmp_path / "datasets").glob("*/*"))) == 1
    assert build([other], tmp_path / "other").kernels["status"].tolist() == ["ok"]
