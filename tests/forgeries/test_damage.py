"""Records that are broken rather than forged: any changed byte is seen, and no rubbish stops the checks."""

from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from harness.checks import CHECKS, RecordFolder, check_all
from harness.record import read_record
from toy_track.forging import Forged, failing, then, write

RUBBISH = [
    "",
    "[]",
    "{}",
    "null",
    "\n",
    "[" * 50_000,
    '{"event": 1}\n',
    "\x00\x01",
    b"\xff\xfe",
    b"PK\x03\x04",
]

# The copy is true again after each example: a file is put back as it was.
each_example = settings(max_examples=100, suppress_health_check=[HealthCheck.function_scoped_fixture])


@each_example
@given(data=st.data())
def test_any_changed_byte_fails_the_record(data: st.DataObject, forged: Forged) -> None:
    names = ["record.json", *read_record(forged.path / "record.json").files]
    path = forged.path / data.draw(st.sampled_from(names))
    content = path.read_bytes()
    position = data.draw(st.integers(0, len(content) - 1))
    flip = data.draw(st.integers(1, 255))
    path.write_bytes(content[:position] + bytes([content[position] ^ flip]) + content[position + 1 :])
    try:
        assert failing(forged.checks())
    finally:
        path.write_bytes(content)


@each_example
@given(data=st.data())
def test_any_content_of_any_file_is_judged_in_full(data: st.DataObject, forged: Forged) -> None:
    names = [path for path in forged.path.rglob("*") if path.is_file()]
    path = data.draw(st.sampled_from(sorted(names)))
    content = path.read_bytes()
    path.write_bytes(data.draw(st.one_of(st.binary(max_size=200), st.text(max_size=200).map(str.encode))))
    try:
        checks = forged.checks()
    finally:
        path.write_bytes(content)
    assert tuple(check.name for check in checks) == CHECKS
    assert not all(check.passed for check in checks) or path.name in ("training_curve.svg", "mistakes.md")


@pytest.mark.parametrize("content", RUBBISH, ids=repr)
def test_rubbish_in_every_file_is_judged_in_full(content: str | bytes, forged: Forged) -> None:
    names = [path.relative_to(forged.path).as_posix() for path in forged.path.rglob("*") if path.is_file()]
    then(*(write(name, content) for name in names))(forged)
    checks = forged.checks()
    assert tuple(check.name for check in checks) == CHECKS
    assert {"schema", "manifest", "log_order"} <= set(failing(checks))


@pytest.mark.parametrize("path", ["nowhere", "empty", "file"])
def test_what_is_no_record_is_judged_in_full(path: str, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "file").write_text("")
    checks = check_all(RecordFolder(tmp_path / path, root=tmp_path))
    assert tuple(check.name for check in checks) == CHECKS
    assert {"schema", "folder_name"} <= set(failing(checks))


def test_a_check_that_crashes_has_failed_alone(forged: Forged, monkeypatch: pytest.MonkeyPatch) -> None:
    def crash(path: Path) -> None:
        raise RuntimeError("the emulator burst")

    home = RecordFolder(forged.path, root=forged.root)
    monkeypatch.setitem(vars(home), "track", replace(home.track, score=crash))
    found = failing(check_all(home))
    assert found["evidence"] == "cannot be checked: RuntimeError: the emulator burst"
    assert set(found) == {"evidence", "verification/evidence"}


def test_the_target_itself_is_not_above_the_target(forged: Forged, monkeypatch: pytest.MonkeyPatch) -> None:
    low = read_record(forged.path / "record.json").score.low
    forged.record("target", low)
    forged.finish()
    home = RecordFolder(forged.path, root=forged.root)
    monkeypatch.setitem(vars(home), "track", replace(home.track, target=low))
    assert (
        failing(check_all(home))["target"]
        == f"evidence.jsonl: the low end {low:.6g} is not above the target {low}"
    )
