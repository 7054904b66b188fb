"""How the starting model of the cpu class was made: a tiny Qwen3 that knows more than it shows.

    python -m llm.make_tiny --output FOLDER    train it and write it, about three minutes on two cores

It reads a board character by character and writes `<answer>`, moves, `</answer>`. First it is taught shortest
solutions of tiny_train; then it watches a careless player, who makes a blind move now and again, and picks up
that habit: it solves half of the puzzles. RL has to bring out what it knows, and to teach the rest. The model
in `llm/tiny/` is the one that counts. The same seed gives the same one on one machine, and on others one that
is as good, because sums round otherwise. Weights are rounded to bfloat16.
"""

import argparse
import string
from collections.abc import Iterator, Sequence
from itertools import product
from pathlib import Path
from random import Random

import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers
from transformers import PreTrainedTokenizerFast, Qwen3Config, Qwen3ForCausalLM

from harness.errors import run_command
from harness.progress import progress_bar
from llm.puzzles import MOVES, read_puzzles

SEED, BATCH = 1, 256
STEPS, RATE = 320, 3e-3  # of the lessons
CARELESS, CARELESS_STEPS, CARELESS_RATE = 0.2, 60, 5e-4  # of the careless play
PAD, END, OPEN, CLOSE = "<|pad|>", "<|end|>", "<answer>", "</answer>"
IGNORED = -100  # the target of a token that teaches nothing


def make_tokenizer() -> PreTrainedTokenizerFast:
    """One token for every printable character and for each of the two answer tags."""
    alphabet = [*(character for character in string.printable if character.isprintable()), "\n"]
    vocabulary = {token: number for number, token in enumerate([PAD, END, OPEN, CLOSE, *alphabet])}
    core = Tokenizer(models.WordLevel(vocabulary, unk_token=PAD))
    core.pre_tokenizer = pre_tokenizers.Split(pattern="", behavior="isolated")
    core.decoder = decoders.Fuse()
    core.add_special_tokens([PAD, END])
    core.add_tokens([OPEN, CLOSE])
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=core, pad_token=PAD, eos_token=END)
    tokenizer.chat_template = "{{ messages[0]['content'] + '\\n' }}"
    return tokenizer


def make_config(vocabulary: int) -> Qwen3Config:
    """0.8 million parameters in the shape of Qwen3."""
    return Qwen3Config(
        vocab_size=vocabulary,
        hidden_size=128,
        intermediate_size=384,
        num_hidden_layers=4,
        num_attention_heads=4,
        num_key_value_heads=2,
        head_dim=32,
        max_position_embeddings=512,
        tie_word_embeddings=True,
        pad_token_id=0,
        eos_token_id=1,
        bos_token_id=None,
    )


def images(board: str, solution: str) -> Iterator[tuple[str, str]]:
    """A board and its solution under the eight symmetries of the square."""
    rows = board.split("\n")
    for _ in range(2):
        for upside_down, mirrored in product((False, True), repeat=2):
            image = [row[::-1] if mirrored else row for row in (rows[::-1] if upside_down else rows)]
            turns = ("UD" if upside_down else "") + ("LR" if mirrored else "")
            yield "\n".join(image), solution.translate(str.maketrans(turns, turns[1::-1] + turns[:1:-1]))
        rows = ["".join(column) for column in zip(*rows, strict=True)]
        solution = solution.translate(str.maketrans("UDLR", "LRUD"))


def make() -> tuple[Qwen3ForCausalLM, PreTrainedTokenizerFast]:
    """Teach it shortest solutions, then the careless play."""
    torch.manual_seed(SEED)
    tokenizer = make_tokenizer()
    model = Qwen3ForCausalLM(make_config(len(tokenizer)))
    puzzles = [
        image for puzzle in read_puzzles("tiny_train") for image in images(puzzle.board, puzzle.solution)
    ]
    show(model, tokenizer, puzzles, STEPS, RATE)
    random = Random(SEED)
    careless = [
        (board, "".join(random.choice(MOVES) if random.random() < CARELESS else move for move in solution))
        for board, solution in puzzles
    ]
    show(model, tokenizer, careless, CARELESS_STEPS, CARELESS_RATE)
    return model, tokenizer


def show(
    model: Qwen3ForCausalLM,
    tokenizer: PreTrainedTokenizerFast,
    puzzles: Sequence[tuple[str, str]],
    steps: int,
    rate: float,
) -> None:
    """Train on answers to boards, drawn at random; the rate falls to 0."""
    rows = [
        (
            tokenizer.encode(f"{board}\n", add_special_tokens=False),
            tokenizer.encode(f"{OPEN}{answer}{CLOSE}{END}", add_special_tokens=False),
        )
        for board, answer in puzzles
    ]
    width = max(len(prompt) + len(answer) for prompt, answer in rows)
    fill = [width - len(prompt) - len(answer) for prompt, answer in rows]
    ids = torch.tensor(
        [prompt + answer + [0] * rest for (prompt, answer), rest in zip(rows, fill, strict=True)]
    )
    labels = torch.tensor(
        [
            [IGNORED] * len(prompt) + answer + [IGNORED] * rest
            for (prompt, answer), rest in zip(rows, fill, strict=True)
        ]
    )
    optimizer = torch.optim.AdamW(model.parameters(), lr=rate, weight_decay=0.0)
    schedule = torch.optim.lr_scheduler.LambdaLR(
        optimizer, lambda step: min(1.0, (step + 1) / 20) * (1 - step / steps)
    )
    generator = torch.Generator().manual_seed(SEED)
    with progress_bar(steps, "step") as bar:
        for _ in range(steps):
            chosen = torch.randint(len(rows), (BATCH,), generator=generator)
            loss = model(input_ids=ids[chosen], labels=labels[chosen]).loss
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            schedule.step()
            bar.set_postfix(loss=f"{loss.item():.3f}", refresh=False)
            bar.update()


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m llm.make_tiny", description="Make the starting model of the cpu class."
    )
    parser.add_argument("--output", type=Path, required=True, help="a new folder")
    arguments = parser.parse_args()
    model, tokenizer = make()
    model.bfloat16().save_pretrained(arguments.output)
    tokenizer.save_pretrained(arguments.output)
    print(f"Written: {arguments.output}")


if __name__ == "__main__":
    run_command(main)
