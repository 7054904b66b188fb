"""FIXED: play the movies that a run found again, from power-on, and write what was seen as evidence.

    python -m retro.eval_speedrun outputs/<run>

Every movie is replayed in a process of its own that loads no savestate. The best one is left in the run's
folder as best.bk2, for the board of the fastest movies, and best.mp4, to look at.
"""

import argparse
from pathlib import Path

from harness.errors import Problem, run_command
from harness.files import sha256_file
from harness.run import Run
from harness.track import Score
from retro.evidence import Found, evidence_header, evidence_row, movie_inputs, read_movies, write_evidence
from retro.task import GAMES, SEARCHES, benchmark
from retro.track import TRACK, replay_all, require_emulator

SCALE = 2  # of the video


def evaluate(run: Run) -> Score:
    """Replay the run's movies, write the evidence, log the score that it gives, end the run."""
    require_emulator()
    from retro.emulator import versions

    checkpoint = run.path / TRACK.checkpoint_name
    found = read_movies(checkpoint, run.seed)
    run.eval_start()
    header = evidence_header(run.manifest.recipe_name, run.seed, sha256_file(checkpoint), versions())
    rows = []
    with run.progress(len(found), "movie") as bar:
        for one, replay in zip(found, replay_all(found), strict=True):
            rows.append(evidence_row(one, replay))
            bar.update()
    evidence = run.path / TRACK.evidence_name
    write_evidence(evidence, header, rows)
    score = TRACK.score(evidence)
    run.eval_stop(evidence, score)
    run.stop()
    for game in GAMES:
        played = [(row["frames"], one) for one, row in zip(found, rows, strict=True) if one.game == game.name]
        done = [(frames, one) for frames, one in played if frames is not None]
        print(f"{game.name}: {len(done)} of {SEARCHES} searches reached the ending", flush=True)
        if done:
            keep_best(run.path, *min(done, key=lambda pair: pair[0]))
    return score


def keep_best(folder: Path, frames: int, found: Found) -> None:
    """Leave a movie and its video in a folder, cut off at the frame in which the ending holds."""
    from retro.emulator import CONSOLES, console_of
    from retro.movie import write_movie
    from retro.packages import load_package
    from retro.replay import make_movie, replay_fresh
    from retro.times import format_frames
    from retro.video import write_video

    game = benchmark(found.game)
    package = load_package(game.package)
    inputs = movie_inputs(found)[:frames]
    name = "best" if len(GAMES) == 1 else f"best_{game.name}"
    movie, video = folder / f"{name}.bk2", folder / f"{name}.mp4"
    write_movie(movie, make_movie(package, inputs, replay_fresh(game.package, inputs)))
    best = f"the optimum is {game.best:,}" if game.proven else f"the fewest known are {game.best:,}"
    rate = CONSOLES[console_of(package.rom)].frame_rates[0]
    print(f"Best: {format_frames(frames, rate)}, {best}: {movie}", flush=True)
    try:
        write_video(video, game.package, inputs, scale=SCALE)
    except Problem as problem:  # the run is scored, and stands without its video
        print(f"No video: {problem}", flush=True)
    else:
        print(f"Video: {video}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m retro.eval_speedrun",
        description="Replay the movies that a run found, from power-on, and score them.",
    )
    parser.add_argument("run", type=Path, help="run folder, outputs/<run>")
    arguments = parser.parse_args()
    with Run.open(arguments.run, TRACK.name) as run:
        evaluate(run)


if __name__ == "__main__":
    run_command(main)
