"""Every method runs one short experiment on BabyAI with a real, if small, model behind our server."""

import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

from agents.config import Config
from agents.core.loop import Experiment
from agents.llm.chat_app import background
from agents.llm.chat_server import local_app
from agents.llm.local_model import SMOLLM2, LocalModel
from agents.methods import METHODS
from harness.track import ROOT

FOLDER = Path(os.environ.get("SMOLLM2", ROOT / ".cache/smollm2"))
FILE = next(iter(sorted(FOLDER.glob(f"**/{SMOLLM2}"))), None)

pytestmark = [
    pytest.mark.smollm,
    pytest.mark.skipif(FILE is None, reason=f"{SMOLLM2} is not in {FOLDER}: make smollm"),
]


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    assert FILE is not None
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    with background(local_app("smollm2", LocalModel(FILE.parent, FILE.name))) as address:
        yield address
    torch.set_num_threads(threads)


@pytest.mark.parametrize("method", list(METHODS))
def test_a_short_experiment(method: str, url: str, tmp_path: Path) -> None:
    config = Config.model_validate(
        {
            "benchmark": "babyai",
            "method": method,
            "model": {
                "name": "smollm2",
                "provider": "local",
                "base_url": url,
                "seed": 1,
                "max_tokens": 24,
                "timeout_s": 600.0,
            },
            "phases": ({"tasks": ("goto",), "episodes": 2},),
            "turn_limit": 2,
            "sleep_every": 2,
            "parallel": 1,
            "method_settings": {"answer_tokens": 64, "sleep_turns": 2, "experience_chars": 1000},
        }
    )
    experiment = Experiment(tmp_path, config)
    end = experiment.run()
    totals = experiment.ledger.phases()
    experiment.close()
    assert end.status == "complete"
    lines = [json.loads(line) for line in (tmp_path / "calls.jsonl").read_text().splitlines()]
    assert all(line["reply"]["model"] == "smollm2" and line["attempts"] == 1 for line in lines)
    assert any(line["reply"]["text"] for line in lines)
    assert 2 <= totals["wake"].calls <= 4 and totals["wake"].unmetered == 0
    assert len((tmp_path / "episodes.jsonl").read_text().splitlines()) == 2
