"""Writing a file whole or not at all."""

import os
from pathlib import Path


def write_atomic(path: Path, data: bytes) -> None:
    """Write `data` under a temporary name beside `path`, flush it to the disk, then rename it."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        with temporary.open("wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)
