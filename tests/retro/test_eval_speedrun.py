"""The evaluation replays what a run found, scores it, and leaves the best movie with its video."""

import subprocess
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import av
import pytest
from retro_runs import slower

from harness.errors import Problem
from harness.files import sha256_file
from harness.log import read_log
from harness.run import Run
from harness.track import ROOT
from retro.eval_speedrun import evaluate
from retro.evidence import Found, expected, movies_bytes
from retro.replay import verify
from retro.task import GAMES
from retro.track import TRACK
from toy_track.records import plain_machine

GAME = GAMES[0]
SEED = 11


def train(outputs: Path, found: Sequence[Found]) -> Path:
    """A run up to its checkpoint."""
    with plain_machine():
        run = Run.create(
            replace(TRACK, calibrate=lambda: 1.0),
            recipe_name="cpu",
            recipe={"seed": SEED},
            hardware_class=TRACK.classes[0],
            seed=SEED,
            seed_source="recipe",
            flags=[],
            smoke=False,
            source=Path(__file__),
            outputs=outputs,
        )
        with run:
            with run.warmup():
                pass
            run.train_start()
            run.record_data(TRACK.data_files().items())
            run.log_step(1, search=0, segment=0, frames=10, cells=3, route=0)
            run.train_stop()
            run.save_checkpoint(movies_bytes(found))
    return run.path


def found(inputs: Sequence[str | None]) -> list[Found]:
    return [one._replace(inputs=text) for one, text in zip(expected(SEED), inputs, strict=True)]


def test_a_run_is_scored_and_its_best_movie_kept(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    texts = (slower(7), None, *[slower(9)] * 6)
    path = train(tmp_path, found([text and f"{text} 30:SELECT" for text in texts]))  # and half a second more
    with Run.open(path) as run:
        score = evaluate(run)
    best = GAME.best
    assert score.value == pytest.approx(((best + 7) / best + 10 + 6 * (best + 9) / best) / 8)
    assert TRACK.score(path / "evidence.jsonl.xz") == score
    log = read_log(path / "log.jsonl")
    assert log.status == "complete"
    assert log.get("eval_stop").fields["evidence_sha256"] == sha256_file(path / "evidence.jsonl.xz")
    movie = verify(path / "best.bk2")
    assert movie.differences == [] and movie.replay.frames == movie.replay.splits["ending"] == best + 7
    with av.open(str(path / "best.mp4")) as video:
        assert video.streams.video[0].frames == best + 7
        assert (video.streams.video[0].width, video.streams.video[0].height) == (480, 448)
    output = capsys.readouterr().out
    assert f"{GAME.name}: 7 of 8 searches reached the ending" in output
    assert (
        f"Best: {best + 7} frames (0:" in output and f"the optimum is {best}: {path / 'best.bk2'}" in output
    )
    assert f"Video: {path / 'best.mp4'}" in output


def test_a_run_without_movies_is_scored_too(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = train(tmp_path, found([None] * 8))
    done = subprocess.run(
        [sys.executable, "-m", "retro.eval_speedrun", str(path)], cwd=ROOT, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert "0 of 8 searches reached the ending" in done.stdout
    assert "10.0000 [10.0000, 10.0000] on 8 searches: the high end 10 is not below the target" in done.stdout
    assert not list(path.glob("best*"))


def test_movies_of_other_searches_are_refused(tmp_path: Path) -> None:
    path = train(tmp_path, [one._replace(seed=one.seed ^ 1) for one in found([None] * 8)])
    with Run.open(path) as run, pytest.raises(Problem, match=r"movies\.json: seed is .*, expected"):
        evaluate(run)


def test_where_there_can_be_no_video_the_run_stands(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail(*arguments: object, **options: object) -> None:
        raise Problem("the disk is full")

    monkeypatch.setattr("retro.video.write_video", fail)
    path = train(tmp_path, found([slower(7)] * 8))
    contents = []
    for _ in range(2):  # and a run that is scored again has the same evidence
        with Run.open(path) as run:
            evaluate(run)
        assert "No video: the disk is full" in capsys.readouterr().out
        assert read_log(path / "log.jsonl").status == "complete" and (path / "best.bk2").is_file()
        contents.append((path / "evidence.jsonl.xz").read_bytes())
    assert contents[0] == contents[1]
