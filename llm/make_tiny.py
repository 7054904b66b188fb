"""FIXED: make the starting model of the cpu class: a tiny Qwen3 that was shown solutions for a minute.

    python -m llm.make_tiny --output FOLDER    train it and write it, about two minutes on two cores

It reads a board character by character and writes `<answer>`, moves, `</answer>`. It was shown the shortest
solutions of tiny_train, too few times to learn to solve puzzles well: it solves about half. The rest is what
RL has to teach. `llm/tiny/` holds the model that counts; the same seed gives the same one on one machine, and
on others one that is as good, because sums round otherwise.
"""

import argparse
import string
from collections.abc import Iterator
from itertools import product
from pathlib import Path

import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers
from transformers import PreTrainedTokenizerFast, Qwen3Config, Qwen3ForCausalLM

from harness.errors import run_command
from harness.progress import progress_bar
from llm.puzzles import read_puzzles

SEED, STEPS, BATCH, RATE = 1, 215, 256, 3e-3
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


def make(steps: int = STEPS) -> tuple[Qwen3ForCausalLM, PreTrainedTokenizerFast]:
    """Train the model on solutions; only the tokens of the answer teach."""
    torch.manual_seed(SEED)
    tokenizer = make_tokenizer()
    model = Qwen3ForCausalLM(make_config(len(tokenizer)))
    rows = []
    for puzzle in read_puzzles("tiny_train"):
        for board, solution in images(puzzle.board, puzzle.solution):
            prompt = tokenizer.encode(f"{board}\n", add_special_tokens=False)
            answer = tokenizer.encode(f"{OPEN}{solution}{CLOSE}{END}", add_special_tokens=False)
            rows.append((prompt, answer))
    width = max(len(prompt) + len(answer) for prompt, answer in rows)
    fill = [[0] * (width - len(prompt) - len(answer)) for prompt, answer in rows]
    ids = torch.tensor([prompt + answer + rest for (prompt, answer), rest in zip(rows, fill, strict=True)])
    labels = ids.clone()
    for row, (prompt, answer) in enumerate(rows):
        labels[row, : len(prompt)] = IGNORED
        labels[row, len(prompt) + len(answer) :] = IGNORED
    optimizer = torch.optim.AdamW(model.parameters(), lr=RATE, weight_decay=0.0)
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
    return model, tokenizer


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m llm.make_tiny", description="Make the starting model of the cpu class."
    )
    parser.add_argument("--output", type=Path, required=True, help="a new folder")
    parser.add_argument("--steps", type=int, default=STEPS, help="training steps (%(default)s)")
    arguments = parser.parse_args()
    model, tokenizer = make(arguments.steps)
    model.bfloat16().save_pretrained(arguments.output)
    tokenizer.save_pretrained(arguments.output)
    print(f"Written: {arguments.output}")


if __name__ == "__main__":
    run_command(main)
