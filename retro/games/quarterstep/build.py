"""Builds the ROM of Quarterstep: `python -m retro.games.quarterstep.build`; with `--check` it only compares.

Needs ca65 and ld65 of cc65 (Debian: cc65). The tables come from levels.txt, tiles.txt and font.txt, the code
from src/, the header and the layout from src/nrom.cfg.
"""

import argparse
import hashlib
import shutil
import subprocess
import tempfile
from pathlib import Path

from harness.errors import Problem, run_command
from harness.files import read_bytes, write_atomic
from retro.games.quarterstep import graphics, levels

SOURCE = Path(__file__).parent / "src"
INTEGRATION = Path(__file__).parent / "Quarterstep-Nes-v0"
ROM = INTEGRATION / "rom.nes"
FILES = ("main.s", "screen.s", "play.s", "sound.s", "tables.s")


def tables() -> dict[str, bytes]:
    """The binary files that src/tables.s includes, by name."""
    screens = levels.screens()
    first = [graphics.FIRST_TILE + 4 * code if name else 0 for code, name in enumerate(graphics.TILES)]
    written, starts = bytearray(), bytearray()
    for screen in screens:
        starts.append(len(written))
        for row, column, text, large in graphics.texts(screen):
            for line, cells in enumerate(graphics.cells(text, large)):
                address = 0x2000 + 32 * (row + line) + column
                written += bytes([address >> 8, address & 255, len(cells)]) + cells
        written.append(0)
    return {
        "screens.bin": b"".join(screen.page() for screen in screens),
        "attributes.bin": b"".join(map(graphics.attributes, screens)),
        "palettes.bin": bytes(colour for palette in graphics.PALETTES for colour in palette),
        "bricks.bin": bytes(ink for palette in graphics.BRICKS for ink in palette),
        "patterns.bin": graphics.patterns(),
        "tiles.bin": bytes(first),
        "texts.bin": bytes(written),
        "starts.bin": bytes(starts),
    }


def build() -> bytes:
    """The ROM, with its header."""
    for program in ("ca65", "ld65"):
        if shutil.which(program) is None:
            raise Problem(f"{program} is not installed", remedy="install cc65 (Debian: apt install cc65)")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for table, content in tables().items():
            (folder / table).write_bytes(content)
        for file in FILES:
            _run("ca65", "-I", str(SOURCE), "--bin-include-dir", name, "-o", str(folder / f"{file}.o"),
                 str(SOURCE / file))  # fmt: skip
        objects = [str(folder / f"{file}.o") for file in FILES]
        _run("ld65", "-C", str(SOURCE / "nrom.cfg"), "-o", str(folder / "rom.nes"), *objects)
        return (folder / "rom.nes").read_bytes()


def main() -> int:
    """The command."""
    parser = argparse.ArgumentParser(
        prog="python -m retro.games.quarterstep.build", description="Build the ROM of Quarterstep."
    )
    parser.add_argument(
        "--check", action="store_true", help="compare with the ROM that is there; write nothing"
    )
    check = parser.parse_args().check
    rom = build()
    digest = hashlib.sha1(rom[16:]).hexdigest()
    if check:
        if rom != read_bytes(ROM):
            raise Problem("is not what the sources build", file=ROM, remedy=f"python -m {__spec__.name}")
        print(f"{ROM.name} is what the sources build: {digest}")
        return 0
    write_atomic(ROM, rom)
    write_atomic(INTEGRATION / "rom.sha", digest + "\n")
    print(f"{ROM.name}: {len(rom):,} bytes, {digest}")
    return 0


def _run(*command: str) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise Problem(f"{command[0]} failed: {done.stderr.strip()}")


if __name__ == "__main__":
    run_command(main)
