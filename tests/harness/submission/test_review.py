"""Pull requests in real repositories: a good one passes in each allowed form, and each fault has its name."""

import shutil
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest
from pull_requests import Repository

from harness import boards
from harness.checks.base import SIZE_LIMIT
from harness.errors import Problem
from harness.files import sha256_bytes
from harness.record import read_record
from harness.remarks import Remark
from harness.submission.links import MARKDOWN_LIMIT
from harness.submission.paths import CHANGES_LIMIT, NEW_RECORDS_LIMIT, PATH_LIMIT, RECORD_LIMIT
from harness.submission.review import review
from harness.submission.summary import Summary
from harness.submission.worth import faults_of_date
from harness.track import ROOT
from toy_track import track as toy
from toy_track.track import TRACK

UNSEEN = "is not here and never was on the base branch; add it"
FIRST = "records/toy_track/*_01_by-heart"
SINCE = "has been changed by others since; merge the base branch first"


def look(repository: Repository, base: str = "main", head: str = "HEAD") -> Summary:
    return review(repository.path, base, head)


def first(repository: Repository) -> Path:
    """The record that stands on main."""
    return next(repository.path.glob(FIRST))


def wrong(summary: Summary) -> str:
    """All that is to be put right, a line each."""
    return "\n".join([*summary.faults, *(check for record in summary.records for check in record.failed)])


# ---- what passes --------------------------------------------------------------------------------------


def test_a_record_and_its_source_pass(repository: Repository) -> None:
    summary = look(repository)
    assert wrong(summary) == "" and summary.passed
    (record,) = summary.records
    assert (record.folder, record.board, record.second[:6]) == (repository.record, "toy_track cpu", "0.9600")
    passed, of = record.checks.split(" of ")
    assert passed == of
    assert record.rank in ("1 of 2", "2 of 2") and record.comparison.endswith("of by-heart")
    assert record.verdict.startswith("A is this record, B by-heart. A ") and "B on time" in record.verdict
    assert record.failed == ()


def test_remarks_are_told_and_fail_nothing(repository: Repository, monkeypatch: pytest.MonkeyPatch) -> None:
    seen = [Remark("ceiling", "nothing is left to win")]
    monkeypatch.setattr("harness.submission.worth.remarks_on", lambda home, checks: seen)
    summary = look(repository)
    assert summary.records[0].remarks == ("ceiling: nothing is left to win",) and summary.passed


def test_the_source_may_be_left_to_the_maintainers(repository: Repository) -> None:
    repository.git("checkout", "main", "--", "toy_track/speedrun.py")
    repository.commit()
    assert wrong(look(repository)) == ""


def test_boards_and_history_may_come_along_if_they_are_exact(repository: Repository) -> None:
    assert {path.name for path in boards.refresh(repository.path)} == {"README.md", "toy_track_history.svg"}
    repository.commit()
    assert wrong(look(repository)) == ""
    for name in ("README.md", "docs/figures/toy_track_history.svg"):
        changed = repository / name
        text = changed.read_text()
        changed.write_text(text.replace("0.9700", "0.9900").replace("</svg>", "</svg> "))
        repository.commit()
        assert wrong(look(repository)) == (
            f"{name}: is not what the records say; leave README.md and docs/figures out, or merge the base "
            "branch and run make boards"
        )
        changed.write_text(text)


def test_prose_that_main_has_changed_since_does_no_harm(repository: Repository) -> None:
    boards.refresh(repository.path)
    repository.commit()
    repository.git("checkout", "--quiet", "main")
    readme = repository / "README.md"
    readme.write_text(readme.read_text().replace("# Squares", "# Squares of numbers"))
    repository.commit()
    assert wrong(look(repository, "main", "idea")) == ""


def test_words_of_a_standing_record_may_change_and_are_pointed_at(repository: Repository) -> None:
    readme = first(repository) / "README.md"
    readme.write_text(readme.read_text() + "\nIt was learnt in a day.\n")
    repository.commit()
    summary = look(repository)
    assert wrong(summary) == ""
    assert summary.records[0].remarks[0] == "it stands already, and this changes README.md"


def test_the_source_of_a_record_that_stands_does_not_come_back(repository: Repository) -> None:
    repository.git("checkout", "--quiet", "-B", "main", "idea")
    repository.git("checkout", "--quiet", "-b", "words")
    shutil.copy(first(repository) / "speedrun.py", repository / "toy_track/speedrun.py")
    append(f"records/toy_track/{first(repository).name}/README.md", "\nIt was learnt in a day.\n")(repository)
    repository.commit()
    said = "is not the speedrun.py of a new record in this pull request; leave it out"
    assert wrong(look(repository)) == f"toy_track/speedrun.py: {said}"


def test_open_files_that_a_record_ran_come_along(
    repository: Repository, monkeypatch: pytest.MonkeyPatch
) -> None:
    track = replace(
        TRACK,
        open_files=("toy_track/prompts/*",),
        fixed_files=(*TRACK.fixed_files, "toy_track/prompts/render.py"),
    )
    monkeypatch.setattr("harness.submission.review.load_track", lambda name: track)
    names = ("prompts/a.md", "prompts/render.py", "model.py")
    run = {f"toy_track/{name}": sha256_bytes(b"Think.\n") for name in names}
    monkeypatch.setattr("harness.submission.review.ran", lambda record: run)
    monkeypatch.setattr("harness.submission.review.available_tracks", lambda root: ["toy_track"])
    put("toy_track/prompts/a.md", "Think.\n")(repository)
    repository.commit()
    assert wrong(look(repository)) == ""
    put("toy_track/prompts/a.md", "Do not.\n")(repository)
    put("toy_track/model.py", "Think.\n")(repository)
    put("toy_track/prompts/render.py", "Think.\n")(repository)
    repository.commit()
    assert wrong(look(repository)).split("\n") == [
        "toy_track/model.py: is not part of a record; leave it to a pull request of its own",
        "toy_track/prompts/a.md: is not what a new record in this pull request ran; leave it out",
        "toy_track/prompts/render.py: is not part of a record; leave it to a pull request of its own",
        f"{repository.record}: ran with a toy_track/prompts/a.md that {UNSEEN}",
    ]


def test_open_files_that_it_ran_must_be_or_have_been_there(
    repository: Repository, monkeypatch: pytest.MonkeyPatch
) -> None:
    track = replace(TRACK, open_files=("toy_track/prompts/*",))
    monkeypatch.setattr("harness.submission.review.load_track", lambda name: track)
    monkeypatch.setattr("harness.submission.review.available_tracks", lambda root: ["toy_track"])
    run = {"toy_track/prompts/a.md": sha256_bytes(b"Think.\n"), "../../etc/passwd": "0" * 64}
    monkeypatch.setattr("harness.submission.review.ran", lambda record: run)
    assert wrong(look(repository)) == f"{repository.record}: ran with a toy_track/prompts/a.md that {UNSEEN}"
    repository.git("checkout", "--quiet", "main")
    for text in ("Think.\n", "Do not.\n"):
        put("toy_track/prompts/a.md", text)(repository)
        repository.commit()
    assert wrong(look(repository, "main", "idea")) == ""
    run |= {f"toy_track/prompts/{number}.md": "0" * 64 for number in range(CHANGES_LIMIT + 1)}
    assert wrong(look(repository, "main", "idea")).endswith(" open files")


def test_open_files_that_will_differ_are_pointed_at(
    repository: Repository, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("harness.submission.worth.ran", lambda record: {"README.md": "0" * 64})
    summary = look(repository)
    assert summary.passed
    assert summary.records[0].remarks[0] == "it ran with other versions of README.md than there would be"


def test_a_closed_ruleset_takes_what_ran_before_for_a_while(
    repository: Repository, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only the log says when a run was, so a date from before may be made up."""
    day = read_record(repository / repository.record / "record.json").date
    monkeypatch.setattr(toy, "TRACK", replace(TRACK, closes=day))
    assert list(faults_of_date(repository.path, repository.record, day + timedelta(days=14))) == []
    (fault,) = faults_of_date(repository.path, repository.record, day + timedelta(days=15))
    assert fault.startswith(f"{repository.record}: is of ruleset 2, which closed on {day}; such a record is")
    monkeypatch.setattr(toy, "TRACK", replace(TRACK, closes=day - timedelta(days=99)))
    assert "which closed on" in look(repository).faults[0]


def test_a_record_of_a_day_to_come_is_refused(repository: Repository) -> None:
    day = read_record(repository / repository.record / "record.json").date
    for days in (0, 1):
        assert list(faults_of_date(repository.path, repository.record, day - timedelta(days=days))) == []
    (fault,) = faults_of_date(repository.path, repository.record, day - timedelta(days=2))
    assert fault == f"{repository.record}: is of {day}, a day that has not come"


def test_a_record_dated_before_one_that_stands_is_pointed_at(repository: Repository) -> None:
    folder = repository / repository.record
    folder.rename(folder.with_name(f"2026-01-01{folder.name[10:]}"))
    repository.commit()
    first_remark = look(repository).records[0].remarks[0]
    assert first_remark == f"it is dated 2026-01-01, before {first(repository).name}, which stood first"


# ---- two at a time ------------------------------------------------------------------------------------


def test_two_branches_with_a_record_each_merge_without_conflict(repository: Repository) -> None:
    for branch in ("idea", "other"):  # both leave the recipe to the maintainers, as for rows of one class
        repository.git("checkout", "--quiet", branch)
        repository.git("checkout", "main", "--", "toy_track/speedrun.py")
        repository.commit()
    repository.git("checkout", "--quiet", "main")
    repository.git("merge", "--quiet", "--no-edit", "idea")
    repository.git("merge", "--quiet", "--no-edit", "other")
    names = [path.name[11:] for path in sorted(repository.path.glob("records/toy_track/*"))]
    assert names == ["01_by-heart", "02_idea", "02_other"]
    written = {path.name for path in boards.refresh(repository.path)}
    assert written == {"README.md", "toy_track_history.svg"}
    assert (repository / "README.md").read_text().count("](records/toy_track/") == 4  # three rows, one curve


def test_the_second_of_two_records_with_one_number_is_told(repository: Repository) -> None:
    repository.git("checkout", "--quiet", "main")
    repository.git("merge", "--quiet", "--no-edit", "other")
    source, number = wrong(look(repository, "main", "idea")).split("\n")
    assert source == f"toy_track/speedrun.py: {SINCE}"
    assert number.startswith("number_unique: number 2 is taken by ")


def test_a_source_that_main_has_changed_since_would_be_mixed_with_ours(repository: Repository) -> None:
    repository.git("checkout", "--quiet", "main")
    append("toy_track/speedrun.py", "# main's\n")(repository)
    repository.commit()
    name = "toy_track/speedrun.py"
    assert wrong(look(repository, "main", "idea")) == f"{name}: {SINCE}"
    repository.git("checkout", "--quiet", "idea")
    repository.git("merge", "--quiet", "--no-edit", "main")
    assert f"{name}: is not the speedrun.py of a new record" in wrong(look(repository))
    repository.git("checkout", "HEAD^", "--", name)
    repository.commit()
    assert wrong(look(repository)) == ""


def test_the_same_name_on_both_sides_is_told(repository: Repository) -> None:
    repository.git("checkout", "--quiet", "main")
    (repository / repository.record).mkdir()
    (repository / repository.record / "record.json").write_text("{}")
    repository.commit()
    summary = look(repository, "main", "idea")
    assert "another record of this name has been merged since" in wrong(summary)
    assert summary.records == ()


def test_two_new_records_are_refused_unread(repository: Repository) -> None:
    folder = repository / repository.record
    another = folder.with_name(folder.name.replace("_02_", "_03_"))
    shutil.copytree(folder, another)
    readme = first(repository) / "README.md"
    readme.write_text(readme.read_text() + "\nIt was learnt in a day.\n")
    repository.commit()
    summary = look(repository)
    names = f"{repository.record}, records/toy_track/{another.name}"
    said = "at most 1 may be; give each a pull request of its own"
    assert summary.faults == (f"2 records are new, {said}: {names}",)
    assert [record.folder for record in summary.records] == [f"records/toy_track/{first(repository).name}"]


def test_of_many_new_records_a_few_are_named(repository: Repository) -> None:
    for number in range(10, 30):
        put(f"records/toy_track/2026-01-01_{number}_x/record.json")(repository)
    repository.commit()
    (fault,) = look(repository).faults
    assert fault.startswith("21 records are new, ") and fault.count("records/toy_track/") == 5
    assert fault.endswith("_14_x, ...")


# ---- what is refused ----------------------------------------------------------------------------------


def put(name: str, text: str = "x\n") -> Callable[[Repository], object]:
    """A file with this text, new or in place of another; `*` stands for the record of the branch."""

    def change(repository: Repository) -> None:
        path = repository / name.replace("*", repository.record)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    return change


def append(name: str, text: str) -> Callable[[Repository], object]:
    """More text at the end of a file."""

    def change(repository: Repository) -> None:
        path = repository / name.replace("*", repository.record)
        path.write_text(path.read_text() + text)

    return change


def indexed(mode: str, name: str) -> Callable[[Repository], object]:
    """A submodule, or a file under a name that no checkout here could hold."""

    def change(repository: Repository) -> None:
        name_there = name.replace("*", repository.record)
        if mode == "160000":
            digest = repository.git("rev-parse", "HEAD")
        else:
            digest = repository.git("hash-object", "-w", "--stdin", given=b"x\n")
        repository.git("update-index", "--add", "--cacheinfo", f"{mode},{digest},{name_there}")
        repository.git("commit", "--quiet", "--message", "change")

    return change


def link(repository: Repository) -> None:
    path = repository / repository.record / "evidence.jsonl"
    path.unlink()
    path.symlink_to("/etc/passwd")


def delete_the_first(repository: Repository) -> None:
    shutil.rmtree(first(repository))


def rename_the_first(repository: Repository) -> None:
    first(repository).rename(repository / "records/toy_track/2026-11-29_03_by-heart")


def forge_the_first(repository: Repository) -> None:
    path = first(repository) / "evidence.jsonl"
    path.write_text(path.read_text().replace("-1", "-2"))


def claim_less_time(repository: Repository) -> None:
    path = repository / repository.record / "record.json"
    record = read_record(path)
    path.write_text(record.model_copy(update={"time_s": record.time_s / 2}).dump())


def describe_as_markup(repository: Repository) -> None:
    path = repository / repository.record / "record.json"
    path.write_text(read_record(path).model_copy(update={"description": "@all | <img src=x>"}).dump())


def name_another_track(repository: Repository) -> None:
    folder = repository / repository.record
    place = repository / "records/nowhere" / folder.name / "record.json"
    place.parents[1].mkdir()
    folder.rename(place.parent)
    place.write_text(read_record(place).model_copy(update={"track": "nowhere"}).dump())


def fill(size: int, files: int) -> Callable[[Repository], object]:
    def change(repository: Repository) -> None:
        for number in range(files):
            (repository / repository.record / f"more{number}").write_bytes(bytes(size))

    return change


BIG = RECORD_LIMIT // 3

REFUSED = {
    "the harness": (append("tests/toy_track/track.py", "# x\n"), "track.py: is not part of a record"),
    "a workflow": (put(".github/workflows/x.yml"), "/x.yml: is not part of a record"),
    "a file of the track": (put("toy_track/model.py"), "toy_track/model.py: is not part of a record"),
    "a file beside records": (put("records/toy_track/notes.md"), "notes.md: is not part of a record"),
    "a folder that is not a record": (put("records/toy_track/2026_x/a"), "2026_x/a: is not part of a"),
    "the ledger": (put("records/toy_track/standing.jsonl"), "standing.jsonl: is the maintainers' ledger"),
    "a figure of the docs": (put("docs/figures/x.svg"), "docs/figures/x.svg: is not part of a record"),
    "a history of no track": (put("docs/figures/x_history.svg"), "x_history.svg: is made from no record"),
    "prose of the README": (append("README.md", "Buy now.\n"), "README.md: is not what the records say"),
    "a record deleted": (delete_the_first, "/record.json: is deleted; records and what"),
    "a record renamed": (rename_the_first, "/README.md: is deleted; records and what"),
    "evidence of another": (forge_the_first, "evidence.jsonl: is the evidence of a record that"),
    "another source": (append("toy_track/speedrun.py", "# x\n"), "is not the speedrun.py of a new record"),
    "a link": (link, "evidence.jsonl: is a link, expected a plain file"),
    "a submodule": (indexed("160000", "*/engine"), "/engine: is a submodule, expected a plain file"),
    "an executable": (indexed("100755", "*/run"), "/run: is executable, expected a plain file"),
    "a large file": (fill(8 * 2**20 + 1, 1), "more0: has 8,388,609 bytes, at most 8,388,608 are allowed"),
    "many large files": (fill(BIG, 4), f"bytes, at most {RECORD_LIMIT:,} are allowed"),
    "names that collide": (indexed("100644", "*/readme.md"), "README.md and records/toy_track/"),
    "folders that collide": (indexed("100644", "*/Verification/a"), "are one file where case does not count"),
    "a name with a line end": (indexed("100644", "*/a\nb"), "/a\nb: has a name with other characters"),
    "a name to hide": (indexed("100644", "*/.hidden"), "/.hidden: has a name with other characters"),
    "a name of an attribute file": (put("records/.gitattributes"), "records/.gitattributes: is not part"),
    "a name that is long": (indexed("100644", f"*/{'a' * 99}/{'b' * 99}"), "characters, at most 200"),
    "a file too many": (put("*/notes.txt"), "folder_contents: notes.txt does not belong here"),
    "markup in words": (describe_as_markup, "description: record.json: description holds '|'"),
    "no such track": (name_another_track, "track: there is no track 'nowhere'"),
    "a forged time": (claim_less_time, "time: record.json: time_s is"),
    "a drawn curve": (append("*/training_curve.svg", " "), "curve.svg: is not what the records say; run"),
    "a dead link": (append("*/README.md", "[x](y.md)\n"), "README.md: line 35: link 'y.md' leads nowhere"),
    "an outside picture": (append("*/README.md", "![x](https://a.b/c.png)\n"), "from outside of the"),
    "no record.json": (put("*/record.json", "{"), "no board can be drawn: records/toy_track/"),
    "far too many files": (fill(1, CHANGES_LIMIT), f"files change, at most {CHANGES_LIMIT} may"),
}  # fmt: skip


@pytest.mark.parametrize("change, says", REFUSED.values(), ids=REFUSED)
def test_what_does_not_belong_is_refused_by_name(
    repository: Repository, change: Callable[[Repository], object], says: str
) -> None:
    before = repository.git("rev-parse", "HEAD")
    change(repository)
    if repository.git("rev-parse", "HEAD") == before:
        repository.commit()
    summary = look(repository)
    assert says in wrong(summary) and not summary.passed


def test_a_fixed_file_that_was_changed_and_changed_back_is_refused(repository: Repository) -> None:
    """What a merged commit held could be accepted later as a version of ours."""
    name = "tests/toy_track/track.py"
    said = f"{name}: changed by a commit and changed back; put all into one commit"
    start = repository.git("rev-parse", "HEAD")
    text = (repository / name).read_text()
    for content in (f"{text}# forged\n", text):
        (repository / name).write_text(content)
        put("notes.txt", content)(repository)
        repository.commit()
    (repository / "notes.txt").unlink()
    repository.commit()
    assert wrong(look(repository)) == said
    merged = repository.git("commit-tree", "HEAD^{tree}", "-p", start, "-p", "HEAD", "-m", "merge")
    assert wrong(look(repository, head=merged)) == said
    squashed = repository.git("commit-tree", "HEAD^{tree}", "-p", start, "-m", "all")
    assert wrong(look(repository, head=squashed)) == ""


def test_a_fixed_file_of_another_track_changed_back_is_refused(repository: Repository) -> None:
    put("retro/task.py", "SEARCHES = 1\n")(repository)
    repository.commit()
    repository.git("rm", "--quiet", "retro/task.py")
    repository.commit()
    assert wrong(look(repository)).startswith("retro/task.py: changed by a commit and changed back")


def test_a_merge_that_holds_what_no_parent_does_is_seen_through(repository: Repository) -> None:
    name = "tests/toy_track/track.py"
    repository.git("checkout", "--quiet", "main")
    put("docs/page.md")(repository)
    repository.commit()
    repository.git("checkout", "--quiet", "idea")
    repository.git("merge", "--quiet", "--no-commit", "main")
    (repository / name).write_text((repository / name).read_text() + "# forged\n")
    repository.commit()
    assert f"{name}: is not part of a record" in wrong(look(repository))
    repository.git("checkout", "main", "--", name)
    repository.commit()
    assert wrong(look(repository)).startswith(f"{name}: changed by a commit and changed back")
    repository.git("reset", "--quiet", "--hard", "HEAD~2")
    repository.git("merge", "--quiet", "--no-edit", "main")
    assert wrong(look(repository)) == ""


def test_a_file_that_is_a_folder_too_is_refused(repository: Repository) -> None:
    """Git itself writes no such tree, but a server may hold one."""
    folder = repository.record
    path = repository / folder / "speedrun.py"
    entries = repository.git("ls-tree", f"HEAD:{folder}").split("\n")
    tree = repository.git("rev-parse", f"HEAD:{folder}/verification")
    name = f"040000 tree {tree}\tspeedrun.py"
    made = repository.git("mktree", "--missing", given="\n".join([*entries, name]).encode())
    for part in reversed(folder.split("/")):
        parent = folder[: folder.rindex(f"/{part}")] if "/" in folder else ""
        entries = repository.git("ls-tree", f"HEAD:{parent}").split("\n")
        kept = [entry for entry in entries if not entry.endswith(f"\t{part}")]
        made = repository.git("mktree", given="\n".join([*kept, f"040000 tree {made}\t{part}"]).encode())
        folder = parent
    head = repository.git("commit-tree", made, "-p", "main", "-m", "change")
    assert path.is_file()
    assert "speedrun.py: is both a file and a folder" in wrong(look(repository, head=head))


def test_a_commit_that_is_not_there_is_named(repository: Repository) -> None:
    with pytest.raises(Problem, match="there is no commit 'nowhere'"):
        look(repository, "nowhere")
    with pytest.raises(Problem, match="there is no commit '--all'"):
        look(repository, "main", "--all")


def test_nothing_is_said_to_differ(repository: Repository) -> None:
    assert wrong(look(repository, "main", "main")) == "nothing differs: what is not committed is not seen"


def test_the_rules_say_what_is_bounded() -> None:
    rows = {
        "new records": f"{NEW_RECORDS_LIMIT}",
        "files that change": f"{CHANGES_LIMIT}",
        "all files of a record": f"{RECORD_LIMIT // 2**20} MiB",
        "a file": f"{SIZE_LIMIT // 2**20} MiB",
        "a Markdown file": f"{MARKDOWN_LIMIT // 1000} kB",
        "the name of a file, with its folders": f"{PATH_LIMIT} characters",
    }
    text = (ROOT / "docs/rules.md").read_text()
    assert "".join(f"| {what} | {most} |\n" for what, most in rows.items()) in text
