"""Videos: size, rate, length, sound and pictures as decoded again; faults leave nothing behind."""

import subprocess
import sys
import threading
import time
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path

import av
import numpy as np
import psutil
import pytest

from harness.errors import Problem
from harness.track import ROOT
from retro.inputs import parse_inputs
from retro.packages import load_package
from retro.video import write_video

# Past the title, so that there is a picture and a sound.
INPUTS = {"airstriker": "365 5:START 70", "quarterstep": "20 5:START 80 20:RIGHT 10:RIGHT+A"}
RATES = {"airstriker": Fraction(53693175, 896040), "quarterstep": Fraction(39375000, 655171)}
LONG = "3000"


@pytest.mark.parametrize(("name", "scale"), [("airstriker", 2), ("quarterstep", 3)])
def test_a_video_is_the_run(name: str, scale: int, tmp_path: Path) -> None:
    path = tmp_path / "run.mp4"
    write_video(path, name, INPUTS[name], scale)
    assert list(tmp_path.iterdir()) == [path]
    emulator = load_package(name).open()
    frames = sum(int(run.split(":")[0]) for run in INPUTS[name].split())
    with av.open(str(path)) as container:
        video, sound = container.streams.video[0], container.streams.audio[0]
        assert (video.codec_context.name, sound.codec_context.name) == ("h264", "aac")
        assert (video.frames, video.average_rate) == (frames, RATES[name])
        assert float(video.duration * video.time_base) == pytest.approx(frames / RATES[name], abs=1e-3)
        assert float(sound.duration * sound.time_base) == pytest.approx(frames / RATES[name], abs=0.05)
        pictures = [frame.to_ndarray(format="rgb24") for frame in container.decode(video=0)]
    for picture, bits in zip(pictures, parse_inputs(INPUTS[name], emulator.buttons), strict=True):
        emulator.step(bits)
        shown = emulator.screen()
        assert picture.shape[0] >= shown.shape[0] * scale and picture.shape[1] >= shown.shape[1] * scale
    emulator.close()
    # The last picture, each pixel a square; colour is stored at half the resolution.
    large = shown.repeat(scale, 0).repeat(scale, 1).astype(int)
    assert large.std() > 5
    assert np.abs(picture.astype(int) - large).mean() < 6
    with av.open(str(path)) as container:
        heard = np.concatenate([frame.to_ndarray() for frame in container.decode(audio=0)], axis=1)
    assert np.abs(heard).max() > 0.01


@pytest.mark.parametrize(
    ("path", "inputs", "scale", "reason"),
    [
        ("run.mp4", "10", 4, "the scale is 4.*1, 2, 3"),
        ("run.avi", "10", 2, r"ends in \.mp4"),
        ("run.mp4", "x", 2, "not a run of inputs"),
        ("run.mp4", "", 2, "no inputs"),
        ("none/run.mp4", "10", 2, r"run\.mp4: cannot be written: No such file"),
    ],
)
def test_faults_leave_nothing(path: str, inputs: str, scale: int, reason: str, tmp_path: Path) -> None:
    with pytest.raises(Problem, match=reason):
        write_video(tmp_path / path, "quarterstep", inputs, scale)
    assert not list(tmp_path.iterdir())


def test_a_full_disk_leaves_the_old_video(tmp_path: Path) -> None:
    """A process that may not write more than 20 kilobytes to a file stands for the disk."""
    path = tmp_path / "run.mp4"
    path.write_bytes(b"old")
    script = (
        "import resource, signal, sys\nfrom pathlib import Path\nfrom retro.video import write_video\n"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (20000, 20000))\n"
        "write_video(Path(sys.argv[1]), 'airstriker', '500')\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script, str(path)], capture_output=True, text=True, cwd=ROOT, check=False
    )
    assert "run.mp4: cannot be written: File too large" in done.stderr
    assert list(tmp_path.iterdir()) == [path] and path.read_bytes() == b"old"


def wait_until(holds: Callable[[], object]) -> None:
    deadline = time.monotonic() + 60
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def test_a_killed_encoder_is_a_problem_and_leaves_nothing(tmp_path: Path) -> None:
    problems: list[Problem] = []

    def write() -> None:
        try:
            write_video(tmp_path / "run.mp4", "quarterstep", LONG)
        except Problem as problem:
            problems.append(problem)

    before = {child.pid for child in psutil.Process().children()}
    thread = threading.Thread(target=write)
    thread.start()
    wait_until(lambda: list(tmp_path.iterdir()))
    for child in psutil.Process().children():
        if child.pid not in before:
            child.kill()
    thread.join()
    assert "ended with status -9" in str(problems[0])
    assert not list(tmp_path.iterdir())


def test_a_killed_caller_leaves_no_half_video(tmp_path: Path) -> None:
    script = "import sys; from pathlib import Path; from retro.video import write_video\n"
    script += f"write_video(Path(sys.argv[1]), 'quarterstep', '{LONG}')"
    caller = subprocess.Popen([sys.executable, "-c", script, str(tmp_path / "run.mp4")], cwd=ROOT)
    wait_until(lambda: list(tmp_path.iterdir()))
    encoders = psutil.Process(caller.pid).children()
    caller.kill()
    caller.wait()
    for encoder in encoders:
        encoder.wait(60)
    assert not list(tmp_path.iterdir())
