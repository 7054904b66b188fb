"""A standing record of the retro track made untrue in what is the track's own."""

import json
import lzma
import shutil
from collections.abc import Callable
from typing import Any

from forgeries.table import EITHER, Forgery, bomb, fixed, packed
from harness.packed import read_unpacked
from retro.evidence import search_seed
from retro.task import GAMES, MOST_FRAMES
from toy_track.forging import Forged, Row, Step, both, play, then, update, write

ORIGINAL = "2026-11-30_02_coarse-cells"
SECOND = ("verification",)
EVIDENCE, MOVIES = "evidence.jsonl.xz", "movies.json"
GAME = GAMES[0].name


def movie(change: Callable[[str], object]) -> Step:
    """Other inputs of the second search, in movies and evidence, with all else that was said of them."""

    def forge(f: Forged) -> None:
        inputs = change(f.rows()[2]["inputs"])
        searched(f, lambda rows: rows[1].update(inputs=inputs))
        f.play(lambda rows: rows[2].update(inputs=inputs))

    return forge


def searched(f: Forged, change: Callable[[list[Row]], object]) -> None:
    """Other movies in the checkpoint, which log and evidence name."""
    content = json.loads((f / MOVIES).read_text())
    change(content["searches"])
    f.save(json.dumps(content, separators=(",", ":"), sort_keys=True).encode() + b"\n")


def movies(change: Callable[[list[Row]], object]) -> Step:
    """As a step."""
    return lambda f: searched(f, change)


def follow(f: Forged, seed: int) -> None:
    """Other seeds of the run and of its searches, in movies and evidence."""
    searched(f, lambda rows: [row.update(seed=search_seed(seed, row["search"])) for row in rows])

    def change(rows: list[Row]) -> None:
        rows[0]["seed"] = seed
        for row in rows[1:]:
            row["seed"] = search_seed(seed, row["search"])

    f.play(change)


def copy_movies(f: Forged) -> None:
    """The movies of the first run, under the seeds of the second."""
    others = [json.loads(line) for line in read_unpacked(f.path / EVIDENCE).splitlines()]
    seed = f.rows()[0]["seed"]
    searched(
        f, lambda rows: [row.update(inputs=others[place + 1]["inputs"]) for place, row in enumerate(rows)]
    )
    f.play(lambda rows: rows.__setitem__(slice(1, None), others[1:]))
    follow(f, seed)


def copy_record(f: Forged) -> None:
    """The whole record beside itself, under a number of its own."""
    shutil.copytree(f.path, f.path.with_name("2026-11-30_99_copy"))


def row(**changes: Any) -> Step:
    """Other fields in the line of the second search."""
    return update(2, **changes)


def hashes(change: Callable[[list[str]], object]) -> Step:
    """Other hashes of work RAM in the line of the second search."""
    return play(lambda rows: change(rows[2]["ram"]))


def splits(**changes: int) -> Step:
    """Other splits in the line of the second search."""
    return play(lambda rows: rows[2]["splits"].update(changes))


def swap(rows: list[Row]) -> None:
    """Two searches in each other's place."""
    rows[2], rows[3] = rows[3], rows[2]


def fewer(rows: list[Row]) -> None:
    """One frame less, in the frames and in the split of the ending."""
    rows[2]["frames"] -= 1
    rows[2]["splits"]["ending"] -= 1


def wait_less(text: str) -> str:
    """The inputs with one frame cut out of the first wait."""
    first, rest = text.split(" ", 1)
    return f"{int(first) - 1} {rest}"


def from_a_savestate(text: str) -> str:
    """The second half of the inputs alone, as if they went on from where the first half ends."""
    runs = text.split(" ")
    half = next(place for place, run in enumerate(runs) if place > len(runs) // 2 and ":" in run)
    return " ".join(["1", *runs[half:]])


def press_at_once(text: str) -> str:
    """The inputs with START held from the very first frame."""
    return f"1:START {text}"


SAME_SEED: dict[str, Step] = {
    "blanks in the movies": lambda f: f.save((f / MOVIES).read_bytes().replace(b",", b" , ")),
    "another version of a library": play(lambda rows: rows[0]["versions"].update({"stable-retro": "9"})),
}
_FIXED = ("fixed_files", "verification/fixed_files")
FORGERIES: list[Forgery] = [
    # ---- what a replay shows ----
    Forgery("a frame less said", play(fewer), ("evidence",), "expected", SECOND),
    Forgery(
        "frames a fraction", play(lambda rows: rows[2].update(frames=rows[2]["frames"] + 0.0)),
        ("evidence",), "frames is", SECOND,
    ),
    Forgery("negative frames", row(frames=-1), ("evidence",), "frames is -1, expected", SECOND),
    Forgery(
        "a hash of RAM edited", hashes(lambda ram: ram.__setitem__(3, "0" * 16)), ("evidence",),
        "hash 3 of work RAM", SECOND,
    ),
    Forgery("a hash of RAM left out", hashes(list.pop), ("evidence",), "of work RAM", SECOND),
    Forgery("hashes of RAM reordered", hashes(list.reverse), ("evidence",), "hash 0 of work RAM", SECOND),
    Forgery("a split edited", splits(ending=1), ("evidence",), "splits is", SECOND),
    Forgery("a split of a level that there is not", splits(bonus=7), ("evidence",), "splits is", SECOND),
    Forgery("another last picture", row(screen="0" * 16), ("evidence",), "screen is 0000", SECOND),
    # ---- the movie ----
    Forgery("a frame cut", movie(wait_less), ("evidence",), "expected", SECOND),
    Forgery("a movie from a savestate", movie(from_a_savestate), ("evidence",), "expected", SECOND),
    Forgery("a savestate beside the inputs", row(state="AAAA"), ("evidence",), "must have exactly", SECOND),
    Forgery(
        "buttons in the first frame", movie(press_at_once), ("evidence",), "press buttons in frame 0",
        SECOND,
    ),
    Forgery(
        "inputs written in another way", movie(lambda text: f"{text} 1 1"), ("evidence",), "not written as",
        SECOND,
    ),
    Forgery(
        "blanks in inputs", movie(lambda text: text.replace(" ", "  ")), ("evidence",), "not written as",
        SECOND,
    ),
    Forgery(
        "a button that there is not", movie(lambda text: f"{text} 1:TURBO"), ("evidence",), "'TURBO' is no",
        SECOND,
    ),
    Forgery(
        "a button that looks alike", movie(lambda text: text.replace("A", "\u0391")), ("evidence",),
        "not a button", SECOND,
    ),
    Forgery(
        "too many frames", movie(lambda text: f"{text} {MOST_FRAMES}"), ("evidence",), "expected 1 to",
        SECOND,
    ),
    Forgery(
        "frames without bound", movie(lambda text: f"{text} 999999999"), ("evidence",), "must have", SECOND,
    ),
    Forgery(
        "inputs a list", movie(lambda text: [0, 1]), ("evidence", "checkpoint_form"),
        "neither text nor null", SECOND,
    ),
    Forgery("no inputs, and yet an ending", movie(lambda text: None), ("evidence",), "expected None", SECOND),
    Forgery(
        "a movie that the search did not save", row(inputs="20 1:START"), ("evidence",), "are not those of",
        SECOND,
    ),
    # ---- searches and seeds ----
    Forgery("search left out", play(lambda rows: rows.pop(4)), ("evidence",), "7 lines of searches", SECOND),
    Forgery(
        "search repeated", play(lambda rows: rows.insert(4, rows[4])), ("evidence",), "9 lines of", SECOND,
    ),
    Forgery("searches reordered", play(swap), ("evidence",), "search is 2, expected 1", SECOND),
    Forgery(
        "the best search in place of another",
        play(lambda rows: rows.__setitem__(3, rows[2] | {"search": 2})), ("evidence",), "seed is", SECOND,
    ),
    Forgery(
        "a seed not derived", then(row(seed=7), movies(lambda rows: rows[1].update(seed=7))),
        ("evidence", "checkpoint_form"), "seed is 7, expected", SECOND,
    ),
    Forgery(
        "searches of another run's seed", lambda f: follow(f, 7), ("evidence_source", "checkpoint_form"),
        "seed is", SECOND,
    ),
    Forgery("fewer searches", update(0, searches=7), ("evidence",), "searches is 7, expected 8", SECOND),
    Forgery("the first run's movies again", copy_movies, ("evidence_distinct",), "holds the same as", SECOND),
    Forgery(
        "a standing record under another number", copy_record, ("evidence_distinct",),
        f"the same as 2026-11-30_99_copy/{EVIDENCE}",
    ),
    # ---- game, emulator, checkpoint ----
    Forgery("another ROM", update(0, games={GAME: "0" * 64}), ("evidence",), "games is", SECOND),
    Forgery(
        "another game", update(3, game="Airstriker-Genesis-v0"), ("evidence",), "game is 'Airstriker",
        SECOND,
    ),
    Forgery("another core", update(0, versions={"mesen": "1"}), ("evidence",), "versions", SECOND),
    Forgery(
        "a note among the versions", play(lambda rows: rows[0]["versions"].update(note="x")), ("evidence",),
        "versions", SECOND,
    ),
    Forgery("hashed less often", update(0, hash_every=600), ("evidence",), "hash_every is 600", SECOND),
    Forgery(
        "a class that there is not", update(0, **{"class": "gpu"}), ("evidence_source",), "hardware_class",
        SECOND,
    ),
    Forgery(
        "evidence of other movies", update(0, checkpoint_sha256="0" * 64), ("checkpoint",), "expected '000",
        SECOND,
    ),
    Forgery(
        "movies that are none", write(MOVIES, "[]\n"), ("checkpoint", "checkpoint_form", "evidence"),
        "sha256 is", EITHER,
    ),
    Forgery(
        "movies with more", movies(lambda rows: rows[0].update(frames=700)), ("evidence", "checkpoint_form"),
        "must be search 0", SECOND,
    ),
    Forgery("the ROM changed", lambda f: f.fixed(GAMES[0].rom).write_bytes(b"NES"), _FIXED, "rom.nes is"),
    fixed("retro/games/quarterstep/optimum.json"),
    Forgery(
        "trained on another ROM", both(lambda f: f.manifest(data={f"{GAME}/rom.nes": "0" * 64})),
        ("data", "verification/data"), "rom.nes is '000",
    ),
    Forgery(
        "trained on a movie",
        both(lambda f: f.manifest(data=f.read_manifest()["data"] | {"optimum.json": "0" * 64})),
        ("data", "verification/data"), "'optimum.json'",
    ),
    # ---- the packed file ----
    Forgery(
        "a stream that unpacks without bound", packed(bomb()), ("evidence",), "a line of more than", SECOND,
    ),
    Forgery(
        "a stream cut short", packed(lzma.compress(b"{}\n")[:-9]), ("evidence",), "not one whole", SECOND,
    ),
]  # fmt: skip
