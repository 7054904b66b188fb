"""A checkpoint of non_llm is tensors in the form of safetensors, and nothing that could be code."""

from pathlib import Path

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from safetensors.torch import save

from harness.errors import Problem
from non_llm.track import TRACK

TENSORS = {"a": torch.zeros(3), "b": torch.ones(2, 2, dtype=torch.bfloat16)}


@pytest.mark.parametrize(
    "content",
    [save(TENSORS), save({"a": torch.tensor(1.0)}, {"note": "metadata"}), save({"a": torch.zeros(0)})],
)
def test_what_safetensors_writes_passes(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "file").write_bytes(content)
    TRACK.check_checkpoint(tmp_path / "file", {}, 1)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.one_of(st.binary(max_size=99), st.text(max_size=99).map(lambda text: _with_header(text))))
def test_all_else_is_a_problem(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "file").write_bytes(content)
    with pytest.raises(Problem):
        TRACK.check_checkpoint(tmp_path / "file", {}, 1)


@pytest.mark.parametrize(
    "header",
    ["[]", "{}", '{"a":{}}', '{"a":{"data_offsets":[0,"1"]}}', '{"a":{"data_offsets":[0,9]}}', "[" * 9999],
)
def test_a_header_of_another_form_is_a_problem(tmp_path: Path, header: str) -> None:
    (tmp_path / "file").write_bytes(_with_header(header))
    with pytest.raises(Problem):
        TRACK.check_checkpoint(tmp_path / "file", {}, 1)


def _with_header(text: str) -> bytes:
    return len(text.encode()).to_bytes(8, "little") + text.encode()
