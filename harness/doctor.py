"""What this machine can run: `python -m harness.doctor`."""

import argparse
import os
import shutil

from rich.console import Console
from rich.table import Column, Table

from harness.errors import run_command
from harness.machine import Machine, inspect, misfits
from harness.track import available_tracks, load_track

KEYS = ("OPENAI_API_KEY", "GEMINI_API_KEY", "WANDB_API_KEY", "HF_TOKEN")


def machine_rows(machine: Machine) -> list[tuple[str, str]]:
    """What there is, as (name, finding)."""
    cores = "any" if machine.available_cores is None else str(machine.available_cores)
    return [
        ("Processor", f"{machine.cpu}, {machine.logical_cores} cores present, {cores} available to a run"),
        ("Memory", f"{machine.memory_gib} GiB"),
        ("GPUs", ", ".join(machine.gpus) or "none visible"),
        ("GPU driver", machine.driver or "none"),
        ("Python", f"{machine.python} on {machine.platform}"),
        ("Java", shutil.which("java") or "not found"),
        *((key, "present" if os.environ.get(key) else "absent") for key in KEYS),
    ]


def track_rows(name: str, machine: Machine) -> list[tuple[str, str]]:
    """What a track reads, whether it is ready, and the class in which a run of it would rank."""
    try:
        track = load_track(name)
        missing, assets = track.ready(), track.assets()
    except Exception as error:  # whatever is wrong with one track, the others are shown
        return [(f"Track {name}", f"cannot be loaded: {error}")]
    ranks = []
    for hardware in track.classes:
        # A run pins itself to the cores of its class, so more than enough are enough.
        spare = hardware.cores is not None and (machine.available_cores or 0) > hardware.cores
        pinned = machine.model_copy(update={"available_cores": hardware.cores}) if spare else machine
        reasons = misfits(hardware, pinned)
        ranks.append(f"class {hardware.name}: {'; '.join(reasons) or 'this machine'}")
    state = f"missing: {'; '.join(missing)}" if missing else "ready"
    return [*assets.items(), (f"Track {name}", "\n".join([state, *ranks]))]


def main() -> int:
    """Print the table."""
    argparse.ArgumentParser(
        prog="python -m harness.doctor", description="What this machine can run, and what is missing."
    ).parse_args()
    machine = inspect()
    table = Table("", Column("Found", overflow="fold"), title="Doctor")
    rows = [row for name in available_tracks() for row in track_rows(name, machine)]
    for row in [*machine_rows(machine), *rows]:
        table.add_row(*row)
    Console().print(table)
    return 0


if __name__ == "__main__":
    run_command(main)
