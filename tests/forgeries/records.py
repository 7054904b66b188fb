"""A record of the toy track made untrue as a whole: its words, its folder, and how its two runs belong."""

import json
import os
import shutil

from forgeries.table import Forgery
from harness.checks.run import describe
from harness.files import sha256_file
from harness.manifest import read_manifest
from harness.readme import IDEA_PLACEHOLDER
from harness.record import CONTRIBUTOR_PLACEHOLDER, DESCRIPTION_PLACEHOLDER, read_record
from toy_track.forging import (
    Forged,
    Step,
    append,
    both,
    edit,
    in_second,
    link,
    remove,
    set_hash,
    set_record,
    then,
    write,
)
from toy_track.records import IDEA

WRONG, OTHER_RUN = "0" * 64, "f" * 32
FIXED = "tests/toy_track/track.py"


def other_record(number: str, *keep: str) -> Step:
    """Another record of the track, which shares the files called `keep` with this one."""

    def forge(f: Forged) -> None:
        other = f.path.with_name(f"2026-01-01_{number}_other")
        other.mkdir()
        for name in keep:
            (other / name).parent.mkdir(exist_ok=True)
            shutil.copy(f / name, other / name)

    return forge


def forget_second(f: Forged) -> None:
    shutil.rmtree(f / "verification")
    files = read_record(f / "record.json").files
    f.record("files", {name: digest for name, digest in files.items() if "/" not in name})
    f.record("verification", None)
    f.publish()


def copy_evidence(f: Forged) -> None:
    shutil.copy(f.path / "evidence.jsonl", f.path / "verification/evidence.jsonl")
    f.part = "verification"
    f.replay(91)
    f.publish()


def change_source(f: Forged) -> None:
    """Another default in the source, and the hash of the source in both manifests."""
    f.edit("speedrun.py", "right: int = 90", "right: int = 80")
    for f.part in ("verification", ""):
        f.manifest(source_sha256=sha256_file(f.path / "speedrun.py"))


def first_again(forged: Forged) -> None:
    """The second run under the first one's id."""
    forged.part = ""
    run_id = forged.read_manifest()["run_id"]
    forged.part = "verification"
    forged.manifest(run_id=run_id)
    forged.event("run_start", run_id=run_id)


def equal_seeds(f: Forged) -> None:
    f.part = "verification"
    f.reseed(1)


def log_of_first(f: Forged) -> None:
    """The first run's whole log as the second's."""
    shutil.copy(f.path / "log.jsonl", f.path / "verification")
    f.part = "verification"
    f.rescore()
    f.retime()
    first = json.loads((f.path / "record.json").read_text())
    f.own("cpu_s", first["cpu_s"])


def in_another_track(f: Forged) -> None:
    """The record among those of another track."""
    (f.root / "records/other").mkdir()
    f.path = f.path.rename(f.root / "records/other" / f.path.name)


def name_processor(name: str) -> Step:
    """Another name of the processor, in both manifests and the record."""

    def forge(f: Forged) -> None:
        both(lambda f: f.manifest(machine=f.read_manifest()["machine"] | {"cpu": name}))(f)
        f.record("hardware", describe(read_manifest(f / "manifest.json").machine))

    return forge


def start_early(f: Forged) -> None:
    f.part = "verification"
    f.shift("run_start", -300.0, "utc")


def to_yesterday(f: Forged) -> None:
    f.record("date", "2026-01-02")
    f.rename("2026-01-02_01_by-heart")


def under_closed_ruleset(f: Forged) -> None:
    f.record("ruleset", "1")
    for f.part in ("verification", ""):
        f.manifest(ruleset="1")
    f.follow_first()


def standing(text: str) -> Step:
    """A ledger of standings with this content."""
    return lambda f: (f.path.parent / "standing.jsonl").write_text(text)


AGREES = ("manifest_agrees", "verification/manifest_agrees")
EVIDENCE = ("evidence", "evidence_logged", "checkpoint")
FORGERIES: list[Forgery] = [
    # ---- record.json ----
    Forgery("record.json missing", remove("record.json"), ("schema",), "is missing"),
    Forgery("record.json empty", write("record.json", ""), ("schema",), "record.json:1: not JSON"),
    Forgery("record.json a list", write("record.json", "[]\n"), ("schema",), "record.json: the file: "),
    Forgery(
        "record.json binary", write("record.json", b"\xff\xfe\x00"), ("schema", "text_files"), "not UTF-8",
    ),
    Forgery("record.json deep", write("record.json", "[" * 100_000), ("schema",), "record.json"),
    Forgery("unknown key", set_record("surprise", 1), ("schema",), "surprise: Extra inputs"),
    Forgery("unknown key inside", set_record("score.sd", 1), ("schema",), "score.sd: Extra inputs"),
    Forgery(
        "key left out", edit("record.json", '  "ruleset": "2",\n', ""), ("schema",),
        "ruleset: Field required",
    ),
    Forgery(
        "key given twice", edit("record.json", '"ruleset": "2"', '"ruleset": "0", "ruleset": "2"'),
        ("schema",), "repeated key 'ruleset'", finish=False,
    ),
    Forgery(
        "other spacing", edit("record.json", '": ', '" :'), ("canonical",), "record.json:2: found",
        finish=False,
    ),
    Forgery("one line more", append("record.json", "\n"), ("canonical",), "expected", finish=False),
    Forgery(
        "time NaN", edit("record.json", '"time_s": 0', '"time_s": NaN, "x": 0'), ("schema",),
        "NaN is not a finite number",
    ),
    Forgery(
        "infinity", edit("record.json", '"target": 0.7', '"target": 1e999'), ("schema",),
        "1e999 is not a finite number",
    ),
    Forgery("negative time", set_record("time_s", -1.0), ("schema",), "time_s: Input should be greater than"),
    Forgery("huge time", set_record("time_s", 1e300), ("schema",), "found 1e+300"),
    Forgery("huge seed", set_record("seed", 2**70), ("schema",), "seed: Input should be less than"),
    Forgery(
        "time a text", set_record("time_s", "420"), ("schema",), "time_s: Input should be a valid number",
    ),
    Forgery("time true", set_record("time_s", True), ("schema",), "time_s: Input should be a valid number"),
    Forgery("seed a fraction", set_record("seed", 1.5), ("schema",), "seed: Input should be a valid integer"),
    Forgery(
        "no units", set_record("score.count", 0), ("schema",), "score.count: Input should be greater than 0",
    ),
    Forgery("date that is none", set_record("date", "2026-02-30"), ("schema",), "date: "),
    Forgery("hash that is none", set_record("files", {"log.jsonl": "0"}), ("schema",), "files.log.jsonl: "),
    Forgery("track outside", set_record("track", "../toy_track"), ("schema",), "track: String should match"),
    Forgery(
        "unknown track", set_record("track", "no_such_track"), ("track", "name_matches", *AGREES),
        "no track",
    ),
    Forgery("ruleset", set_record("ruleset", "3"), ("track", *AGREES), "toy_track has no ruleset '3'"),
    Forgery(
        "ruleset that closed", under_closed_ruleset, ("ruleset",), "ruleset 1 of toy_track closed on 2026",
    ),
    Forgery("standings in another form", standing('{"record": "x"}\n'), ("standing",), "standing.jsonl:1: "),
    Forgery("standings cut short", standing("{}"), ("standing",), "the last line is cut short"),
    Forgery("class", set_record("hardware_class", "1xH100"), AGREES, "is '1xH100', expected 'cpu'"),
    Forgery(
        "hardware", set_record("hardware", "a fine machine"), ("manifest_agrees",), "is 'a fine machine'",
    ),
    Forgery(
        "target", set_record("target", 0.5), ("target", "verification/target"),
        "target is 0.5, expected 0.7",
    ),
    Forgery(
        "date", set_record("date", "2026-01-02"), ("date", "name_matches"), "date is '2026-01-02', expected",
    ),
    Forgery("date of record and folder", to_yesterday, ("date",), "date is '2026-01-02', expected"),
    Forgery("number", set_record("number", 2), ("name_matches",), "_02_by-heart' by record.json"),
    Forgery("name", set_record("name", "other"), ("name_matches",), "_01_other' by record.json"),
    Forgery("better score published", set_record("published.value", 0.99), ("published",), "value 0.99"),
    # ---- hashes ----
    Forgery("hash", set_record("files", {}), ("file_hashes",), "log.jsonl is not listed", finish=False),
    Forgery(
        "a wrong hash", set_hash("log.jsonl", WRONG), ("file_hashes",), f"expected {WRONG} by record.json",
        finish=False,
    ),
    Forgery("path outside", set_hash("../../x", WRONG), ("file_hashes",), "record.json lists '../../x'"),
    Forgery(
        "path from the root", set_hash("/etc/passwd", WRONG), ("file_hashes",),
        "record.json lists '/etc/passwd'",
    ),
    Forgery(
        "source, not the hash", lambda f: f.edit("speedrun.py", "told", "tolt"),
        ("file_hashes", "source", "verification/source"), "speedrun.py has sha256", finish=False,
    ),
    # ---- the folder ----
    Forgery(
        "folder's name", lambda f: f.rename("by-heart"), ("folder_name",),
        "expected <YYYY-MM-DD>_<NN>_<name",
    ),
    Forgery("folder's day", lambda f: f.rename("2026-13-01_01_by-heart"), ("folder_name",), "2026-13-01"),
    Forgery(
        "folder's number", lambda f: f.rename(f.path.name.replace("_01_", "_1_")), ("folder_name",), "_1_by",
    ),
    Forgery(
        "two records, one number", other_record("01"), ("number_unique",), "is taken by 2026-01-01_01_other",
    ),
    Forgery(
        "file too many", write("notes.txt", "hello\n"), ("folder_contents",), "notes.txt does not belong",
    ),
    Forgery("hidden file", write("verification/.x", "\n"), ("folder_contents",), "verification/.x does not"),
    Forgery(
        "folder too many", lambda f: (f / "more").mkdir(), ("folder_contents", "plain_files"),
        "more does not",
    ),
    Forgery(
        "figure missing", remove("training_curve.svg"), ("folder_contents",),
        "training_curve.svg is missing",
    ),
    Forgery("report missing", remove("mistakes.md"), ("folder_contents",), "mistakes.md is missing"),
    Forgery(
        "file too large", write("README.md", "x" * (8 * 2**20 + 1)), ("plain_files", "readme", "idea"),
        "8,388,609",
    ),
    Forgery(
        "link", link("evidence.jsonl"), ("plain_files", "file_hashes", *EVIDENCE),
        "evidence.jsonl is a link",
    ),
    Forgery(
        "linked folder", link("verification"),
        (
            "plain_files", "folder_contents", "file_hashes", "verification/manifest",
            "verification/log_order", "verification/evidence",
        ),
        "verification is a link",
    ),
    Forgery("linked record", link("."), ("plain_files", "schema", "manifest", "log_order"), "not a folder"),
    Forgery(
        "pipe", then(remove("README.md"), lambda f: os.mkfifo(f / "README.md")),
        ("plain_files", "readme", "idea"), "not a plain",
    ),
    # ---- text ----
    Forgery(
        "CR LF",
        lambda f: (f / "README.md").write_bytes((f / "README.md").read_bytes().replace(b"\n", b"\r\n")),
        ("text_files", "readme"), "README.md:1: ", finish=False,
    ),
    Forgery("direction mark", append("README.md", "\u202e\n"), ("text_files",), "\\u202e"),
    Forgery(
        "not UTF-8", write("training_curve.svg", b"<svg>\xff"), ("text_files",),
        "training_curve.svg:1: is not UTF-8",
    ),
    Forgery(
        "conflict", append("README.md", "<<<<<<< HEAD\nours\n=======\ntheirs\n>>>>>>> x\n"),
        ("conflict_markers",), "'<<<<<<< HEAD'",
    ),
    Forgery("half a conflict", append("README.md", "=======\n"), ("conflict_markers",), "README.md:"),
    Forgery(
        "description with |", set_record("description", "a | b"), ("description",),
        "holds '|' at character 3",
    ),
    Forgery(
        "description as a heading", set_record("description", "# Verified by the maintainers"),
        ("description",), "begins with '# '",
    ),
    Forgery("description with HTML", set_record("description", "a <b>b"), ("description",), "holds '<'"),
    Forgery(
        "description with a link", set_record("description", "see http://x.y"), ("description",), "'://'",
    ),
    Forgery("description of two lines", set_record("description", "a\nb"), ("description",), "not one line"),
    Forgery("description empty", set_record("description", " "), ("description",), "is empty"),
    Forgery("description long", set_record("description", "x" * 201), ("description",), "201 characters"),
    Forgery(
        "description unwritten", set_record("description", DESCRIPTION_PLACEHOLDER), ("description",),
        "placeholder",
    ),
    Forgery(
        "description with a blank that is none", set_record("description", "fast\u200best"),
        ("description", "text_files"), "not one line of printable",
    ),
    Forgery(
        "description with a mark that shows nothing", set_record("description", "fast\ufe00est"),
        ("description",), "U+FE00 at character 5, which nobody can see",
    ),
    Forgery(
        "description under a tower", set_record("description", "fast" + 9 * "\u0489"), ("description",),
        "more than 3 marks on the letter at character 4",
    ),
    Forgery(
        "description turned round", set_record("description", "fast\u202etsewols"),
        ("description", "text_files"), "not one line of printable",
    ),
    Forgery(
        "description with mathematics", set_record("description", "takes $x$ seconds"), ("description",),
        "'$'",
    ),
    Forgery(
        "name with letters that look alike", set_record("name", "by-he\u0430rt"), ("schema",),
        "name: String",
    ),
    Forgery("name outside", set_record("name", "../by-heart"), ("schema",), "name: String"),
    Forgery(
        "a link for a processor", name_processor("EPYC [faster](//example.org)"), ("hardware",), "holds '['",
    ),
    Forgery("a table for a processor", name_processor("EPYC | 0:01"), ("hardware",), "holds '|'"),
    Forgery("a processor of two lines", name_processor("EPYC\n## Approved"), ("hardware",), "not one line"),
    Forgery("nobody", set_record("contributors", []), ("contributors",), "are not named"),
    Forgery("somebody twice", set_record("contributors", ["Ada", "Ada"]), ("contributors",), "named twice"),
    Forgery(
        "somebody twice in other letters", set_record("contributors", ["Zo\u00eb", "ZOE\u0308"]),
        ("contributors",), "named twice",
    ),
    Forgery("contributor with |", set_record("contributors", ["A|B"]), ("contributors",), "holds '|'"),
    Forgery("two in one", set_record("contributors", ["Ada, Bob"]), ("contributors",), "holds a comma"),
    Forgery(
        "contributor unnamed", set_record("contributors", [CONTRIBUTOR_PLACEHOLDER]), ("contributors",),
        "placeholder",
    ),
    Forgery(
        "README's value", lambda f: f.edit("README.md", "0.9100", "0.9900"), ("readme",), "README.md:",
        finish=False,
    ),
    Forgery(
        "README's marks", lambda f: f.edit("README.md", "<!-- results:end -->", ""), ("readme",),
        "has 0 lines", finish=False,
    ),
    Forgery(
        "README's results twice", lambda f: append("README.md", f.path.joinpath("README.md").read_text())(f),
        ("readme",), "has 2 lines", finish=False,
    ),
    Forgery("README empty", write("README.md", ""), ("readme",), "has 0 lines"),
    Forgery(
        "README missing", remove("README.md"), ("readme", "idea", "folder_contents"),
        "README.md: is missing",
    ),
    Forgery(
        "idea unwritten", lambda f: f.edit("README.md", IDEA, IDEA_PLACEHOLDER), ("idea",), "placeholder",
    ),
    # ---- source ----
    Forgery(
        "source", append("speedrun.py", "# faster\n"), ("source", "verification/source"),
        "speedrun.py: sha256 is",
    ),
    Forgery(
        "other source, other recipe", change_source, ("recipe_in_source", "verification/recipe_in_source"),
        "right is 90, expected 80 by speedrun.py:",
    ),
    Forgery(
        "fixed file changed here", lambda f: f.fixed(FIXED).write_bytes(b"#\n"),
        ("fixed_files", "verification/fixed_files"), f"{FIXED} is ",
    ),
    # ---- the two runs ----
    Forgery(
        "recipe without the seed", lambda f: f.reseed(2), ("first_seed",),
        "seed is 2, expected 1 by the recipe",
    ),
    Forgery(
        "seed from a flag", lambda f: f.manifest(seed_source="flag"), ("first_seed",),
        "is 'flag', expected 'recipe'",
    ),
    Forgery("first verifies", lambda f: f.manifest(verifies=OTHER_RUN), ("first_seed",), "expected None"),
    Forgery("second seed chosen", in_second(lambda f: f.reseed(7)), ("second_seed",), "seed is 7, expected"),
    Forgery("equal seeds", equal_seeds, ("second_seed",), "expected another than the first run's"),
    Forgery(
        "other open files", in_second(lambda f: f.manifest(open_files={"prompt.md": "0" * 64})),
        ("same_recipe", "verification/source"), "open_files is {'prompt.md'",
    ),
    Forgery(
        "open files that there are not", both(lambda f: f.manifest(open_files={"prompt.md": "0" * 64})),
        ("source", "verification/source"), "open_files names 'prompt.md', which no recipe may bring",
    ),
    Forgery(
        "second seed from a flag", in_second(lambda f: f.manifest(seed_source="flag")), ("second_seed",),
        "'flag'",
    ),
    Forgery(
        "verifies another run", in_second(lambda f: f.manifest(verifies=OTHER_RUN)), ("verifies",),
        OTHER_RUN,
    ),
    Forgery("second run is the first again", first_again, ("verifies",), "run_id is the first run's"),
    Forgery(
        "second of another recipe", in_second(lambda f: f.manifest(recipe_name="1xH100")),
        ("same_recipe", "verification/recipe_in_source"), "recipe_name is '1xH100', expected 'cpu'",
    ),
    Forgery(
        "the first run's log again", log_of_first,
        (
            "verification/log_identity", "verification/checkpoint", "verification/evidence_logged",
            "second_after_first",
        ),
        "run_id is",
    ),
    Forgery(
        "among the records of another track", in_another_track, ("name_matches",), "lies in 'records/other'",
    ),
    Forgery("second before first", start_early, ("second_after_first",), "expected after"),
    Forgery(
        "evidence copied within", copy_evidence, ("evidence_distinct",), "holds the same as evidence.jsonl",
    ),
    Forgery(
        "evidence copied", other_record("02", "evidence.jsonl"), ("evidence_distinct",),
        "2026-01-01_02_other/evidence",
    ),
    Forgery(
        "checkpoint copied", other_record("02", "checkpoint.bin"), ("evidence_distinct",),
        "2026-01-01_02_other/",
    ),
    Forgery(
        "a run told again", other_record("02", "manifest.json"), ("evidence_distinct",),
        "run_id is that of 2026-01-01_02_other/manifest.json",
    ),
    Forgery(
        "a second run told again", other_record("02", "verification/manifest.json"), ("evidence_distinct",),
        "run_id is that of 2026-01-01_02_other/verification/manifest.json",
    ),
    Forgery("no second run", forget_second, ("verification",), "pending - run python -m"),
]  # fmt: skip
