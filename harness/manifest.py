"""manifest.json: what ran, on what, with what; gathered by the tools and typed by nobody."""

import hashlib
import os
import re
import subprocess
import sys
import sysconfig
from collections.abc import Mapping
from importlib import metadata
from pathlib import Path
from typing import Annotated, Self

from pydantic import AwareDatetime, BaseModel, Field, JsonValue, NonNegativeInt, model_validator

from harness.errors import Problem
from harness.files import STRICT, read_model
from harness.machine import Machine, launcher

MANIFEST_NAME = "manifest.json"
SOURCE_NAME = "speedrun.py"

Sha256 = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
RunId = Annotated[str, Field(pattern=r"^[0-9a-f]{32}$")]

_ENVIRONMENT = (
    # the system and Python
    "LD_PRELOAD", "LD_AUDIT", "LD_LIBRARY_PATH", "GLIBC_TUNABLES", "MALLOC_", "PYTHON",
    # threads, arithmetic, memory
    "OMP_", "MKL_", "KMP_", "GOMP_", "DNNL_", "ONEDNN_", "OPENBLAS_", "BLIS_", "NUMEXPR_", "NUMBA_", "NPY_",
    "TORCH", "PYTORCH", "ATEN_", "TRITON_", "XLA_", "JAX_", "RAYON_",
    # GPUs, the network between them, and processes elsewhere
    "CUDA_", "CUBLAS_", "CUDNN_", "CUTLASS_", "NVIDIA_TF32", "NVTE_", "NCCL_", "GLOO_", "UCX_",
    "RANK", "LOCAL_RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE", "GROUP_RANK", "NODE_RANK", "MASTER_", "PET_",
    # libraries of models, and the Java of a benchmark
    "HF_", "TRANSFORMERS_", "ACCELERATE_", "DEEPSPEED_", "TOKENIZERS_", "VLLM_", "FLASHINFER_",
    "FLASH_ATTENTION_", "JAVA_", "JDK_", "_JAVA_",
)  # fmt: skip
# What images set to describe themselves or to suit a processor; where files and caches lie, for files are
# hashed; what is printed.
_HARMLESS = (
    "CUDA_VISIBLE_DEVICES", "CUDA_HOME", "CUDA_PATH", "CUDA_VERSION", "NCCL_VERSION", "CUDNN_VERSION",
    "OPENBLAS_CORETYPE", "OPENBLAS_L2_SIZE",
    "PYTHONUNBUFFERED", "PYTHONDONTWRITEBYTECODE", "PYTHONNOUSERSITE", "PYTHONUTF8",
    "PYTHONIOENCODING", "PYTHONFAULTHANDLER", "PYTHONWARNINGS", "PYTHONSTARTUP", "PYTHON_BASIC_REPL",
    "PYTHON_COLORS", "PYTHON_HISTORY", "PYTHON_VERSION", "PYTHON_SHA256", "PYTHON_PIP_VERSION",
    "PYTHON_GET_PIP_", "PYTHON_SETUPTOOLS_VERSION",
    "HF_", "TRANSFORMERS_OFFLINE", "TRANSFORMERS_CACHE", "TRANSFORMERS_VERBOSITY",
    "VLLM_CACHE_ROOT", "VLLM_CONFIG_ROOT", "VLLM_LOGGING_LEVEL", "VLLM_NO_USAGE_STATS", "JAVA_HOME",
)  # fmt: skip
_SECRET = re.compile(r"(^|_)(TOKEN|KEY|SECRET|PASSWORD|CREDENTIALS?)(_|$)")
_IMAGE_LIBRARIES = ("/usr/local/nvidia/", "/usr/local/cuda")
"""Where images for GPUs point LD_LIBRARY_PATH."""

_LACKED = {"open_files": ("1",), "customized": ("1",), "stray_files": ("1",)}
"""Field -> the rulesets whose first runs could not have it yet."""


class Git(BaseModel):
    """The state of the checkout."""

    model_config = STRICT

    commit: str | None
    """None before the first commit."""
    dirty: bool
    diff_sha256: Sha256 | None
    """Hash of `git diff --binary HEAD`; None where no tracked file differs."""
    dirty_files: tuple[str, ...]
    """Changed and untracked files, from the root, sorted."""


class Manifest(BaseModel):
    """Everything about a run that is known when it starts, and the data it then read."""

    model_config = STRICT

    run_id: RunId
    ruleset: str
    track: str
    hardware_class: str | None
    """None where the machine fits no class of the track."""
    recipe_name: str
    recipe: dict[str, JsonValue]
    recipe_sha256: Sha256
    """Hash of canonical_json(recipe)."""
    seed: NonNegativeInt
    seed_source: str
    """"recipe", "derived from <run_id>" or "flag"."""
    verifies: RunId | None
    """The run whose record this run verifies with a second seed."""
    source_sha256: Sha256
    """Hash of the snapshot speedrun.py."""
    fixed_files: dict[str, Sha256]
    open_files: dict[str, Sha256] = {}
    """What a recipe may have changed besides speedrun.py."""
    data: dict[str, Sha256]
    """Every file that training read; empty until the run has read them."""
    git: Git | None
    """None outside a git checkout, or without git."""
    packages: dict[str, str]
    machine: Machine
    calibration_s: Annotated[float, Field(gt=0)]
    argv: tuple[str, ...]
    flags: tuple[str, ...]
    """The flags that changed anything."""
    environment: dict[str, str]
    """The variables at launch that can change speed or results."""
    overriding_environment: tuple[str, ...]
    """Those of them that make a run ineligible."""
    smoke: bool
    started_utc: AwareDatetime
    resumed: bool
    customized: tuple[str, ...] = ()
    """Modules that Python runs before any command, other than the system's own."""
    stray_files: tuple[str, ...] = ()
    """What the run imported of the checkout that is neither fixed nor open nor its speedrun.py, sorted."""

    @model_validator(mode="after")
    def _is_whole(self) -> Self:
        for name, rulesets in _LACKED.items():
            if name not in self.model_fields_set and self.ruleset not in rulesets:
                raise ValueError(f"{name}: Field required by ruleset {self.ruleset}")
        return self


def read_manifest(path: Path) -> Manifest:
    """Read and check manifest.json; a Problem names every field that is wrong."""
    return read_model(path, Manifest)


def read_git(root: Path) -> Git | None:
    """The state of the checkout at `root`; None without git, or where `root` is not the top of a checkout."""
    top = _git(root, "rev-parse", "--show-toplevel")
    if top is None or Path(os.fsdecode(top.rstrip(b"\n"))).resolve() != root.resolve():
        return None
    status = _git(root, "status", "--porcelain", "-z", "--untracked-files=all", "--no-renames")
    if status is None:
        return None
    commit = _git(root, "rev-parse", "--verify", "--quiet", "HEAD")
    difference = _git(root, "diff", "--binary", "--no-ext-diff", "HEAD")
    files = sorted(os.fsdecode(entry[3:]) for entry in status.split(b"\0") if entry)
    return Git(
        commit=commit.decode().strip() if commit else None,
        dirty=bool(files),
        diff_sha256=hashlib.sha256(difference).hexdigest() if difference else None,
        dirty_files=tuple(files),
    )


def installed_packages() -> dict[str, str]:
    """Name -> version of every installed distribution, sorted by name."""
    return dict(sorted((item.name, item.version) for item in metadata.distributions() if item.name))


def command_line() -> tuple[str, ...]:
    """The command that was started: torchrun's where that started this process, and the system tells it."""
    if launcher() == os.getpid():
        return tuple(sys.orig_argv)
    try:
        words = Path(f"/proc/{launcher()}/cmdline").read_bytes().split(b"\0")
    except OSError:
        return tuple(sys.orig_argv)
    return tuple(os.fsdecode(word) for word in words[:-1])


def launch_environment() -> dict[str, str]:
    """The environment that the command was started with.

    Libraries set variables when they are imported, and torchrun for the processes that it starts, so what the
    system remembers from before counts.
    """
    try:
        block = Path(f"/proc/{launcher()}/environ").read_bytes()
    except OSError:
        return dict(os.environ)
    pairs = (os.fsdecode(entry).partition("=") for entry in block.split(b"\0"))
    return {name: value for name, separator, value in pairs if separator}


def customizations() -> tuple[str, ...]:
    """Names of what Python ran before this command: sitecustomize and usercustomize, unless the system's."""
    system = sysconfig.get_path("stdlib")
    found = {name: sys.modules.get(name) for name in ("sitecustomize", "usercustomize")}
    return tuple(
        name for name, module in found.items() if module and not str(module.__file__).startswith(system)
    )


def imported_files(root: Path) -> set[str]:
    """Paths from `root` of the files in it that this process has imported.

    Not counted are Python and its libraries, should they lie there, and hidden folders, which hold caches.
    """
    prefixes = {Path(prefix) for prefix in (sys.prefix, sys.base_prefix)}
    installed = [prefix for prefix in prefixes if not root.is_relative_to(prefix)]
    found = (getattr(module, "__file__", None) for module in list(sys.modules.values()))
    paths = (Path(file) for file in found if isinstance(file, str))
    return {
        path.relative_to(root).as_posix()
        for path in paths
        if path.is_relative_to(root)
        and not any(path.is_relative_to(prefix) for prefix in installed)
        and not any(part.startswith(".") for part in path.relative_to(root).parts)
    }


def relevant(environment: Mapping[str, str]) -> dict[str, str]:
    """Those variables that can change the speed or the result of a run, sorted; never a secret."""
    names = (name for name in sorted(environment) if name.startswith(_ENVIRONMENT))
    return {name: environment[name] for name in names if not _SECRET.search(name)}


def overriding(environment: Mapping[str, str]) -> tuple[str, ...]:
    """Names of the relevant variables that no record may have been made with, sorted."""
    found = (name for name in relevant(environment) if not name.startswith(_HARMLESS))
    return tuple(name for name in found if name != "LD_LIBRARY_PATH" or _strange_libraries(environment[name]))


def _strange_libraries(paths: str) -> bool:
    return any(path and not path.startswith(_IMAGE_LIBRARIES) for path in paths.split(":"))


def _git(root: Path, *arguments: str) -> bytes | None:
    """Output of a git command; None where git is missing or the command fails."""
    command = ["git", "--no-optional-locks", "-C", str(root), *arguments]
    try:
        done = subprocess.run(command, capture_output=True, timeout=60)
    except FileNotFoundError:
        return None
    except subprocess.TimeoutExpired as error:
        raise Problem("git did not answer within 60 s", file=root) from error
    return done.stdout if done.returncode == 0 else None
