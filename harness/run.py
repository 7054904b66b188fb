"""A run: its folder, its clock and its log.

run = Run.create(TRACK, recipe_name="cpu", recipe=asdict(recipe), hardware_class=hardware, seed=recipe.seed,
                 seed_source="recipe", flags=[], smoke=False, source=Path(__file__))
with run:
    with run.warmup():
        ...
    run.train_start()
    run.record_data(sources)
    run.log_step(1, solve_rate=0.1)
    if run.state_due():
        run.save_state(lambda: data)  # what `run.state` is after --resume
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
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime
from pathlib import Path
from shlex import quote
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
    write_atomic,
    write_model,
)
from harness.folder import NewFolder, mend, run_manifest
from harness.lock import locked
from harness.log import LOG_NAME, LogWriter, read_log
from harness.manifest import MANIFEST_NAME, SOURCE_NAME, Manifest
from harness.progress import progress_bar
from harness.state import STATE_NAME, Pace, Postponed, State, read_state, write_state
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


class Run:
    """A run folder and the clock in it. As a context it holds the folder, and logs an exception.

    Attributes:
        state: what the recipe saved last, after --resume; None = begin at the beginning.
    """

    def __init__(self, path: Path, track: Track, manifest: Manifest, warmup_limit_s: float | None) -> None:
        self.path = path
        self.track = track
        self.manifest = manifest
        self._warmup_limit_s = warmup_limit_s
        self.state: bytes | None = None
        self._log = LogWriter(path / LOG_NAME)
        self._held: ExitStack | None = None
        self._pace = Pace(None)
        self._postponed = Postponed()
        self._before_s = 0.0  # on the clock of earlier processes
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
        save_every: float | None = None,
        outputs: Path = Path("outputs"),
    ) -> Self:
        """Make a run folder and start its log; prints the machine's calibration and whether the run can rank.

        hardware_class is the class whose recipe runs; the manifest names it only if the machine is of it.
        save_every: seconds between two savings of the state; None = as `Pace` has it.
        """
        text = read_bytes(source)
        machine = machines.inspect()
        misfits = machines.misfits(hardware_class, machine)
        environment = manifests.launch_environment()
        print(f"{track.title} on {hardware_class.title}, recipe {recipe_name}, seed {seed}", flush=True)
        calibration_s = track.calibrate()
        print(f"Calibration: {calibration_s:.2f} s", flush=True)
        fixed, opened = fixed_file_hashes(track), open_file_hashes(track)
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
            fixed_files=fixed,
            open_files=opened,
            data={},
            git=manifests.read_git(ROOT),
            packages=manifests.installed_packages(),
            machine=machine,
            calibration_s=calibration_s,
            argv=manifests.command_line(),
            flags=tuple(flags),
            environment=manifests.relevant(environment),
            overriding_environment=manifests.overriding(environment),
            smoke=smoke,
            started_utc=datetime.now(UTC),
            resumed=False,
            customized=manifests.customizations(),
            stray_files=_stray_files({*fixed, *opened, f"{track.name}/{SOURCE_NAME}"}),
        )
        name = f"{track.name}_{hardware_class.name}_seed{seed}{'_smoke' if smoke else ''}"
        with NewFolder(outputs, name) as new:
            write_atomic(new.draft / SOURCE_NAME, text)
            write_model(new.draft / MANIFEST_NAME, manifest)
            log = LogWriter(new.draft / LOG_NAME)
            log.write("run_start", run_id=manifest.run_id, seed=seed, recipe_sha256=manifest.recipe_sha256)
            log.keep()
        path = new.path
        run = cls(path, track.of_class(hardware_class.name), manifest, hardware_class.warmup_limit_s)
        run._pace = Pace(save_every)
        unlike = [f"it is not {hardware_class.name}: {reason}" for reason in misfits]
        if reasons := eligibility(manifest, None) + unlike:
            print(f"This run ranks nowhere: {'; '.join(reasons)}", flush=True)
        print(f"Run folder: {path}", flush=True)
        return run

    @classmethod
    def resume(cls, path: Path, *, save_every: float | None = None) -> Self:
        """Take up a run whose training broke off, at its last state; it is marked as resumed from then on.

        Raises:
            Problem: another process works in the folder, or the state is damaged.
        """
        with ExitStack() as held:
            held.enter_context(locked(path))
            mend(path)
            manifest = run_manifest(path)
            state = read_state(path, manifest.run_id)
            steps = len(read_log(path / LOG_NAME).steps)
            if state is not None and state.step > steps:
                print(f"The log ends before step {state.step}, whose state was saved", file=sys.stderr)
                (path / STATE_NAME).unlink()
                state = None
            manifest = Manifest.model_validate({**dict(manifest), "resumed": True})
            write_model(path / MANIFEST_NAME, manifest)
            track = load_track(manifest.track).under(manifest.ruleset).of_class(manifest.recipe_name)
            run = cls(path, track, manifest, None)
            run._pace = Pace(save_every)
            step, cpu_s = (0, 0.0) if state is None else (state.step, state.cpu_s)
            run._log.rewind(step)
            run._before_s = read_log(path / LOG_NAME).clock_s
            run._log.write("resume", step=step, cpu_s=cpu_s)
            run.state = None if state is None else state.data
            run._held = held.pop_all()
        lost = f"{steps - step} logged steps are lost" if steps > step else "no logged step is lost"
        begins = f"goes on after step {step}, at {run._before_s:.1f} s" if step else "begins anew"
        print(f"Resumed, so this run ranks nowhere: training {begins}, and {lost}", flush=True)
        print(f"Run folder: {path}", flush=True)
        return run

    @classmethod
    def open(cls, path: Path, track_name: str | None = None) -> Self:
        """Open a trained run, of this track if one is named, for its evaluation.

        Raises:
            Problem: there is no such run, another process works in it, or the checkpoint that it saved is not
                there.
        """
        manifest = run_manifest(path, track_name)
        track = load_track(manifest.track).under(manifest.ruleset).of_class(manifest.recipe_name)
        with ExitStack() as held:
            held.enter_context(locked(path))
            mend(path)
            log = read_log(path / LOG_NAME)
            if log.find("checkpoint") is None:
                remedy = f"{track.command(manifest.recipe_name)} --resume {quote(str(path))}"
                raise Problem(f"the run has no checkpoint: it is {log.status}", file=log.path, remedy=remedy)
            if sha256_file(path / track.checkpoint_name) != log.get("checkpoint").fields["sha256"]:
                raise Problem("is not the checkpoint that the log names", file=path / track.checkpoint_name)
            run = cls(path, track, manifest, None)
            (path / STATE_NAME).unlink(missing_ok=True)  # a crash may have kept it
            run._before_s = log.time_s
            run._held = held.pop_all()
        return run

    def __enter__(self) -> Self:
        if self._held is None:
            self._held = ExitStack()
            self._held.enter_context(locked(self.path))
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        assert self._held is not None
        held, self._held = self._held, None
        with held:
            try:
                self._postponed.release(interrupt=error is None)
            except BaseException as interruption:
                error = interruption
                raise
            finally:
                if error is not None and not self._log.stopped:
                    self._interrupt(error)

    def _interrupt(self, error: BaseException) -> None:
        message = " ".join(str(error).split())[:200]
        reason = f"{type(error).__name__}: {message}"
        if isinstance(error, KeyboardInterrupt):
            reason = "Ctrl-C"
        elif isinstance(error, SystemExit) and isinstance(error.code, str):
            reason = error.code
        command = f"{self.track.command(self.manifest.recipe_name)} --resume {quote(str(self.path))}"
        print(f"\nInterrupted, {self.path} is incomplete: {reason}", file=sys.stderr)
        print(f"Go on with: {command}", file=sys.stderr)
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
        self._pace.start()

    def record_data(self, sources: Iterable[tuple[str, str]]) -> None:
        """Note the (name, SHA-256) of files that training reads, in the manifest."""
        self._note(data={**self.manifest.data, **dict(sources)})

    def log_step(self, step: int, **numbers: float) -> None:
        """Log step 1, 2, 3, ... with plain numbers."""
        self._log.write("step", step=step, **numbers)

    def state_due(self, size: int = 0) -> bool:
        """Whether to call `save_state` now; `size` is about how many bytes it would save.

        Of several processes the first one decides, for all. From the first call on, Ctrl-C and SIGTERM wait
        for that saving.
        """
        if self._held is not None:
            self._postponed.hold()
        return self._postponed.number is not None or self._pace.due(size)

    def save_state(self, state: Callable[[], bytes]) -> None:
        """Save what training needs to go on after the step that was logged last."""

        def save() -> None:
            data = state()
            self._log.keep()  # so that no state outlives a step that it follows
            write_state(self.path, State(self.manifest.run_id, self.steps, cpu_seconds(), data))

        self._pace.timed(save)
        if self._postponed.number is not None:
            self._postponed.release(interrupt=True)

    def train_stop(self, synchronize: Callable[[], None] | None = None) -> None:
        """Stop the clock, after `synchronize` has waited for the device."""
        if synchronize is not None:
            synchronize()
        event = self._log.write("train_stop", steps=self._log.steps, cpu_s=cpu_seconds())
        self._stopped = event.monotonic
        print(f"Trained in {self.elapsed_s:.1f} s, {self._log.steps} steps", flush=True)
        known = {*self.manifest.fixed_files, *self.manifest.open_files, f"{self.track.name}/{SOURCE_NAME}"}
        if (stray := _stray_files(known)) != self.manifest.stray_files:
            self._note(stray_files=stray)
            print(f"This run ranks nowhere: it imported {', '.join(stray)}", flush=True)

    def save_checkpoint(self, data: bytes) -> None:
        """Write the checkpoint and log its hash."""
        write_atomic(self.path / self.track.checkpoint_name, data)
        self._log.write("checkpoint", sha256=sha256_bytes(data))
        (self.path / STATE_NAME).unlink(missing_ok=True)

    def _note(self, **changes: Any) -> None:
        """Write down in the manifest what became known on the way."""
        self.manifest = Manifest.model_validate({**dict(self.manifest), **changes})
        write_model(self.path / MANIFEST_NAME, self.manifest)

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
    def steps(self) -> int:
        """How many steps are logged."""
        return self._log.steps

    @property
    def elapsed_s(self) -> float:
        """Seconds on the clock: 0 before train_start, fixed after train_stop."""
        if self._started is None:
            return self._before_s
        now = time.monotonic() if self._stopped is None else self._stopped
        return self._before_s + now - self._started

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


def _stray_files(known: set[str]) -> tuple[str, ...]:
    """What this process has imported of the checkout besides the known files, sorted."""
    return tuple(sorted(manifests.imported_files(ROOT) - known))


def _plain(recipe: Mapping[str, Any]) -> dict[str, Any]:
    """The recipe as JSON gives it back, so that a manifest equals itself when read."""
    try:
        plain: dict[str, Any] = json.loads(canonical_json(recipe))
    except (TypeError, ValueError) as error:
        raise Problem(f"the recipe holds what JSON cannot: {error}") from error
    return plain
