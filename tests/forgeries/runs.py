"""Either run of a record of the toy track made untrue: what is claimed of it, its manifest, log and play."""

from forgeries.table import EITHER, Forgery
from harness.log import read_log
from toy_track.forging import Forged, cut, remove, then, write

WRONG, OTHER_RUN = "0" * 64, "f" * 32
FIXED = "tests/toy_track/track.py"
DIRTY = {"commit": None, "dirty": True, "diff_sha256": WRONG, "dirty_files": [FIXED]}


def fall_short(f: Forged) -> None:
    """A run whose interval begins below the target, honest otherwise."""
    f.replay(75)
    f.publish()
    if not f.part:
        f.follow_first()


def cpu_seconds(forged: Forged) -> float:
    """What the log of the run at hand says of CPU time."""
    log = read_log(forged / "log.jsonl")
    return round(log.cpu_s, 3)


MISSING = ("folder_contents", "file_hashes")
_ROWS = [
    # ---- what record.json says of a run ----
    Forgery("time", lambda f: f.own("time_s", 0.001), ("time",), "time_s is 0.001, expected"),
    Forgery("CPU time", lambda f: f.own("cpu_s", 9.5), ("cpu_time",), "cpu_s is 9.5, expected"),
    Forgery("cost where time ranks", lambda f: f.own("cost", 7.0), ("cost",), "cost is 7.0, expected None"),
    Forgery("seed", lambda f: f.own("seed", 7), ("manifest_agrees",), "seed is 7, expected"),
    Forgery(
        "calibration", lambda f: f.own("calibration_s", 9.0), ("manifest_agrees",),
        "calibration_s is 9.0, expected",
    ),
    Forgery(
        "score", lambda f: f.own("score.value", 0.95), ("score", "score_in_log"),
        "score.value is 0.95, expected 0.9", second=("published",),
    ),
    Forgery(
        "interval's low end", lambda f: f.own("score.low", 0.89), ("score", "score_in_log"),
        "score.low is 0.89, expected 0.8", second=("published",),
    ),
    Forgery(
        "interval's high end", lambda f: f.own("score.high", 0.99), ("score", "score_in_log"),
        "score.high is 0.99, expected 0.9", second=("published",),
    ),
    Forgery("units", lambda f: f.own("score.count", 1000), ("score",), "score.count is 1000, expected 100"),
    # ---- manifest ----
    Forgery("manifest missing", remove("manifest.json"), ("manifest", *MISSING), "manifest.json: is missing"),
    Forgery("manifest a list", write("manifest.json", "[]\n"), ("manifest",), "manifest.json"),
    Forgery("manifest binary", write("manifest.json", b"\xff\x00"), ("manifest", "text_files"), "not UTF-8"),
    Forgery("manifest with more", lambda f: f.manifest(surprise=1), ("manifest",), "surprise"),
    Forgery("manifest's number a text", lambda f: f.manifest(seed="1"), ("manifest",), "seed"),
    Forgery(
        "track of the run", lambda f: f.manifest(track="other"), ("manifest_agrees",), "expected 'other'",
    ),
    Forgery("ruleset of the run", lambda f: f.manifest(ruleset="0"), ("manifest_agrees",), "expected '0'"),
    Forgery(
        "class of the run", lambda f: f.manifest(hardware_class="1xH100"),
        ("class", "manifest_agrees", "recipe_in_source"),
        "the machine is of class cpu, the manifest says '1xH100'",
    ),
    Forgery(
        "no class", lambda f: f.manifest(hardware_class=None),
        ("eligible", "class", "manifest_agrees", "recipe_in_source"), "no hardware class",
    ),
    Forgery(
        "machine", lambda f: f.manifest(machine=f.read_manifest()["machine"] | {"gpus": ["T4"]}), ("class",),
        "the machine is of no class", first=("manifest_agrees",),
    ),
    Forgery("smoke run", lambda f: f.manifest(smoke=True), ("eligible",), "smoke"),
    Forgery("flags", lambda f: f.manifest(flags=["--recipe.rate"]), ("eligible",), "--recipe.rate"),
    *(
        Forgery(f"{what} on the command line", lambda f, line=line: f.manifest(argv=line.split()), ("argv",),
                "expected 'python -m toy_track.speedrun")
        for what, line in (
            ("a flag", "python -m toy_track.speedrun --recipe.rate 9 --verify records/x"),
            ("another script", "python trick.py"),
            ("another module", "python -m toy_track.other"),
            ("an option of Python", "python -O -m toy_track.speedrun"),
            ("code", "python -c import.toy_track"),
            ("nothing", ""),
            ("smoke", "python -m toy_track.speedrun --smoke"),
            ("two records", "python -m toy_track.speedrun --verify records/x --verify records/y"),
        )
    ),
    Forgery("resumed", lambda f: f.manifest(resumed=True), ("eligible",), "resumed"),
    Forgery("customized", lambda f: f.manifest(customized=["usercustomize"]), ("eligible",), "customized"),
    Forgery(
        "environment with more", lambda f: f.manifest(environment={"HOME": "/"}), ("eligible",),
        "environment is {'HOME': '/'}, expected {} by",
    ),
    Forgery("changed fixed file", lambda f: f.manifest(git=DIRTY), ("eligible",), FIXED),
    Forgery(
        "environment",
        lambda f: f.manifest(environment={"OMP_WAIT": "1"}, overriding_environment=["OMP_WAIT"]),
        ("eligible",), "the environment overrides it: OMP_WAIT",
    ),
    Forgery(
        "environment played down", lambda f: f.manifest(environment={"OMP_WAIT": "1"}), ("eligible",),
        "overriding_environment is (), expected ('OMP_WAIT',)",
    ),
    Forgery(
        "fixed file", lambda f: f.manifest(fixed_files={FIXED: WRONG}), ("fixed_files",), f"{FIXED} is 000",
    ),
    Forgery("fixed file left out", lambda f: f.manifest(fixed_files={}), ("fixed_files",), "is not listed"),
    Forgery("no data", lambda f: f.manifest(data={}), ("data", "same_recipe"), "names no file"),
    Forgery(
        "unknown data", lambda f: f.manifest(data={"test.txt": WRONG}), ("data", "same_recipe"),
        "'test.txt'",
    ),
    Forgery(
        "other data", lambda f: f.manifest(data={"squares.txt": WRONG}), ("data", "same_recipe"),
        "squares.txt is '000",
    ),
    Forgery("start", lambda f: f.manifest(started_utc="2026-01-01T00:00:00Z"), ("start",), "2026-01-01"),
    Forgery(
        "run", lambda f: f.manifest(run_id=OTHER_RUN), ("log_identity",), f"expected '{OTHER_RUN}'",
        first=("second_seed", "verifies"),
    ),
    # ---- recipe ----
    Forgery(
        "recipe", lambda f: f.manifest(recipe=f.read_manifest()["recipe"] | {"right": 99}),
        ("recipe_hash", "recipe_in_source", "same_recipe"), "recipe_sha256 is",
    ),
    Forgery(
        "recipe with its hash", lambda f: f.recipe(right=99), ("recipe_in_source", "same_recipe"),
        "right is 99, expected 90 by speedrun.py:", first=("second_seed",),
    ),
    Forgery(
        "recipe with one field more", lambda f: f.recipe(trick=1), ("recipe_in_source", "same_recipe"),
        "has 'trick'", first=("second_seed",),
    ),
    Forgery(
        "whole number for a fraction", lambda f: f.recipe(steps=3.0), ("recipe_in_source",),
        "steps is 3.0, expected 3 by speedrun.py:", first=("second_seed", "same_recipe"),
        second=("same_recipe",),
    ),
    Forgery(
        "recipe of another name", lambda f: f.manifest(recipe_name="1xH100"),
        ("recipe_in_source", "same_recipe"), "recipe_name is '1xH100', expected 'cpu'",
    ),
    Forgery(
        "source of the run", lambda f: f.manifest(source_sha256=WRONG), ("source", "same_recipe"),
        "expected '000",
    ),
    # ---- log ----
    Forgery("log missing", remove("log.jsonl"), ("log_order", *MISSING), "log.jsonl: is missing"),
    Forgery("log empty", write("log.jsonl", ""), ("log_order",), "log.jsonl: the log is empty"),
    Forgery(
        "log binary", write("log.jsonl", b"\x80\x00\n"), ("log_order", "text_files"),
        "log.jsonl:1: not UTF-8",
    ),
    Forgery("log of lists", write("log.jsonl", "[]\n"), ("log_order",), "log.jsonl:1: not a JSON object"),
    Forgery("log cut", cut("log.jsonl"), ("log_order",), "log.jsonl:12: the last line is cut short"),
    Forgery(
        "log ends early", lambda f: f.log(lambda e: e.pop()), ("log_order",),
        "log.jsonl:11: ends incomplete",
    ),
    Forgery(
        "interrupted", lambda f: f.event("run_stop", status="interrupted", reason="Ctrl-C"), ("log_order",),
        "log.jsonl:12: ends interrupted",
    ),
    Forgery(
        "events swapped", lambda f: f.log(lambda e: e.insert(4, e.pop(5))), ("log_order",), "log.jsonl:5: ",
    ),
    Forgery(
        "step left out", lambda f: f.log(lambda e: e.pop(5)), ("log_order",), "log.jsonl:6: step 3 follows",
    ),
    Forgery(
        "step repeated", lambda f: f.log(lambda e: e.insert(5, e[5])), ("log_order",),
        "log.jsonl:7: step 2 follows",
    ),
    Forgery(
        "no warm-up", lambda f: f.log(lambda e: e.pop(1)), ("log_order",), "log.jsonl:2: warmup_stop cannot",
    ),
    Forgery(
        "two starts", lambda f: f.log(lambda e: e.insert(3, e[3])), ("log_order",),
        "log.jsonl:5: train_start",
    ),
    Forgery(
        "a step before the start", lambda f: f.log(lambda e: e.insert(3, e.pop(4))), ("log_order",),
        "log.jsonl:4: step cannot follow warmup_stop",
    ),
    Forgery(
        "a step after the stop", lambda f: f.log(lambda e: e.insert(7, e.pop(6))), ("log_order",),
        "train_stop counts 3 steps, the log has 2",
    ),
    Forgery("unknown event", lambda f: f.event("step", event="nap"), ("log_order",), "unknown event 'nap'"),
    Forgery("NaN", lambda f: f.event("step", solve_rate=float("nan")), ("log_order",), "NaN is not"),
    Forgery(
        "steps counted wrong", lambda f: f.event("train_stop", steps=9), ("log_order",), "counts 9 steps",
    ),
    Forgery("clock backwards", lambda f: f.event("train_stop", monotonic=0.0), ("log_order",), "backwards"),
    Forgery(
        "clock jump", then(lambda f: f.shift("train_stop", 10.0, "monotonic"), Forged.retime), ("clocks",),
        "log.jsonl:8: at train_stop utc is -10.0",
    ),
    Forgery(
        "a second cut out of training",
        then(lambda f: f.shift("train_stop", 1.0, "monotonic"), Forged.retime), ("clocks",),
        "from train_start to train_stop utc is -1.0",
    ),
    Forgery("clock set back", lambda f: f.shift("step", -9.0, "utc"), ("clocks",), "log.jsonl:5: utc is"),
    Forgery(
        "time in the log", lambda f: f.shift("train_stop", 5.0, "monotonic", "utc"), ("time",),
        "expected 5.0", first=("second_after_first",),
    ),
    Forgery(
        "pause", then(lambda f: f.shift("train_stop", 31.0, "monotonic", "utc"), Forged.retime),
        ("no_pause",), "log.jsonl:8: train_stop comes 31.0", first=("second_after_first",),
    ),
    Forgery(
        "long warm-up", lambda f: f.shift("warmup_stop", 20.0, "monotonic", "utc"), ("warmup_bound",),
        "log.jsonl:4: train_start comes 20.0", first=("second_after_first",),
    ),
    Forgery(
        "work before the clock", lambda f: f.shift("train_start", 20.0, "monotonic", "utc"),
        ("warmup_bound",), "s after run_start, expected at most 10 s", first=("second_after_first",),
    ),
    Forgery("CPU time in the log", lambda f: f.event("train_stop", cpu_s=99.0), ("cpu_time",), "cpu_s is"),
    Forgery(
        "more CPU time than cores",
        then(lambda f: f.event("train_stop", cpu_s=1e6), lambda f: f.own("cpu_s", cpu_seconds(f))),
        ("cpu_time",), "expected at most",
    ),
    Forgery(
        "log of another run", lambda f: f.event("run_start", run_id=OTHER_RUN), ("log_identity",), "run_id",
    ),
    Forgery(
        "log of another seed", lambda f: f.event("run_start", seed=5), ("log_identity",),
        "log.jsonl:1: seed",
    ),
    Forgery(
        "log of another recipe", lambda f: f.event("run_start", recipe_sha256=WRONG), ("log_identity",),
        "recipe_sha256 is '000",
    ),
    Forgery(
        "score in the log", lambda f: f.event("eval_stop", value=0.95), ("score_in_log",), "log.jsonl:11",
    ),
    # ---- checkpoint and evidence ----
    Forgery("falls short", fall_short, ("target",), "is not above the target 0.7"),
    Forgery(
        "checkpoint swapped", write("checkpoint.bin", "{}"), ("checkpoint",), "checkpoint.bin: sha256 is",
    ),
    Forgery(
        "checkpoint that is none", lambda f: f.save(b"[]"), ("checkpoint_form",),
        "checkpoint.bin: is not an object",
    ),
    Forgery(
        "checkpoint in the log", lambda f: f.event("checkpoint", sha256=WRONG), ("checkpoint",),
        "log.jsonl:9",
    ),
    Forgery(
        "another checkpoint played", lambda f: f.event("eval_start", checkpoint_sha256=WRONG),
        ("checkpoint",), "log.jsonl:10",
    ),
    Forgery(
        "evidence of another checkpoint",
        lambda f: (f / "evidence.jsonl").write_text(f'{{"checkpoint_sha256": "{WRONG}"}}\n'),
        ("checkpoint", "evidence", "evidence_logged"), "evidence.jsonl:1",
    ),
    Forgery(
        "evidence in the log", lambda f: f.event("eval_stop", evidence_sha256=WRONG), ("evidence_logged",),
        "expected '000",
    ),
    Forgery(
        "evidence rewritten", lambda f: f.edit("evidence.jsonl", "{", "{ "), ("evidence_logged",),
        "evidence.jsonl: sha256 is",
    ),
    Forgery(
        "evidence improved",
        lambda f: f.edit("evidence.jsonl", '"number": 99, "answer": -1', '"number": 99, "answer": 9801'),
        ("score", "evidence_logged"), "evidence.jsonl again", first=("second_seed",),
    ),
    Forgery(
        "evidence against the rules", lambda f: f.edit("evidence.jsonl", '"answer": 4', '"answer": "4"'),
        ("evidence", "evidence_logged"), "evidence.jsonl:3: not the answer",
    ),
    *(
        Forgery(
            f"evidence of another {what}",
            lambda f, more=more: f.edit("evidence.jsonl", '"answer": 0', f'"answer": 0, "source": {more}'),
            ("evidence_source", "evidence_logged"), says, first=("second_seed",),
        )
        for what, more, says in (
            ("class", '{"hardware_class": "1xH100"}', "hardware_class is 'cpu', expected '1xH100'"),
            ("seed", '{"seed": 8}', "expected 8 by"),
            ("prompt", '{"recipe": {"prompt": "a hint"}}', "the recipe's prompt is None, expected 'a hint'"),
        )
    ),
    Forgery(
        "evidence cut", cut("evidence.jsonl"), ("evidence", "evidence_logged"),
        "evidence.jsonl:100: the last line",
    ),
    Forgery("evidence empty", write("evidence.jsonl", ""), ("evidence", "evidence_logged"), "0 answers"),
    Forgery(
        "evidence binary", write("evidence.jsonl", b"\xfe\n"), ("evidence", "evidence_logged", "text_files"),
        "not UTF-8",
    ),
    Forgery(
        "evidence missing", remove("evidence.jsonl"),
        ("evidence", "evidence_logged", "checkpoint", *MISSING), "evidence.jsonl: is missing",
    ),
]  # fmt: skip

FORGERIES: list[Forgery] = [forgery._replace(parts=EITHER) for forgery in _ROWS]
