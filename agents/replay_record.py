"""FIXED: a record's runs made again from the answers in their evidence, without any model.

    python -m agents.replay_record records/agents/<record>

Evidence holds every answer of training and evaluation with the hash of what was asked. So the whole run can
be made again: the same questions must come up, training must end with the memory in the record, and the test
episodes must be played action by action as the evidence says. What stays the server's word is that it gave
these answers, in so many tokens. Model-written code runs in the sandbox, and the record's speedrun.py not at
all. Open files must be as they were, see the manifest. Exits 1 where a run comes out otherwise.
"""

import argparse
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

from agents.config import Config
from agents.core import checkpoint
from agents.core.checkpoint import CACHE
from agents.core.journal import TRAJECTORIES
from agents.core.loop import Experiment
from agents.eval_speedrun import config_of, played_of
from agents.evidence import CallRow, read_checkpoint, read_evidence
from agents.llm.cache import Cache
from agents.llm.reply import Reply, Usage
from agents.memory.trajectory import Trajectory
from agents.task import CHECKPOINT, EVIDENCE, episodes
from agents.track import TRACK
from harness.errors import Problem, run_command
from harness.manifest import Manifest, read_manifest
from harness.record import MANIFEST, SECOND
from harness.track import ROOT, open_file_hashes

NO_SERVER = "http://localhost:9/v1"
"""In place of the server's address, since nothing is asked."""


def differences(run: Path) -> Iterator[str]:
    """What comes out otherwise when the run in a folder of a record is made again.

    Raises:
        Problem: a file breaks the rules, open files are others here, or the benchmark cannot run here.
    """
    manifest, found = read_manifest(run / MANIFEST), read_evidence(run / EVIDENCE)
    _require_open_files(manifest, run / MANIFEST)
    memory = read_checkpoint(run / CHECKPOINT, str(manifest.recipe["method"]), manifest.seed)
    config = config_of(manifest.recipe_name, {**manifest.recipe, "base_url": NO_SERVER}, manifest.seed)
    with tempfile.TemporaryDirectory() as folder:
        answers = Path(folder) / "answers"
        _record_answers(answers, found.calls, config.model.name)
        learned, reason = _learn(Path(folder) / "training", config, answers)
        if reason:
            yield f"training ends otherwise: {reason.replace(f'{answers / CACHE}: ', '')}"
        elif learned != memory:
            yield f"training ends with another memory than {CHECKPOINT}"
        played, reason = _evaluate(Path(folder) / "evaluation", config, memory, answers)
        if reason:
            yield f"the evaluation ends otherwise: {reason.replace(f'{answers / CACHE}: ', '')}"
        for index, one in enumerate(found.episodes):
            if not reason and (index >= len(played) or played[index] != one):
                yield f"test episode {index} of {one.task!r} is played otherwise"


def _require_open_files(manifest: Manifest, file: Path) -> None:
    here = open_file_hashes(TRACK, ROOT)
    if strange := sorted(dict(here.items() ^ manifest.open_files.items())):
        commit = manifest.git.commit if manifest.git else None
        remedy = f"check out those files of commit {commit}" if commit else None
        raise Problem(f"not as they were when it ran: {', '.join(strange)}", file=file, remedy=remedy)


def _record_answers(folder: Path, calls: Sequence[CallRow], model: str) -> None:
    """A recording of the answers in evidence, as a replay reads it."""
    folder.mkdir()
    with closing(Cache(folder / CACHE)) as cache:
        for call in calls:
            if call.reply is not None and call.finish is not None:
                usage = Usage(call.prompt, call.completion)
                reply = Reply(call.reply, call.finish, usage, dollars=None, seconds=0.0, model=model)
                cache.put(call.request, call.label, model, reply)


def _learn(folder: Path, config: Config, answers: Path) -> tuple[Any, str]:
    """The memory after training, and why it did not end complete, or ""."""
    checkpoint.begin(folder, config)
    with closing(Experiment(folder, config, replayed=answers)) as experiment:
        end = experiment.run()
        return experiment.method.dump(), "" if end.status == "complete" else end.reason


def _evaluate(
    folder: Path, config: Config, memory: Mapping[str, Any], answers: Path
) -> tuple[list[Any], str]:
    """The test episodes as played, in order, and why the evaluation did not end complete, or ""."""
    checkpoint.begin(folder, config)
    with closing(Experiment(folder, config, replayed=answers)) as experiment:
        experiment.batches, experiment.evaluation = [], episodes(config.benchmark)
        experiment.journal.begin(memory)
        end = experiment.run()
    if end.status != "complete":
        return [], end.reason
    lines = checkpoint.whole_lines(folder / TRAJECTORIES)
    return [played_of(Trajectory.from_json(line["trajectory"])) for line in lines], ""


def main(arguments: Sequence[str] | None = None) -> int:
    """The command line."""
    parser = argparse.ArgumentParser(
        prog="python -m agents.replay_record",
        description="Make the runs of a record again from the answers in their evidence, without a model.",
    )
    parser.add_argument("record", type=Path, help="folder records/agents/<record>")
    record: Path = parser.parse_args(arguments).record
    if not (record / MANIFEST).is_file():
        raise Problem("is not a record", file=record, remedy="give a folder records/agents/<record>")
    equal = True
    for run in (run for run in (record, record / SECOND) if run.is_dir()):
        faults = list(differences(run))
        print("\n".join(f"{run}: {fault}" for fault in faults) or f"{run}: made again, and equal", flush=True)
        equal &= not faults
    return 0 if equal else 1


if __name__ == "__main__":
    run_command(main)
