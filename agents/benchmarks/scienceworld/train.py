"""FIXED: experiments on ScienceWorld: python -m agents.benchmarks.scienceworld.train --config_file ..."""

from agents.core.train import main
from harness.errors import run_command

if __name__ == "__main__":
    run_command(lambda: main("scienceworld"))
