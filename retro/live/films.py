"""Videos of the live view, each made in a process of its own that gives way to the search.

The movie so far, played again from power-on and compared with what the search says of it, with the RAM that
goes with it; and the old and the new piece side by side when a piece got faster.
"""

import os
import secrets
import signal
import threading
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import av
import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw, ImageFont

from harness.errors import Problem
from harness.files import canonical_json, sha256_file, write_atomic
from retro.emulator import Emulator
from retro.fresh import run_fresh
from retro.inputs import parse_inputs
from retro.live.kept import Comparison, keep_wanted, kept_wanted
from retro.live.snapshot import COMPARISON, MOVIE, RAM, Movie
from retro.packages import load_package
from retro.replay import replay
from retro.search.route import Piece
from retro.video import write_video

SCALE = 2
NICE = 10  # a search comes first; but the lowest priority would get next to nothing beside one on all cores
ROWS, VALUES = 20_000, 400_000  # of sampled RAM, at most
BAR, GAP, REST = 56, 16, 1.5  # pixels above the pictures, pixels between them, seconds at the end
INK, FASTER, GROUND = (236, 236, 240), (86, 211, 140), (16, 16, 24)


# ---- what is asked for, from any thread --------------------------------------------------------------------


class Films:
    """A thread that has videos made, one after the other; of several wishes of a kind the last counts."""

    def __init__(self, folder: Path, spec: str, told: Callable[[Exception], None]) -> None:
        """`told` is called with what goes wrong; nothing is raised."""
        self.movie: Movie | None = None
        """The one that lies in the folder."""
        self._folder, self._spec, self._told = folder, spec, told
        self._wishes: dict[str, dict[str, Any]] = {}
        self._changed = threading.Condition()
        self._busy = False
        threading.Thread(target=self._work, name="films", daemon=True).start()

    def show(self, pieces: Sequence[Piece]) -> None:
        """Have the movie made."""
        claims = [(piece.entered, piece.frames, piece.ram_hash) for piece in pieces]
        self._wish("movie_job", {"inputs": _inputs(pieces), "claims": claims})

    def compare(
        self, before: Sequence[Piece], old: Sequence[Piece], new: Sequence[Piece], title: str
    ) -> None:
        """Have pieces shown side by side, each from where the pieces before them lead; it is made after a
        restart if this process ends before."""
        wanted = Comparison(before=_inputs(before), old=_inputs(old), new=_inputs(new), title=title)
        with self._changed:
            self._wish("comparison_job", wanted.model_dump())
            self._keep(wanted)

    def go_on(self) -> None:
        """Have made what was asked for before a restart; a Problem where the folder tells it wrong."""
        if (wanted := kept_wanted(self._folder)) is not None:
            self._wish("comparison_job", wanted.model_dump())

    def wait(self) -> None:
        """Until nothing is left to make."""
        with self._changed:
            self._changed.wait_for(lambda: not self._wishes and not self._busy)

    def _wish(self, call: str, job: dict[str, Any]) -> None:
        with self._changed:
            self._wishes[call] = {**job, "package": self._spec, "folder": str(self._folder.resolve())}
            self._changed.notify_all()

    def _keep(self, wanted: Comparison | None) -> None:
        try:
            keep_wanted(self._folder, wanted)
        except Exception as error:
            self._told(error)

    def _work(self) -> None:
        # Processes inherit it: Ctrl-C is for the search, and they end with it.
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._wishes)
                call = min(self._wishes, key=["movie_job", "comparison_job"].index)
                job = self._wishes.pop(call)
                self._busy = True
            made = False
            try:
                answer = run_fresh(f"retro.live.films:{call}", job)
                if call == "movie_job":
                    self.movie = Movie(**answer)
                made = True
            except Exception as error:
                self._told(error)
            with self._changed:
                if made and call == "comparison_job" and call not in self._wishes:
                    self._keep(None)
                self._busy = False
                self._changed.notify_all()


def _inputs(pieces: Sequence[Piece]) -> str:
    return " ".join(piece.inputs for piece in pieces)


# ---- in the process of its own -----------------------------------------------------------------------------


def movie_job(job: Mapping[str, Any]) -> dict[str, Any]:
    """Replay, film, and write the RAM that goes with it; returns the fields of `Movie`."""
    os.nice(NICE)
    package, folder = load_package(job["package"]), Path(job["folder"])
    length = sum(taken for _, taken, _ in job["claims"])
    every = max(1, -(-length // ROWS), -(-length * len(package.variables) // VALUES))
    rows: list[list[int]] = []

    def note(emulator: Emulator, ram: Any) -> None:
        if (emulator.frame - 1) % every == 0:
            rows.append([int(value) for value in ram])

    shown = replay(package, job["inputs"], watch=note)
    frames, verified = 0, True
    for entered, taken, _ in job["claims"]:
        frames += taken
        verified &= shown.splits.get(entered) == frames
    verified &= shown.frames == frames and shown.ram_hashes[-1] == job["claims"][-1][2]
    write_video(folder / MOVIE, job["package"], job["inputs"], scale=SCALE)
    digest = sha256_file(folder / MOVIE)
    ram = {"movie": digest, "names": list(package.variables), "every": every, "values": rows}
    write_atomic(folder / RAM, canonical_json(ram) + "\n")
    return {"sha256": digest, "frames": shown.frames, "verified": verified}


def comparison_job(job: Mapping[str, Any]) -> None:
    """Film two ways from one start, side by side; the shorter rests in its last frame."""
    os.nice(NICE)
    package = load_package(job["package"])
    emulator = package.open()
    before, old, new = (parse_inputs(job[name], emulator.buttons) for name in ("before", "old", "new"))
    for bits in before:
        emulator.step(bits)
    path = Path(job["folder"], COMPARISON)
    temporary = path.with_name(f".{path.stem}.{secrets.token_hex(4)}.mp4")
    try:
        _film(temporary, emulator, (old, new), job["title"])
        with temporary.open("rb") as handle:
            os.fsync(handle.fileno())
        temporary.replace(path)
    except OSError as error:
        raise Problem(f"cannot be written: {error}", file=path) from error
    finally:
        temporary.unlink(missing_ok=True)
        emulator.close()


def _film(path: Path, emulator: Emulator, ways: Sequence[Sequence[int]], title: str) -> None:
    states = [emulator.save()] * len(ways)
    screens: list[NDArray[np.uint8]] = [emulator.screen()] * len(ways)
    height, width = (SCALE * side for side in screens[0].shape[:2])
    rate = emulator.exact_frame_rate
    with av.open(str(path), "w", format="mp4") as container:
        video = container.add_stream("libx264", rate=rate)
        video.width, video.height = (2 * width + GAP) // 2 * 2, (BAR + height) // 2 * 2
        video.pix_fmt = "yuv420p"
        video.options = {"crf": "20", "preset": "medium", "tune": "animation"}
        size, lengths = (video.width, video.height), [len(way) for way in ways]
        length = max(lengths) + round(REST * rate)
        for number in range(length):
            for place, inputs in enumerate(ways):  # a process holds one emulator, so they take turns
                if number < len(inputs):
                    emulator.load(states[place])
                    emulator.step(inputs[number])
                    states[place], screens[place] = emulator.save(), emulator.screen()
            drawn = _drawn(screens, size, lengths, number + 1, title)
            frame = av.VideoFrame.from_ndarray(drawn)
            frame.pts, frame.time_base = number, 1 / rate
            container.mux(video.encode(frame))
        container.mux(video.encode(None))


def _drawn(
    screens: Sequence[NDArray[np.uint8]], size: tuple[int, int], lengths: Sequence[int], at: int, title: str
) -> NDArray[np.uint8]:
    """One picture of a comparison: above each screen what it is, and how many frames it has taken."""
    picture = Image.new("RGB", size, GROUND)
    draw = ImageDraw.Draw(picture)
    large, small = ImageFont.load_default(size=22), ImageFont.load_default(size=14)
    half = (size[0] + GAP) // 2
    for place, (screen, length) in enumerate(zip(screens, lengths, strict=True)):
        shown = Image.fromarray(screen.repeat(SCALE, 0).repeat(SCALE, 1))
        left = place * half
        picture.paste(shown.crop((0, 0, half - GAP, size[1] - BAR)), (left, BAR))
        name = f"{title}, {'before' if place == 0 else f'now {lengths[0] - length} frames faster'}"
        draw.text((left + 8, 6), name, INK, small)
        done = at >= length
        color = FASTER if done and length == min(lengths) else INK
        draw.text((left + 8, 25), f"{min(at, length)} of {length} frames", color, large)
    return np.asarray(picture)
