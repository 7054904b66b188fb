"""The starting model of the cpu class: its alphabet, its lessons, and the one that is committed."""

import copy

import pytest
import torch
from transformers import AutoConfig, PreTrainedTokenizerBase, Qwen3ForCausalLM

from harness.track import ROOT
from llm.answers import judge
from llm.completion import INTERRUPTION, Sampling
from llm.engines.local import LocalEngine
from llm.make_tiny import images, make_config, show
from llm.models import load_model, load_tokenizer
from llm.puzzles import Puzzle, read_puzzles

TINY = ROOT / "llm/tiny"

pytestmark = pytest.mark.usefixtures("one_thread")


def test_every_character_is_a_token_and_so_is_a_tag(tokenizer: PreTrainedTokenizerBase) -> None:
    texts = [puzzle.board for puzzle in read_puzzles("tiny_train")[:200]]
    for text in [*texts, INTERRUPTION, "".join(map(chr, range(32, 127))) + "\n"]:
        tokens = tokenizer.encode(text, add_special_tokens=False)
        assert len(tokens) == len(text) and tokenizer.pad_token_id not in tokens
        assert tokenizer.decode(tokens) == text
    tokens = tokenizer.encode("<answer>RU</answer><|end|>", add_special_tokens=False)
    assert len(tokens) == 5 and tokens[-1] == tokenizer.eos_token_id == 1
    assert tokenizer.decode(tokens, skip_special_tokens=True) == "<answer>RU</answer>"


def test_the_images_of_a_board_are_eight_and_solved_by_their_solutions() -> None:
    for puzzle in read_puzzles("tiny_valid")[:40]:
        found = list(images(puzzle.board, puzzle.solution))
        assert found[0] == (puzzle.board, puzzle.solution) and len(found) == 8
        for board, solution in found:
            assert judge(Puzzle(0, board, solution), f"<answer>{solution}</answer>").solved
    board = "+++++\n+*@X+\n+---+\n+++++"
    assert {image.split("\n")[1] for image, _ in images(board, "R")} == {
        *("+*@X+", "+X@*+", "+---+"),
        *("+-*+", "+-X+", "+*-+", "+X-+"),
    }


def test_only_answers_are_taught(small_model: Qwen3ForCausalLM, tokenizer: PreTrainedTokenizerBase) -> None:
    """Two boards and their answers are soon known, and boards are foretold no better than before."""
    lessons = [("+*@X+", "R"), ("+X@-*+", "LLU")]
    model = copy.deepcopy(small_model)
    prompts = [tokenizer.encode(f"{board}\n", add_special_tokens=False) for board, _ in lessons]
    ids = torch.tensor([prompts[0]])
    with torch.no_grad():
        before = float(model(input_ids=ids, labels=ids).loss)
    torch.manual_seed(0)
    show(model, tokenizer, lessons, steps=40, rate=1e-2)
    with torch.no_grad():
        assert float(model(input_ids=ids, labels=ids).loss) > before - 1
    likeliest = LocalEngine(model, 1).generate(prompts, [1, 2], [10, 10], Sampling(1.0, 1e-6))
    said = [tokenizer.decode(generation.tokens) for generation in likeliest]
    assert said == [f"<answer>{answer}</answer><|end|>" for _, answer in lessons]


def test_the_committed_model_is_of_this_shape_and_alphabet(tokenizer: PreTrainedTokenizerBase) -> None:
    assert load_tokenizer(TINY).get_vocab() == tokenizer.get_vocab()
    expected, found = make_config(len(tokenizer)), AutoConfig.from_pretrained(TINY)
    for name in ("hidden_size", "num_hidden_layers", "vocab_size", "head_dim", "tie_word_embeddings"):
        assert getattr(found, name) == getattr(expected, name)
    model = load_model(TINY, torch.device("cpu"))
    assert 0.75e6 < sum(weight.numel() for weight in model.parameters()) < 0.85e6


def test_the_committed_model_solves_some_puzzles_and_not_others(tokenizer: PreTrainedTokenizerBase) -> None:
    model = load_model(TINY, torch.device("cpu"))
    puzzles = read_puzzles("tiny_valid")[:60]
    prompts = [tokenizer.encode(f"{puzzle.board}\n", add_special_tokens=False) for puzzle in puzzles]
    drawn = LocalEngine(model, 1).generate(prompts, list(range(60)), [24] * 60, Sampling(0.8, 0.95))
    solved = [
        judge(puzzle, tokenizer.decode(generation.tokens), stopped=generation.stopped).solved
        for puzzle, generation in zip(puzzles, drawn, strict=True)
    ]
    assert 0.2 < sum(solved) / 60 < 0.8
