"""What each ingredient of the cpu recipe is worth: one thing changed at a time, scored on unfiltered/valid.

    python -m benchmarks.speedrun_ablations [--pushes 2000000] [--out ablations.json]

Every row is a run of `python -m non_llm.speedrun` with the flags that it names, one after the other. Solve
rates are comparable at equal pushes; seconds depend on the machine.
"""

import argparse
import json
import subprocess
import sys
from pathlib import Path

from rich.console import Console
from rich.table import Table

from harness.log import read_log

ROWS: dict[str, list[str]] = {
    "the recipe": [],
    "the recipe, another seed": ["--recipe.seed", "2"],
    "a price on moves (-0.02 each)": ["--recipe.move-reward", "-0.02"],
    "learns from all samples": ["--recipe.kept", "1.0"],
    "no symmetries": ["--recipe.no-symmetries"],
    "Muon rate 0.04": ["--recipe.muon-rate", "0.04"],
    "Muon rate 0.01": ["--recipe.muon-rate", "0.01"],
    "not compiled": ["--recipe.no-compiled"],
    "learns from a quarter": ["--recipe.kept", "0.25"],
    "Adam rate 0.003, minibatches of 512": ["--recipe.adam-rate", "0.003", "--recipe.minibatch", "512"],
}


def run(flags: list[str]) -> dict[str, float]:
    """Train and score one variant; seconds, CPU seconds and the solve rate with its interval."""
    command = [sys.executable, "-m", "non_llm.speedrun", *flags]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"{' '.join(command)} failed:\n{done.stderr}")
    folder = next(line for line in done.stdout.splitlines() if line.startswith("Run folder: "))
    log = read_log(Path(folder.removeprefix("Run folder: ")) / "log.jsonl")
    score = log.get("eval_stop").fields
    return {"time_s": log.time_s, "cpu_s": log.cpu_s, **{k: score[k] for k in ("value", "low", "high")}}


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.speedrun_ablations",
        description="What each ingredient of the cpu recipe is worth.",
    )
    parser.add_argument("--pushes", type=int, default=2_000_000, help="pushes to learn from (2000000)")
    parser.add_argument("--out", type=Path, help="write the results as JSON")
    options = parser.parse_args()
    table = Table("variant", title=f"after {options.pushes:,} pushes, on unfiltered/valid")
    for heading in ("solve rate", "95% interval", "wall s", "CPU s"):
        table.add_column(heading, justify="right")
    results = {}
    for name, flags in ROWS.items():
        result = run(["--recipe.pushes", str(options.pushes), *flags])
        results[name] = {"flags": flags, **result}
        interval = f"{result['low']:.3f} to {result['high']:.3f}"
        seconds = (f"{result['time_s']:.0f}", f"{result['cpu_s']:.0f}")
        table.add_row(name, f"{result['value']:.4f}", interval, *seconds)
        print(f"{name}: {result['value']:.4f}", file=sys.stderr)
    Console().print(table)
    if options.out:
        options.out.write_text(json.dumps({"pushes": options.pushes, "results": results}, indent=2) + "\n")


if __name__ == "__main__":
    main()
