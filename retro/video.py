"""Videos of movies: H.264 and AAC in an MP4, at the console's true rate, every pixel a square."""

import os
import secrets
from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

import av
import numpy as np
from numpy.typing import NDArray
from tqdm import tqdm

from harness.errors import Problem
from harness.files import unwritable
from retro.emulator import Emulator
from retro.fresh import run_fresh
from retro.inputs import parse_inputs
from retro.packages import load_package

SCALES = (1, 2, 3)
_AUDIO_RATE = 48_000  # samples a second; AAC knows few rates, and not those of the consoles


def write_video(path: Path, spec: str, inputs: Sequence[int] | str, scale: int = 2) -> None:
    """Play inputs from power-on in a fresh process and write an MP4, whole or not at all.

    spec: the package, as in `load_package`. inputs: masks, one a frame, or text. scale: pixels a side for
    each of the console's. A progress bar is shown on a terminal.

    Raises:
        Problem: the path does not end in .mp4 or cannot be written, the inputs are malformed, or the scale is
            not in `SCALES`.
    """
    if scale not in SCALES:
        raise Problem(f"the scale is {scale}", remedy=f"choose from: {', '.join(map(str, SCALES))}")
    if path.suffix != ".mp4":
        raise Problem("the name of a video ends in .mp4", file=path)
    target = path.resolve()
    temporary = target.with_name(f".{target.name}.{secrets.token_hex(4)}.partial")
    job = {
        "package": spec,
        "inputs": inputs if isinstance(inputs, str) else list(inputs),
        "scale": scale,
        "temporary": str(temporary),
        "path": str(target),
    }
    try:
        run_fresh("retro.video:video_job", job, show=True)
    finally:
        temporary.unlink(missing_ok=True)  # where the process was killed


def video_job(job: Mapping[str, Any]) -> None:
    """What the fresh process does, see `retro.fresh`."""
    package = load_package(job["package"])
    emulator = package.open()
    inputs = job["inputs"]
    masks = parse_inputs(inputs, emulator.buttons) if isinstance(inputs, str) else inputs
    if not masks:
        raise Problem("there are no inputs to show")
    temporary, path = Path(job["temporary"]), Path(job["path"])
    try:
        _encode(temporary, emulator, masks, job["scale"], f"video of {package.title}")
        with temporary.open("rb") as handle:
            os.fsync(handle.fileno())
        temporary.replace(path)
    except OSError as error:
        raise unwritable(path, error) from error
    finally:
        temporary.unlink(missing_ok=True)


def _encode(path: Path, emulator: Emulator, masks: Sequence[int], scale: int, title: str) -> None:
    # Games change the resolution as they go, and a video cannot: its picture holds the largest.
    sizes = {screen.shape[:2] for screen in _screens(emulator, masks)}
    height, width = (max(side) * scale for side in zip(*sizes, strict=True))
    with av.open(str(path), "w", format="mp4") as container:
        video = container.add_stream("libx264", rate=emulator.exact_frame_rate)
        video.width, video.height, video.pix_fmt = width + width % 2, height + height % 2, "yuv420p"
        video.options = {"crf": "18", "preset": "medium", "tune": "animation"}
        sound = container.add_stream("aac", rate=_AUDIO_RATE, layout="stereo")
        resampler = av.AudioResampler(format="fltp", layout="stereo", rate=_AUDIO_RATE)
        samples = 0
        screens = tqdm(_screens(emulator, masks), title, len(masks), unit=" frames", disable=None)
        for number, screen in enumerate(screens):
            frame = av.VideoFrame.from_ndarray(_enlarged(screen, scale, video.height, video.width))
            frame.pts, frame.time_base = number, 1 / emulator.exact_frame_rate
            container.mux(video.encode(frame))
            heard = emulator.audio()
            if len(heard):
                piece = av.AudioFrame.from_ndarray(heard.reshape(1, -1), format="s16", layout="stereo")
                piece.sample_rate, piece.pts = emulator.audio_rate, samples
                piece.time_base = Fraction(1, emulator.audio_rate)
                samples += len(heard)
                for resampled in resampler.resample(piece):
                    container.mux(sound.encode(resampled))
        for resampled in resampler.resample(None):
            container.mux(sound.encode(resampled))
        container.mux(video.encode(None))
        container.mux(sound.encode(None))


def _screens(emulator: Emulator, masks: Sequence[int]) -> Iterator[NDArray[np.uint8]]:
    """The picture of every frame from power-on."""
    emulator.power_on()
    for bits in masks:
        emulator.step(bits)
        yield emulator.screen()


def _enlarged(screen: NDArray[np.uint8], scale: int, height: int, width: int) -> NDArray[np.uint8]:
    """The picture with every pixel made `scale` times as wide and high, in the middle of a black one."""
    large = screen.repeat(scale, 0).repeat(scale, 1)
    top, left = (height - large.shape[0]) // 2, (width - large.shape[1]) // 2
    canvas = np.zeros((height, width, 3), np.uint8)
    canvas[top : top + large.shape[0], left : left + large.shape[1]] = large
    return canvas
