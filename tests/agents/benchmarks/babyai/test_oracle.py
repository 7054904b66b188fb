"""Players without a model."""

from random import Random

import pytest

from agents.benchmarks.babyai import BENCHMARK, oracle
from agents.benchmarks.babyai.environment import ACTIONS, BabyAIEnvironment
from agents.benchmarks.babyai.tasks import FAMILIES
from agents.benchmarks.base import Environment, Episode, Player
from harness.errors import Problem


def play(environment: Environment, player: Player, episode: Episode) -> bool:
    environment.reset(episode)
    generator = Random(episode.seed)
    while not environment.done:
        environment.step(player.act(environment, generator))
    return environment.success


@pytest.mark.parametrize("task", FAMILIES)
def test_the_bot_solves_every_episode_of_a_family(task: str) -> None:
    environment, player = BENCHMARK.make(), BENCHMARK.oracle()
    episodes = BENCHMARK.draw([task], "test", 60, Random(0))
    assert [episode for episode in episodes if not play(environment, player, episode)] == []


def test_chance_solves_few() -> None:
    environment, player = BENCHMARK.make(), BENCHMARK.random_player()
    episodes = BENCHMARK.draw(["putnext"], "test", 20, Random(0))
    assert sum(play(environment, player, episode) for episode in episodes) < 10


def test_chance_is_fixed_by_its_generator() -> None:
    environment, player = BENCHMARK.make(), BENCHMARK.random_player()
    environment.reset(Episode("goto", 0))
    drawn = [[player.act(environment, generator) for _ in range(30)] for generator in (Random(3), Random(3))]
    assert drawn[0] == drawn[1] and set(drawn[0]) == set(ACTIONS)


def test_a_new_bot_takes_over_where_one_gives_up() -> None:
    # The agent begins with an object in its hand, for which the bot was not made.
    environment, player = BENCHMARK.make(), BENCHMARK.oracle()
    solved = [play(environment, player, Episode("BabyAI-PutNextS5N2Carrying-v0", seed)) for seed in range(10)]
    assert sum(solved) >= 8


def test_the_bot_never_turns_in_circles_for_long(monkeypatch: pytest.MonkeyPatch) -> None:
    # The key lies beside the locked door, and Minigrid's bot alone would search for ever.
    environment = BabyAIEnvironment()
    environment.reset(Episode("BabyAI-UnlockToUnlock-v0", 7))
    bot = oracle._Bot(environment.level)
    with pytest.raises(oracle._GivesUp):
        for _ in range(400):
            environment.step(ACTIONS[int(bot.replan())])


def test_the_oracle_begins_anew_with_each_episode() -> None:
    environment, player = BENCHMARK.make(), BENCHMARK.oracle()
    environment.reset(Episode("putnext", 0))
    for _ in range(3):
        environment.step(player.act(environment, Random(0)))
    assert all(play(environment, player, Episode("goto", seed)) for seed in range(5))


def test_the_oracle_cannot_look_into_a_server() -> None:
    with pytest.raises(Problem, match="cannot into a server's"):
        BENCHMARK.oracle().act(object(), Random(0))  # type: ignore[arg-type]
