"""FIXED: experiments on BabyAI: python -m agents.benchmarks.babyai.train --config_file ..."""

from agents.core.train import main
from harness.errors import run_command

if __name__ == "__main__":
    run_command(lambda: main("babyai"))
