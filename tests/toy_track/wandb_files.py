"""What Weights & Biases keeps on disk, read back."""

import importlib
import json
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any


def wandb_records(path: Path) -> Iterator[Any]:
    """The records of a .wandb file: protocol buffers in the log format of LevelDB, after 7 bytes."""
    schema = importlib.import_module("wandb.proto.wandb_internal_pb2")
    data, place, payload = path.read_bytes(), 7, b""
    while place + 7 <= len(data):
        if 2**15 - place % 2**15 < 7:  # no header begins so near the end of a block
            place += 2**15 - place % 2**15
            continue
        _, size, kind = struct.unpack_from("<IHB", data, place)
        payload += data[place + 7 : place + 7 + size]
        place += 7 + size
        if kind in (1, 4):  # whole, or the last part
            record = schema.Record()
            record.ParseFromString(payload)
            yield record
            payload = b""


def wandb_rows(path: Path) -> list[dict[str, Any]]:
    """The rows of a run's history."""
    return [
        {"/".join(item.nested_key) or item.key: json.loads(item.value_json) for item in record.history.item}
        for record in wandb_records(path)
        if record.WhichOneof("record_type") == "history"
    ]
