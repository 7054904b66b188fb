"""A run: its folder, its clock and its log.

run = Run.create(TRACK, recipe_name="cpu", recipe=asdict(recipe), hardware_class=hardware, seed=recipe.seed,
                 seed_source="recipe", flags=[], smoke=False, source=Path(__file__))
with run:
    with run.warmup():
        ...
    run.train_start()
    run.record_data(sources)
    run.log_step(1, solve_rate=0.1)
    run.train_stop(torch.cuda.synchronize)
    run.save_checkpoint(data)

with Run.open(path) as run:
    run.eval_start()
    run.eval_stop(evidence, TRACK.score(evidence))
    run.stop()
"""

import json
import sys
import time
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import psutil
from tqdm import tqdm

from harness import machine as machines
from harness import manifest as manifests
from harness.eligibility import eligibility
from harness.errors import Problem
from harness.files import (
    canonical_json,
    read_bytes,
    sha256_bytes,
    sha256_file,
    unwritable,
    write_atomic,
    write_model,
)
from harness.log import LogWriter, read_log
from harness.manifest import Manifest
from harness.progress import progress_bar
from harness.track import (
    ROOT,
    HardwareClass,
    Score,
    Track,
    fixed_file_hashes,
    load_track,
    open_file_hashes,
)

__all__ = ["LOG_NAME", "MANIFEST_NAME", "SOURCE_NAME", "Run", "cpu_seconds"]

MANIFEST_NAME = "manifest.json"
LOG_NAME = "log.jsonl"
SOURCE_NAME = "speedrun.py"


class Run:
    """A run folder and the clock in it. As a context it logs an exception as an interruption."""

    def __init__(self, path: Path, track: Track, manifest: Manifest, warmup_limit_s: float | None) -> None:
        self.path = path
        self.track = track
        self.manifest = manifest
        self._warmup_limit_s = warmup_limit_s
        self._log = LogWriter(path / LOG_NAME)
        self._started: float | None = None
        self._stopped: float | None = None

    @classmethod
    def create(
        cls,
        track: Track,
        *,
        recipe_name: str,
        recipe: Mapping[str, Any],
        hardware_class: HardwareClass,
        seed: int,
        seed_source: str,
        flags: Sequence[str],
        smoke: bool,
        source: Path,
        verifies: str | None = None,
        resumed: bool = False,
        outputs: Path = Path("outputs"),
    ) -> Self:
        """Make a run folder and start its log; prints the machine's calibration and whether the run can rank.

        hardware_class is the class whose recipe runs; the manifest names it only if the machine is of it.
        """
        text = read_bytes(source)
        machine = machines.inspect()
        misfits = machines.misfits(hardware_class, machine)
        environment = manifests.launch_environment()
        print(f"{track.title} on {hardware_class.title}, recipe {recipe_name}, seed {seed}", flush=True)
        calibration_s = track.calibrate()
        print(f"Calibration: {calibration_s:.2f} s", flush=True)
        manifest = Manifest(
            run_id=uuid.uuid4().hex,
            ruleset=track.ruleset,
            track=track.name,
            hardware_class=None if misfits else hardware_class.name,
            recipe_name=recipe_name,
            recipe=_plain(recipe),
            recipe_sha256=sha256_bytes(canonical_json(recipe).encode()),
            seed=seed,
            seed_source=seed_source,
            verifies=verifies,
            source_sha256=sha256_bytes(text),
            fixed_files=fixed_file_hashes(track),
            open_files=open_file_hashes(track),
            data={},
            git=manifests.read_git(ROOT),
            packages=manifests.installed_packages(),
            machine=machine,
            calibration_s=calibration_s,
            argv=tuple(sys.orig_argv),
            flags=tuple(flags),
            environment=manifests.relevant(environment),
            overriding_environment=manifests.overriding(environment),
            smoke=smoke,
            started_utc=datetime.now(UTC),
            resumed=resumed,
        )
        name = f"{track.name}_{hardware_class.name}_seed{seed}{'_smoke' if smoke else ''}"
        path = _new_folder(outputs, name)
        write_atomic(path / SOURCE_NAME, text)
        write_model(path / MANIFEST_NAME, manifest)
        run = cls(path, track.of_class(hardware_class.name), manifest, hardware_class.warmup_limit_s)
        run._log.write("run_start", run_id=manifest.run_id, seed=seed, recipe_sha256=manifest.recipe_sha256)
        unlike = [f"it is not {hardware_class.name}: {reason}" for reason in misfits]
        if reasons := eligibility(manifest, None) + unlike:
            print(f"This run ranks nowhere: {'; '.join(reasons)}", flush=True)
        print(f"Run folder: {path}", flush=True)
        return run

    @classmethod
    def open(cls, path: Path) -> Self:
        """Open a trained run for its evaluation; a Problem where the checkpoint it saved is not there."""
        manifest = manifests.read_manifest(path / MANIFEST_NAME)
        track = load_track(manifest.track).under(manifest.ruleset).of_class(manifest.recipe_name)
        log = read_log(path / LOG_NAME)
        saved = log.get("checkpoint")
        if sha256_file(path / track.checkpoint_name) != saved.fields["sha256"]:
            raise Problem("is not the checkpoint that the log names", file=path / track.checkpoint_name)
        run = cls(path, track, manifest, None)
        run._started, run._stopped = log.get("train_start").monotonic, log.get("train_stop").monotonic
        return run

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if error is not None and not self._log.stopped:
            message = " ".join(str(error).split())[:200]
            reason = (
                "Ctrl-C" if isinstance(error, KeyboardInterrupt) else f"{type(error).__name__}: {message}"
            )
            print(f"\nInterrupted, {self.path} is incomplete: {reason}", file=sys.stderr)
            try:
                self._log.write("run_stop", status="interrupted", reason=reason)
            except Problem as problem:  # the error on its way says more
                print(problem, file=sys.stderr)

    # ---- training ------------------------------------------------------------------------------------

    @contextmanager
    def warmup(self) -> Iterator[None]:
        """Compile, allocate and try on made-up data in here; afterwards set weights and random state back."""
        start = self._log.write("warmup_start").monotonic
        yield
        seconds = self._log.write("warmup_stop").monotonic - start
        if self._warmup_limit_s is not None and seconds > self._warmup_limit_s:
            limit = f"{self._warmup_limit_s:.0f} s"
            print(f"This run ranks nowhere: the warm-up took {seconds:.1f} s, more than {limit}", flush=True)

    def train_start(self) -> None:
        """Start the clock."""
        self._started = self._log.write("train_start", cpu_s=cpu_seconds()).monotonic

    def record_data(self, sources: Iterable[tuple[str, str]]) -> None:
        """Note the (name, SHA-256) of files that training reads, in the manifest."""
        data = {**self.manifest.data, **dict(sources)}
        self.manifest = Manifest.model_validate({**dict(self.manifest), "data": data})
        write_model(self.path / MANIFEST_NAME, self.manifest)

    def log_step(self, step: int, **numbers: float) -> None:
        """Log step 1, 2, 3, ... with plain numbers."""
        self._log.write("step", step=step, **numbers)

    def train_stop(self, synchronize: Callable[[], None] | None = None) -> None:
        """Stop the clock, after `synchronize` has waited for the device."""
        if synchronize is not None:
            synchronize()
        event = self._log.write("train_stop", steps=self._log.steps, cpu_s=cpu_seconds())
        self._stopped = event.monotonic
        print(f"Trained in {self.elapsed_s:.1f} s, {self._log.steps} steps", flush=True)

    def save_checkpoint(self, data: bytes) -> None:
        """Write the checkpoint and log its hash."""
        write_atomic(self.path / self.track.checkpoint_name, data)
        self._log.write("checkpoint", sha256=sha256_bytes(data))

    # ---- evaluation ----------------------------------------------------------------------------------

    def eval_start(self) -> None:
        """Begin the evaluation, in place of an earlier one."""
        checkpoint = sha256_file(self.path / self.track.checkpoint_name)
        self._log.rewind()
        self._log.write("eval_start", checkpoint_sha256=checkpoint)

    def eval_stop(self, evidence: Path, score: Score) -> None:
        """End the evaluation with the evidence, which lies in the run folder, and what it is worth."""
        if evidence.resolve() != (self.path / self.track.evidence_name).resolve():
            raise Problem(f"evidence belongs in {self.path / self.track.evidence_name}", file=evidence)
        values = {"value": score.value, "low": score.low, "high": score.high}
        self._log.write("eval_stop", evidence_sha256=sha256_file(evidence), **values)
        print(
            f"{self.track.metric} {score.value:.4f} [{score.low:.4f}, {score.high:.4f}] on {score.count} "
            f"{score.unit}: {self.track.verdict(score)}",
            flush=True,
        )
        if self.track.cost is not None:
            cost = "not known" if score.cost is None else f"{score.cost:,.0f}"
            print(f"{self.track.cost}: {cost}", flush=True)

    def stop(self) -> None:
        """End the run: it is complete."""
        self._log.write("run_stop", status="complete")

    # ---- at any time ---------------------------------------------------------------------------------

    @property
    def seed(self) -> int:
        """The seed of everything random in the run."""
        return self.manifest.seed

    @property
    def elapsed_s(self) -> float:
        """Seconds on the clock: 0 before train_start, fixed after train_stop."""
        if self._started is None:
            return 0.0
        return (time.monotonic() if self._stopped is None else self._stopped) - self._started

    def progress(self, total: int, unit: str) -> "tqdm[Any]":
        """A progress bar; a line every 30 s where there is no terminal."""
        return progress_bar(total, unit)


def cpu_seconds() -> float:
    """CPU seconds so far of this process and all it started, whether they live or have been waited for.

    Under torchrun, of all processes that it started.
    """
    process = psutil.Process(machines.launcher())
    total = 0.0
    for member in (process, *process.children(recursive=True)):
        try:
            total += sum(member.cpu_times()[:4])  # user and system, own and of children waited for
        except psutil.NoSuchProcess:
            continue  # it ended meanwhile
    return total


def _plain(recipe: Mapping[str, Any]) -> dict[str, Any]:
    """The recipe as JSON gives it back, so that a manifest equals itself when read."""
    try:
        plain: dict[str, Any] = json.loads(canonical_json(recipe))
    except (TypeError, ValueError) as error:
        raise Problem(f"the recipe holds what JSON cannot: {error}") from error
    return plain


def _new_folder(outputs: Path, name: str) -> Path:
    """A new folder with the second in its name; waits for the next where the second is taken."""
    while True:
        path = outputs / f"{datetime.now(UTC):%Y%m%d-%H%M%S}_{name}"
        try:
            path.mkdir(parents=True)
        except FileExistsError:
            time.sleep(0.05)
        except OSError as error:
            raise unwritable(path, error) from error
        else:
            return path
