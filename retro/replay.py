"""FIXED: movies played again from power-on, and compared with what they claim."""

import base64
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import stable_retro
import xxhash

from harness.errors import Problem
from harness.files import sha256_file
from retro.emulator import Emulator, console_of, versions
from retro.faults import blaming
from retro.fresh import run_fresh
from retro.inputs import parse_inputs
from retro.movie import Evidence, Movie, read_movie
from retro.packages import GamePackage, available_packages, load_package
from retro.packing import pack, unpack

HASH_EVERY = 60  # frames


class Replay(NamedTuple):
    """What a movie's inputs do from power-on."""

    frames: int
    hash_every: int
    ram_hashes: tuple[str, ...]
    """xxh3_64 of work RAM after every `hash_every` frames, and after the last frame."""
    splits: dict[str, int]
    """State -> frames after which it held for the first time, in that order; empty without a package."""
    ending: str
    """Name of the package's last state; "" without a package."""
    dead: int | None
    """Frames after which the run was lost for the first time."""
    screen_hash: str
    """xxh3_64 of the last picture."""
    rom_sha256: str
    core: str
    versions: dict[str, str]
    """Of stable-retro and of the core."""
    boot: bytes
    """The core's savestate before the first frame."""

    @property
    def evidence(self) -> Evidence:
        """What of it a movie carries."""
        return Evidence(self.hash_every, self.ram_hashes, self.splits, self.screen_hash)


class Verification(NamedTuple):
    """A movie and its replay in a fresh process."""

    movie: Movie
    replay: Replay
    package: str | None
    """Which package gave the states; None = none knows this game."""
    differences: list[str]
    """Empty = the movie does what it claims."""

    @property
    def compared(self) -> bool:
        """Whether the movie claims anything: one that stable-retro recorded carries no hashes."""
        return self.movie.evidence is not None


Watch = Callable[[Emulator, Any], None]
"""Called after every frame with the emulator and the values of its variables."""


def replay(
    package: GamePackage,
    inputs: Sequence[int] | str,
    hash_every: int = HASH_EVERY,
    watch: Watch | None = None,
) -> Replay:
    """Play inputs, masks or text, from power-on in this process, which must hold no emulator.

    Raises:
        Problem: the inputs are malformed, none, or press a button in the first frame.
    """
    emulator = package.open()
    try:
        with blaming(package):
            return _play(emulator, package, inputs, hash_every, watch)
    finally:
        emulator.close()


def replay_fresh(spec: str, inputs: Sequence[int] | str, hash_every: int = HASH_EVERY) -> Replay:
    """`replay` in a fresh process, which loads no savestate; `spec` as in `load_package`."""
    plain = inputs if isinstance(inputs, str) else list(inputs)
    return _replay_fresh({"package": spec, "inputs": plain, "hash_every": hash_every})


def verify(path: Path, spec: str | None = None) -> Verification:
    """Replay a movie in a fresh process and compare; `spec` names its package, else its game does.

    Raises:
        Problem: the file is no movie, its ROM is not here, it is a run of another ROM, or it starts from a
            savestate rather than from power-on.
    """
    movie = read_movie(path)
    if spec is None:
        spec = package_of(movie.game)
    elif load_package(spec).name != movie.game:
        raise Problem(f"a movie of {movie.game}, not of {load_package(spec).name}", file=path)
    rom = load_package(spec).rom if spec is not None else _rom(movie.game)
    here = sha256_file(rom, links=True)
    if movie.rom_sha256 is not None and here != movie.rom_sha256:
        raise Problem(
            f"a movie of another ROM: its SHA-256 is {movie.rom_sha256}, and here is {here}",
            file=path,
            remedy=f"put the ROM that the movie was made on in place of {rom}",
        )
    job = {
        "package": spec,
        "rom": str(rom.resolve()),
        "inputs": list(movie.inputs),
        "hash_every": movie.evidence.hash_every if movie.evidence else HASH_EVERY,
        "boot": None if movie.boot is None else _packed(movie.boot),
    }
    try:
        shown = _replay_fresh(job)
    except Problem as problem:
        if problem.file is not None:  # such as the package's
            raise
        raise Problem(problem.reason, file=path, remedy=problem.remedy) from problem
    return Verification(movie, shown, spec, compare(movie, shown))


def compare(movie: Movie, shown: Replay) -> list[str]:
    """How a movie's claims differ from a replay of it, a line each; of hashes only the first that differs."""
    claimed, found = movie.evidence, []
    if claimed is None:
        return []
    if len(claimed.ram_hashes) != len(shown.ram_hashes):
        found.append(f"{len(claimed.ram_hashes)} hashes of work RAM, expected {len(shown.ram_hashes)}")
    for place, (one, other) in enumerate(zip(claimed.ram_hashes, shown.ram_hashes, strict=False), 1):
        if one != other:
            frame = min(place * claimed.hash_every, shown.frames)
            found.append(f"work RAM differs after frame {frame}: {one}, the replay has {other}")
            break
    if shown.ending:
        for state in {**claimed.splits, **shown.splits}:
            said, seen = claimed.splits.get(state), shown.splits.get(state)
            if said != seen:
                found.append(f"{state} is entered at frame {said}, by the replay at {seen}")
    if claimed.screen_hash != shown.screen_hash:
        found.append(f"the last picture differs: {claimed.screen_hash}, the replay has {shown.screen_hash}")
    if found:
        found += [
            f"it was made on {name} {said}, and here is {shown.versions.get(name)}"
            for name, said in movie.versions.items()
            if shown.versions.get(name) != said
        ]
    return found


def package_of(game: str) -> str | None:
    """Name of the package in retro/games for a game of this name, or None where none is for it."""
    problems = []
    for spec in available_packages():
        try:
            if load_package(spec).name == game:
                return spec
        except Problem as problem:
            problems.append(problem)
    if problems:  # it may be the one that was asked for
        raise problems[0]
    return None


def make_movie(package: GamePackage, inputs: Sequence[int], shown: Replay) -> Movie:
    """The movie of inputs that were replayed."""
    return Movie(
        game=package.name,
        inputs=tuple(inputs),
        rom_sha256=shown.rom_sha256,
        system=console_of(package.rom),
        core=shown.core,
        versions=shown.versions,
        boot=shown.boot,
        evidence=shown.evidence,
    )


def _play(
    emulator: Emulator,
    package: GamePackage | None,
    inputs: Sequence[int] | str,
    hash_every: int,
    watch: Watch | None,
) -> Replay:
    masks = parse_inputs(inputs, emulator.buttons) if isinstance(inputs, str) else inputs
    if not masks or masks[0]:
        raise Problem("inputs need at least one frame, the first without buttons")
    if hash_every < 1:
        raise Problem(f"hash_every is {hash_every}, and must be at least 1")
    states = package.states if package is not None else ()
    hashes: list[str] = []
    splits: dict[str, int] = {}
    held, dead = -1, None
    for frame, bits in enumerate(masks, 1):
        emulator.step(bits)
        ram = emulator.values()
        if package is not None:
            held = index if (index := package.state_of(ram)) >= 0 else held
            if held >= 0:
                splits.setdefault(states[held].name, frame)
                if dead is None and states[held].dead(ram):
                    dead = frame
        if frame % hash_every == 0 or frame == len(masks):
            hashes.append(emulator.ram_hash())
        if watch is not None:
            watch(emulator, ram)
    return Replay(
        frames=len(masks),
        hash_every=hash_every,
        ram_hashes=tuple(hashes),
        splits=splits,
        ending=states[-1].name if states else "",
        dead=dead,
        screen_hash=xxhash.xxh3_64_hexdigest(emulator.screen().tobytes()),
        rom_sha256=emulator.rom_sha256,
        core=emulator.core,
        versions={name: said for name, said in versions().items() if name in ("stable-retro", emulator.core)},
        boot=emulator.boot,
    )


def _rom(game: str) -> Path:
    try:
        return Path(stable_retro.data.get_romfile_path(game))
    except FileNotFoundError as error:
        raise Problem(
            f"neither a package nor stable-retro has the ROM of {game}",
            remedy="name its package, or import the ROM with python -m stable_retro.import",
        ) from error


# ---- in a process of its own -------------------------------------------------------------------------------


def _replay_fresh(job: Mapping[str, Any]) -> Replay:
    answer = run_fresh("retro.replay:play_job", job)
    return Replay(**answer | {"ram_hashes": tuple(answer["ram_hashes"]), "boot": _unpacked(answer["boot"])})


def play_job(job: Mapping[str, Any]) -> dict[str, Any]:
    """What the fresh process does, see `retro.fresh`."""
    package = load_package(job["package"]) if job["package"] is not None else None
    emulator = package.open() if package is not None else Emulator(Path(job["rom"]), {})
    boot = job.get("boot")
    if boot is not None and not emulator.is_power_on(_unpacked(boot)):
        raise Problem(
            "the movie starts from a savestate, not from power-on",
            remedy="only runs of the whole game can be verified: record it with State.NONE",
        )
    with blaming(package):
        shown = _play(emulator, package, job["inputs"], job["hash_every"], None)
    return shown._asdict() | {"boot": _packed(shown.boot)}


def _packed(state: bytes) -> str:
    return base64.b64encode(pack(state)).decode()


def _unpacked(text: str) -> bytes:
    return unpack(base64.b64decode(text))
