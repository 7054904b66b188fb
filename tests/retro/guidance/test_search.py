"""Guided searches from end to end."""

import sys
from contextlib import closing
from pathlib import Path

import pytest

from retro.guidance.trainer import Trainer
from retro.run import main
from retro.search.guidance import Guidance
from retro.search.pool import open_pool
from retro.search.route import Route, RouteSearch, read_route
from scripted_game import fastest
from scripted_game.searching import HOPPER, settings

CONFIG = """
seed = 1
workers = 1
frames = 20_000
patience = 1000
items = 2
item_frames = 300
cells = 1000
crossings = 2
lookahead = 0
shave = 300
settle = 3
modes = {walks = 60, frontier = 20, tree = 20}
guidance = {table = 0.3, policy = 0.2}
"""


def test_workers_follow_a_policy_without_torch_and_one_seed_gives_one_result(tmp_path: Path) -> None:
    told = settings(frames=4_000, patience=2_000, shave=0, lookahead=0, guidance={"policy": 0.5})
    routes = []
    for workers in (0, 2):
        folder = tmp_path / str(workers)
        folder.mkdir()
        route = Route(HOPPER, "a scripted game", "5" * 64, 1, told)
        trainer = Trainer(HOPPER, 0.5, 1, folder, environments=0, rounds=2)
        with closing(trainer), open_pool(HOPPER, workers) as pool:
            guidance = Guidance({"policy": trainer})
            assert RouteSearch(folder, route, pool, replays=False, guidance=guidance).run(2)
            if workers:
                names = ["torch", "stable_baselines3", "retro.guidance.policy"]
                assert pool.ask("scripted_game.guiding:imported", names) == ["retro.guidance.policy"]
        routes.append(route)
    assert routes[0].pieces == routes[1].pieces
    assert routes[0].pieces[-1].frames >= len(fastest(1))


def test_the_commands_take_guidance_and_leave_no_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    config, run = tmp_path / "guided.toml", tmp_path / "run"
    config.write_text(CONFIG)
    for words in (
        ["search", "quarterstep", str(config), "--until", "level-1", "--out", str(run)],
        ["improve", str(run), "--workers", "0"],
    ):
        monkeypatch.setattr(sys, "argv", ["retro.run", *words])
        assert main() == 0
    assert "Pass 1: 0 frames saved" in "".join(capsys.readouterr())
    assert dict(read_route(run).settings.guidance) == {"table": 0.3, "policy": 0.2}
    assert (run / "policy.log").is_file()
