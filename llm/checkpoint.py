"""FIXED: a trained model on disk, and the index of its files that stands in a record in place of it.

The weights stay in the run's folder `checkpoint/`, which is too large for a record. `checkpoint.json` names
every file in it with its SHA-256, and the evaluation loads none that differs:

    {"files":{"config.json":"ab12...","model.safetensors":"cd34..."}}
"""

from pathlib import Path

from safetensors import SafetensorError
from torch import Tensor
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from harness.errors import Problem
from harness.files import canonical_json, read_model, sha256_file, unwritable
from llm.evidence import Index

FOLDER, INDEX = "checkpoint", "checkpoint.json"


def save_checkpoint(
    run: Path, model: PreTrainedModel, weights: dict[str, Tensor], tokenizer: PreTrainedTokenizerBase
) -> bytes:
    """Write weights, configuration and tokenizer into `run`/checkpoint; returns the index.

    Raises:
        Problem: there is no room, or no permission to write there.
    """
    folder = run / FOLDER
    try:
        model.save_pretrained(folder, state_dict=weights)
        tokenizer.save_pretrained(folder)
    except SafetensorError as error:
        raise unwritable(folder, OSError(str(error))) from error
    except OSError as error:
        raise unwritable(folder, error) from error
    return (canonical_json({"files": index_files(folder)}) + "\n").encode()


def index_files(folder: Path) -> dict[str, str]:
    """Name -> SHA-256 of every file in a folder."""
    return {path.name: sha256_file(path) for path in sorted(folder.iterdir()) if path.is_file()}


def open_checkpoint(run: Path) -> Path:
    """The folder of a run's checkpoint, once every file in it is known to be the one that was saved."""
    index, folder = read_model(run / INDEX, Index), run / FOLDER
    found = index_files(folder) if folder.is_dir() else {}
    for name in sorted(index.files.keys() | found.keys()):
        if found.get(name) != index.files.get(name):
            why = "is missing" if name not in found else "is not the file that training saved"
            raise Problem(why, file=folder / name, remedy="copy the folder again from where it was trained")
    return folder
