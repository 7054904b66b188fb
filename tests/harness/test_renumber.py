"""The second of two records with one number gets the next, by one command, and stays true."""

from pathlib import Path

import pytest
from pull_requests import Repository, make_repository

from harness.errors import Problem
from harness.record import read_record
from harness.renumber import main, next_number, renumber
from harness.standing import main as standing
from harness.submission.review import review
from harness.verify import verify_record


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Repository:
    return make_repository(tmp_path_factory.mktemp("original") / "repository")


@pytest.fixture
def merged(original: Repository, tmp_path: Path) -> Repository:
    """The branch `idea` after main, with the record of `other`, was merged into it."""
    repository = original.copy(tmp_path / "repository")
    repository.git("checkout", "--quiet", "main")
    repository.git("merge", "--quiet", "--no-edit", "other")
    repository.git("checkout", "--quiet", "idea")
    repository.git("merge", "--quiet", "--no-edit", "--strategy-option=theirs", "main")
    return repository


def failed(path: Path, root: Path) -> list[str]:
    return [check.name for check in verify_record(path, root=root) if not check.passed]


def test_one_command_settles_it(merged: Repository, capsys: pytest.CaptureFixture[str]) -> None:
    root, old = merged.path, merged / merged.record
    before = {path.name: path.read_bytes() for path in old.iterdir() if path.is_file()}
    assert failed(old, root) == ["number_unique"]
    assert main([str(old)], root=root) == 0
    new = old.with_name(old.name.replace("_02_", "_03_"))
    shown = new.relative_to(root)
    assert f"Next: python verify_record.py {shown}, and commit both names" in capsys.readouterr().out
    assert not old.exists() and failed(new, root) == []
    assert read_record(new / "record.json").number == 3
    assert (new / "README.md").read_text().startswith("# Squares, record 3: idea\n")
    after = {path.name: path.read_bytes() for path in new.iterdir() if path.is_file()}
    assert {name for name in before if before[name] != after[name]} == {"record.json", "README.md"}
    merged.commit()
    assert review(root, "main", "idea").passed


def test_another_title_is_left_alone(merged: Repository) -> None:
    readme = merged / merged.record / "README.md"
    readme.write_text(readme.read_text().replace("# Squares, record 2: idea", "# My record 2: idea"))
    assert (renumber(readme.parent) / "README.md").read_text().startswith("# My record 2: idea\n")


def test_a_number_that_nobody_took_stays(original: Repository) -> None:
    path = original / original.record
    with pytest.raises(Problem, match=r"no other record here has the number 2\. Remedy: merge the main"):
        renumber(path)
    with pytest.raises(Problem, match="is not a record"):
        renumber(path.with_name("2026-01-01_09_none"))
    with pytest.raises(Problem, match="is not a record"):
        main([str(path / "verification")], root=original.path)
    assert next_number(path.parent) == 3 and next_number(path / "verification") == 1


def test_a_record_that_the_ledger_names_keeps_its_number(merged: Repository) -> None:
    path = merged / merged.record
    assert standing(["invalidate", str(path), "--reason", "Played twice"], root=merged.path) == 0
    with pytest.raises(Problem, match=r"standing\.jsonl names it, so it keeps its number"):
        renumber(path)
    assert path.is_dir()


def test_a_readme_that_is_no_text_is_named_before_anything_changes(merged: Repository) -> None:
    path = merged / merged.record
    (path / "README.md").write_bytes(b"# Squares\n\xff")
    with pytest.raises(Problem, match=r"README\.md:2: is not UTF-8"):
        renumber(path)
    assert path.is_dir()
