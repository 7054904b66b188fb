"""OPEN: train an agent from scratch to solve Sokoban. Everything in this file is yours to make faster.

    python -m non_llm.speedrun                       the pinned recipe of this machine's class: the record
    python -m non_llm.speedrun --smoke               a few seconds on any machine; ranks nowhere
    python -m non_llm.speedrun --recipe.gamma 0.95   an experiment; ranks nowhere until it is pinned here
    python -m non_llm.speedrun --verify records/non_llm/<record>
    python -m non_llm.speedrun --resume outputs/<run>     goes on with a run that broke off; ranks nowhere

The agent acts by pushes: it chooses one of the boxes that it can walk to and a direction, walks there by the
shortest path and pushes once. A residual network of 3x3 convolutions over the 8x8 interior gives one logit a
cell and direction, and one value a board. It learns by PPO with one pass over the half of the samples whose
advantages are largest, its convolutions by Muon. On CPUs one process a core plays boards of its own, and the
processes average their gradients.
"""

import copy
import io
import multiprocessing
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import NamedTuple, TypeVar

import torch
import torch._dynamo
import torch._inductor.exc
import torch.distributed as dist
import torch.nn.functional as F
from safetensors.torch import load, save
from torch import Tensor, nn

from harness.errors import Problem, run_command
from harness.launch import launch
from harness.run import Run
from harness.silent import SilentRun, end_with_parent, ignored_signals, killed_on_error
from non_llm.eval_speedrun import Policy, Position, evaluate
from non_llm.track import TRACK, training_levels
from sokoban.boxoban import LevelsUnavailable
from sokoban.levels import parse_levels
from sokoban.rules import STEP_LIMIT, Boards, Rewards, SokobanBatch, Walks, find_walks, unpack
from sokoban.table import table_of

# ---- recipe -------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Recipe:
    """One way to train. Numbers of boards and samples are totals over all processes."""

    seed: int = 1
    """Of weights, levels and actions; the verification has another."""
    processes: int = 2
    """One a core, each with one thread; 1 on a GPU."""
    level_files: int = 100
    """How many files of 1,000 levels of unfiltered/train to play."""
    pushes: int = 6_000_000
    """How many actions to learn from, in whole updates."""
    boards: int = 512
    """How many boards are in play at once."""
    horizon: int = 32
    """Actions on each board between updates."""
    minibatch: int = 1024
    """Samples a gradient step."""
    kept: float = 0.5
    """The fraction of samples, those with the largest absolute advantages, that the update learns from."""
    channels: int = 32
    """Width of the network."""
    blocks: int = 2
    """Residual blocks of two convolutions."""
    gamma: float = 0.95
    """Discount a push."""
    gae_lambda: float = 0.9
    """Decay of the generalised advantage estimate."""
    symmetries: bool = True
    """Play the eight images of every level."""
    compiled: bool = True
    """Compile the network with what comes before and after it, where a compiler is at hand."""
    move_reward: float = 0.0
    """For every primitive move. Their number is limited; a price on them besides slows learning."""
    box_reward: float = 0.2
    """For a box pushed onto a goal, and the price of one pushed off."""
    solved_reward: float = 2.0
    """For the last box on the last goal, besides."""
    clip: float = 0.2
    """PPO's bound on the change of an action's probability."""
    entropy_weight: float = 0.01
    """Weight of the policy's entropy in the loss."""
    value_weight: float = 0.5
    """Weight of the squared value error in the loss."""
    muon_rate: float = 0.03
    """Learning rate of the 3x3 kernels between the layers, at the start."""
    adam_rate: float = 2e-3
    """Learning rate of all other parameters, at the start."""
    final_rate: float = 0.05
    """Both rates fall linearly to this fraction of themselves."""

    def __post_init__(self) -> None:
        kept = int(self.kept * self.boards * self.horizon)
        if self.boards % self.processes or self.minibatch % self.processes:
            raise Problem(f"{self.processes} processes cannot share {self.boards} boards and minibatches")
        if not 0 < self.minibatch <= kept or self.pushes < self.boards * self.horizon:
            raise Problem(
                f"one update has {kept} samples to learn from: too few, or too many, for this recipe"
            )

    def smoke(self) -> "Recipe":
        """A few updates, to see the whole way work."""
        return replace(self, pushes=16_384, boards=128, minibatch=128, level_files=1, compiled=False)


RECIPES = {
    "1xH100": Recipe(processes=1, pushes=60_000_000, boards=4096, minibatch=8192, channels=64, blocks=3),
    "cpu": Recipe(),
}

# ---- policy -------------------------------------------------------------------------------------------

PLANES = 8  # what the network sees of a cell
WORDS = 9  # what it is told of a board, see `encode`


def encode(position: Position) -> Tensor:
    """(B, WORDS) int64: floor, goals, boxes, reach, moves made, and the legal pushes in each direction."""
    floor, goals, boxes, _ = position.boards
    words = torch.stack([floor, goals, boxes, position.walks.reach, position.moves], dim=1)
    return torch.cat([words, position.legal], dim=1)


class Block(nn.Module):
    """Two 3x3 convolutions beside a skip connection, (B, channels, 8, 8) to the same."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.first = nn.Conv2d(channels, channels, 3, padding=1)
        self.second = nn.Conv2d(channels, channels, 3, padding=1)
        for parameter in self.parameters():
            (nn.init.orthogonal_ if parameter.dim() == 4 else nn.init.zeros_)(parameter)

    def forward(self, x: Tensor) -> Tensor:
        return F.relu(x + self.second(F.relu(self.first(x))))


class Network(nn.Module):
    """Encoded boards (B, WORDS) to log-probabilities of pushes (B, 256) and values (B,), both float32."""

    def __init__(self, channels: int, blocks: int) -> None:
        super().__init__()
        self.stem = nn.Conv2d(PLANES, channels, 3, padding=1)
        self.body = nn.ModuleList(Block(channels) for _ in range(blocks))
        self.policy = nn.Conv2d(channels, 4, 1)
        self.value = nn.Linear(2 * channels, 1)
        for parameter in (*self.policy.parameters(), *self.value.parameters()):
            nn.init.zeros_(parameter)

    def forward(self, words: Tensor) -> tuple[Tensor, Tensor]:
        with torch.autocast(words.device.type, torch.bfloat16):
            x = F.relu(self.stem(self.planes(words)))
            for block in self.body:
                x = block(x)
            logits = self.policy(x).flatten(1)
            value = self.value(torch.cat([x.mean((2, 3)), x.amax((2, 3))], dim=1)).squeeze(1)
        legal = unpack(words[:, 5:]).flatten(1)
        return logits.float().masked_fill(~legal, -1e9).log_softmax(dim=1), value.float()

    @staticmethod
    def planes(words: Tensor) -> Tensor:
        """(B, PLANES, 8, 8) bfloat16; zero on walls, so that the zero padding of a convolution is wall."""
        floor, goals, boxes, reach, moves = words[:, :5].unbind(dim=1)
        masks = torch.stack([floor, goals, boxes, boxes & goals, boxes & ~goals, reach, floor], dim=1)
        planes = unpack(masks).bfloat16()
        time = planes[:, :1] * (moves / STEP_LIMIT)[:, None, None]
        planes = torch.cat([planes, time.bfloat16()], dim=1)
        return planes.view(-1, PLANES, 8, 8).contiguous(memory_format=torch.channels_last)


class GreedyPolicy:
    """The trained network as `eval_speedrun` plays it: always the likeliest push."""

    acts_by_pushing = True

    def __init__(self, network: Network) -> None:
        self.network = network

    def act(self, position: Position) -> Tensor:
        log_probabilities, _ = self.network(encode(position))
        return log_probabilities.argmax(dim=1)


def load_policy(checkpoint: bytes, device: torch.device) -> Policy:
    """The policy that a checkpoint holds."""
    weights = load(checkpoint)
    blocks = sum(name.startswith("body") for name in weights) // 4
    network = Network(len(weights["stem.weight"]), blocks)
    network.load_state_dict(weights)
    return GreedyPolicy(network.to(device))


# ---- playing ------------------------------------------------------------------------------------------


def choose(network: Network, words: Tensor, uniform: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Actions drawn from the policy (B,), their log-probabilities and the values of the boards.

    uniform: (B,) from [0, 1); an action is drawn where the cumulated probabilities pass it.
    """
    log_probabilities, values = network(words)
    cumulated = log_probabilities.exp().cumsum(dim=1)
    drawn = uniform[:, None] * cumulated[:, -1:] * (1 - 1e-6)  # never the very end, whatever is rounded
    actions = (cumulated <= drawn).sum(dim=1)
    return actions, log_probabilities.gather(1, actions[:, None]).squeeze(1), values


class Samples(NamedTuple):
    """N decisions and what came of them; `words` (N, WORDS), the others (N,)."""

    words: Tensor
    actions: Tensor
    log_probabilities: Tensor
    advantages: Tensor
    returns: Tensor

    def take(self, rows: Tensor) -> "Samples":
        return Samples(*(column[rows] for column in self))


class Player:
    """Plays boards with the network and hands out samples, `boards * horizon` at a time."""

    def __init__(
        self, network: Network, batch: SokobanBatch, recipe: Recipe, seed: int, tools: "Tools"
    ) -> None:
        self.network, self.batch, self.recipe, self.tools = network, batch, recipe, tools
        self.generator = torch.Generator(batch.moves.device).manual_seed(seed)

    def look(self) -> tuple[Walks, Tensor]:
        """Where the players can walk, and the boards as the network is told of them."""
        floor, _, boxes, player = self.batch.boards
        walks = self.tools.find_walks(floor, boxes, player)
        legal = self.batch.legal_pushes(walks)
        return walks, encode(Position(self.batch.boards, self.batch.moves, walks, legal))

    @torch.no_grad()
    def play(self) -> tuple[Samples, Tensor]:
        """Play `horizon` actions on every board; returns samples, and moves, ends and solves counted, (3,).

        Nothing in here waits for the device.
        """
        recipe = self.recipe
        steps, rewards, values, going, counts = [], [], [], [], []
        walks, words = self.look()
        for _ in range(recipe.horizon):
            uniform = torch.rand(len(words), generator=self.generator, device=words.device)
            actions, log_probabilities, value = self.tools.choose(self.network, words, uniform)
            outcome = self.batch.push(actions, walks)
            steps.append((words, actions, log_probabilities))
            rewards.append(outcome.reward)
            values.append(value)
            going.append((~outcome.done).float())
            counts.append(torch.stack([outcome.moves.sum(), outcome.done.sum(), outcome.solved.sum()]))
            walks, words = self.look()
        _, _, following = self.tools.choose(self.network, words, uniform)
        advantage, advantages = torch.zeros_like(following), []
        for reward, value, goes_on in zip(reversed(rewards), reversed(values), reversed(going), strict=True):
            # Schulman et al. 2016, generalised advantage estimation, equation 16, from the last action back.
            error = reward + recipe.gamma * goes_on * following - value
            advantage = error + recipe.gamma * recipe.gae_lambda * goes_on * advantage
            advantages.append(advantage)
            following = value
        words, actions, log_probabilities = (torch.cat(column) for column in zip(*steps, strict=True))
        every_advantage = torch.cat(advantages[::-1])
        samples = Samples(
            words, actions, log_probabilities, every_advantage, every_advantage + torch.cat(values)
        )
        return samples, torch.stack(counts).sum(dim=0)


# ---- learning -----------------------------------------------------------------------------------------


def ppo_loss(network: Network, samples: Samples, recipe: Recipe) -> Tensor:
    """Schulman et al. 2017, proximal policy optimization, equation 9."""
    log_probabilities, values = network(samples.words)
    chosen = log_probabilities.gather(1, samples.actions[:, None]).squeeze(1)
    ratio = (chosen - samples.log_probabilities).exp()
    clipped = ratio.clamp(1 - recipe.clip, 1 + recipe.clip)
    surrogate = torch.minimum(ratio * samples.advantages, clipped * samples.advantages).mean()
    error = (values - samples.returns).square().mean()
    entropy = -(log_probabilities.exp() * log_probabilities).sum(dim=1).mean()
    return recipe.value_weight * error - surrogate - recipe.entropy_weight * entropy


class Tools(NamedTuple):
    """The functions that take the time, plain or compiled."""

    choose: Callable[[Network, Tensor, Tensor], tuple[Tensor, Tensor, Tensor]]
    ppo_loss: Callable[[Network, Samples, Recipe], Tensor]
    find_walks: Callable[[Tensor, Tensor, Tensor], Walks]


PLAIN = Tools(choose, ppo_loss, find_walks)


class Muon:
    """Momentum whose matrices are made orthogonal before each step (Jordan et al. 2024); all of one shape."""

    def __init__(self, weights: Sequence[Tensor], momentum: float = 0.95) -> None:
        self.weights, self.momentum = weights, momentum
        self.buffer = torch.zeros_like(torch.stack([weight.flatten(1) for weight in weights]))

    @torch.no_grad()
    def step(self, rate: float) -> None:
        gradients = torch.stack(
            [weight.grad.flatten(1) for weight in self.weights if weight.grad is not None]
        )
        self.buffer.mul_(self.momentum).add_(gradients)
        x = gradients + self.momentum * self.buffer
        x /= x.norm(dim=(1, 2), keepdim=True) + 1e-7
        for _ in range(5):  # Newton-Schulz: a quintic that draws every singular value towards 1
            square = x @ x.mT
            x = 3.4445 * x + (2.0315 * square @ square - 4.7750 * square) @ x
        for weight, update in zip(self.weights, x, strict=True):
            weight.sub_(update.view_as(weight), alpha=rate)


class Learner:
    """Improves the network from samples: one pass of PPO over those whose advantages say most."""

    def __init__(self, network: Network, recipe: Recipe, seed: int, tools: "Tools") -> None:
        self.network, self.recipe, self.tools = network, recipe, tools
        self.parameters = list(network.parameters())
        kernels = [parameter for parameter in network.body.parameters() if parameter.dim() == 4]
        others = [parameter for parameter in self.parameters if not any(parameter is k for k in kernels)]
        self.muon = Muon(kernels)
        self.adam = torch.optim.Adam(others, betas=(0.9, 0.99), eps=1e-5, fused=True)
        self.generator = torch.Generator(self.parameters[0].device).manual_seed(seed)

    def learn(self, samples: Samples, begun: float, ended: float) -> None:
        """Update the network; `begun` and `ended` are the fractions of training before and after."""
        recipe, size = self.recipe, self.recipe.minibatch // self.recipe.processes
        spread, mean = torch.std_mean(samples.advantages)
        samples = samples._replace(advantages=(samples.advantages - mean) / (spread + 1e-6))
        rows = samples.advantages.abs().topk(int(recipe.kept * len(samples.actions))).indices
        rows = rows[torch.randperm(len(rows), generator=self.generator, device=rows.device)]
        batches = rows[: len(rows) // size * size].split(size)
        for number, chosen in enumerate(batches):
            progress = begun + (ended - begun) * number / len(batches)
            self.step(samples.take(chosen), 1 - progress * (1 - recipe.final_rate))

    def step(self, samples: Samples, rate: float) -> None:
        """One gradient step on a minibatch, at `rate` times the learning rates."""
        for parameter in self.parameters:
            parameter.grad = None
        self.tools.ppo_loss(self.network, samples, self.recipe).backward()
        average_gradients(self.parameters)
        self.muon.step(self.recipe.muon_rate * rate)
        for group in self.adam.param_groups:
            group["lr"] = self.recipe.adam_rate * rate
        self.adam.step()


def average_gradients(parameters: list[nn.Parameter]) -> None:
    """Give every process the mean of all processes' gradients."""
    if not dist.is_initialized():
        return
    gradients = [parameter.grad for parameter in parameters if parameter.grad is not None]
    flat = torch.cat([gradient.flatten() for gradient in gradients]) / dist.get_world_size()
    dist.all_reduce(flat)
    for gradient, mean in zip(
        gradients, flat.split([gradient.numel() for gradient in gradients]), strict=True
    ):
        gradient.copy_(mean.view_as(gradient))


# ---- the run ------------------------------------------------------------------------------------------


def train(run: Run, recipe: Recipe) -> None:
    """Train in this process and, on CPUs, in one more a core. This one keeps the clock and the log."""
    with tempfile.TemporaryDirectory() as folder:
        arguments = (recipe, run.manifest.seed, f"file://{folder}/rendezvous")
        context = multiprocessing.get_context("spawn")
        others = [
            context.Process(target=assist, args=(rank, *arguments), daemon=True)
            for rank in range(1, recipe.processes)
        ]
        with ignored_signals():
            for other in others:
                other.start()
        with killed_on_error(others):
            with group(0, *arguments[::2]), killed_on_error(others):
                work(run, recipe, run.manifest.seed, rank=0)
            for other in others:
                other.join()


def assist(rank: int, recipe: Recipe, seed: int, meeting_place: str) -> None:
    """The other processes: the same work, without clock and log, until the first one ends them."""
    end_with_parent()
    with group(rank, recipe, meeting_place):
        work(SilentRun(), recipe, seed, rank)


@contextmanager
def group(rank: int, recipe: Recipe, meeting_place: str) -> Iterator[None]:
    """One thread in this process, and a line to the other processes if there are any."""
    torch.set_num_threads(1)
    if recipe.processes == 1:
        yield
        return
    dist.init_process_group(
        "gloo", meeting_place, rank=rank, world_size=recipe.processes, timeout=timedelta(minutes=5)
    )
    try:
        yield
    finally:
        dist.destroy_process_group()


def work(run: Run | SilentRun, recipe: Recipe, seed: int, rank: int) -> None:
    """Build, warm up, start the clock, read the levels, play and learn, stop the clock."""
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    torch.manual_seed(seed)  # the same weights in every process
    network = Network(recipe.channels, recipe.blocks).to(device)
    weights = copy.deepcopy(network.state_dict())

    with run.warmup():
        tools = rehearse(network, recipe, device)
    network.load_state_dict(weights)
    if recipe.processes > 1:
        dist.barrier()

    run.train_start()
    levels = training_levels(recipe.level_files)
    run.record_data(levels.sources)
    own = seed * 1000 + rank  # each process has levels and actions of its own
    batch = SokobanBatch(
        levels,
        recipe.boards // recipe.processes,
        generator=torch.Generator().manual_seed(own),
        device=device,
        symmetries=recipe.symmetries,
        rewards=Rewards(recipe.move_reward, recipe.box_reward, -recipe.box_reward, recipe.solved_reward),
    )
    player = Player(network, batch, recipe, own, tools)
    learner = Learner(network, recipe, own, tools)
    pushes = recipe.boards * recipe.horizon
    updates = recipe.pushes // pushes
    state, begun = from_first(run.state), 0
    if state is not None:
        begun = go_on(state, rank, player, learner)
    with run.progress(updates * pushes, "push") as bar:
        bar.update(begun * pushes)
        for update in range(begun + 1, updates + 1):
            samples, counts = player.play()
            learner.learn(samples, (update - 1) / updates, update / updates)
            moves, ends, solves = counts.tolist()  # of this process; the others' are alike
            solve_rate = solves / max(1, ends)
            run.log_step(
                update, pushes=update * pushes, moves=moves * recipe.processes, solve_rate=solve_rate
            )
            bar.set_postfix(solve_rate=f"{solve_rate:.3f}", refresh=False)
            bar.update(pushes)
            if from_first(run.state_due()):
                run.save_state(partial(pack, update, player, learner))
    run.train_stop(torch.cuda.synchronize if device.type == "cuda" else None)
    run.save_checkpoint(save(network.state_dict()))


def pack(update: int, player: Player, learner: Learner) -> bytes:
    """What all processes go on from after so many updates, should this run be resumed."""
    batch = player.batch
    generators = [player.generator.get_state(), learner.generator.get_state()]
    own = (generators, [*batch.boards, batch.moves, batch.level_index])
    everyone = [own]
    if dist.is_initialized():
        everyone = [own] * dist.get_world_size()
        dist.all_gather_object(everyone, own)
    network, adam, muon = learner.network.state_dict(), learner.adam.state_dict(), learner.muon.buffer
    packed = io.BytesIO()
    torch.save((update, network, adam, muon, everyone), packed)
    return packed.getvalue()


def go_on(packed: bytes, rank: int, player: Player, learner: Learner) -> int:
    """Put all into the state that `pack` packed; returns how many updates were made by then."""
    update, network, adam, muon, everyone = torch.load(io.BytesIO(packed), weights_only=True)
    learner.network.load_state_dict(network)
    learner.adam.load_state_dict(adam)
    learner.muon.buffer.copy_(muon)
    generators, (*boards, moves, level_index) = everyone[rank]
    player.generator.set_state(generators[0])
    learner.generator.set_state(generators[1])
    player.batch.boards, player.batch.moves, player.batch.level_index = Boards(*boards), moves, level_index
    return int(update)


T = TypeVar("T")


def from_first(value: T) -> T:
    """What the first process has, in every process."""
    box = [value]
    if dist.is_initialized():
        dist.broadcast_object_list(box)
    return box[0]


COMPILER_ERRORS = (torch._dynamo.exc.TorchDynamoException, torch._inductor.exc.InductorError)


def rehearse(network: Network, recipe: Recipe, device: torch.device) -> Tools:
    """Compile on a made-up level and return what to call: the plain functions where that fails."""
    level = table_of(parse_levels("#####\n#@$.#\n#####"))
    compiled = Tools(
        torch.compile(choose, dynamic=False),
        torch.compile(ppo_loss, dynamic=False),
        # On a CPU the plain flood fill's early exit is worth more than one kernel.
        torch.compile(find_walks, dynamic=False) if device.type == "cuda" else find_walks,
    )
    for tools in (compiled, PLAIN) if recipe.compiled else (PLAIN,):
        batch = SokobanBatch(level, recipe.boards // recipe.processes, generator=None, device=device)
        try:
            samples, _ = Player(network, batch, recipe, 0, tools).play()
            Learner(network, recipe, 0, tools).learn(samples, 0, 1)
        except COMPILER_ERRORS as error:  # no C++ compiler, no Python headers, ...
            if tools is PLAIN:
                raise
            print(f"torch.compile does not work here, so this run is slower: {error}", file=sys.stderr)
        else:
            break
    return tools


if __name__ == "__main__":
    run_command(
        lambda: launch(TRACK, RECIPES, train=train, evaluate=evaluate, source=Path(__file__)),
        LevelsUnavailable,
    )
