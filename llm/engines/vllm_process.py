"""FIXED: what runs inside vLLM: the start of a server, and new weights for a model that serves.

python -m llm.engines.vllm_process --model <folder> ...    as `vllm serve`, but ends when its parent does
"""

import ctypes
import signal
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # a process that is about to start vLLM should not wait for torch before that
    from torch import Tensor

PARENT_DEATH_SIGNAL = 1  # PR_SET_PDEATHSIG of linux/prctl.h


class WeightLoading:
    """What vLLM's workers learn by the option `worker_extension_cls`; called between forward passes."""

    device: Any
    model_runner: Any
    reload_weights: Any

    def load_folder(self, folder: str) -> None:
        """Take over the weights in the safetensors files of a folder."""
        self.reload_weights(weights_path=folder)
        self._pack_head()

    def load_tensors(self, weights: "Mapping[str, Tensor]") -> None:
        """Take over weights from this process; the names are those of transformers."""
        self.reload_weights(weights_iterator=iter(weights.items()))
        self._pack_head()

    def _pack_head(self) -> None:
        """On CPUs a head that is tied to the embeddings computes with a copy, which a reload forgets."""
        if self.device.type != "cpu":
            return
        from vllm.model_executor.layers.utils import dispatch_cpu_unquantized_gemm

        dispatch_cpu_unquantized_gemm(self.model_runner.get_model().lm_head, remove_weight=False)


def end_with_parent() -> None:
    """When the thread that started this process ends, however it ends, end too (Linux only)."""
    ctypes.CDLL(None).prctl(PARENT_DEATH_SIGNAL, signal.SIGTERM)


def main() -> None:
    """Serve."""
    end_with_parent()
    from vllm.entrypoints.launchers.api_server.entry import main as serve

    serve()


if __name__ == "__main__":
    main()
