"""FIXED: a console that runs one game, frame by frame, from power-on: a thin layer over stable-retro's cores.

Frame 0 is the first after power-on, and whoever makes movies runs it without buttons, because stable-retro's
own player of movies does. docs/retro_movies.md says more.
"""

import ctypes
import gc
import struct
import weakref
from collections.abc import Callable, Mapping
from fractions import Fraction
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import stable_retro
import xxhash
from numpy.typing import NDArray

from harness.errors import Problem
from harness.files import sha256_file
from retro.inputs import mask, names_of
from retro.memory import compile_reader
from retro.packages import Variable

__all__ = ["Console", "Emulator", "console_of", "mask", "versions"]


class Console(NamedTuple):
    """What a console's core does not say, or says inexactly."""

    work_ram: int
    """Address of work RAM."""
    size: int
    """Bytes of work RAM."""
    flip: int
    """See `retro.memory.compile_reader`."""
    frame_rates: tuple[Fraction, ...]
    """Frames a second, NTSC and PAL."""


# The clock divided by what a frame takes. NES: 236.25/11 MHz / 4 a dot, 341 x 262 dots less half a dot on
# average; PAL 26.6017125 MHz / 5 a dot, 341 x 312. Genesis: 53.693175 MHz / 3,420 a line, 262 lines; PAL
# 53.203424 MHz, 313 lines.
CONSOLES = {
    "Nes": Console(0, 0x800, 0, (Fraction(39375000, 655171), Fraction(53203425, 2 * 5 * 341 * 312))),
    "Genesis": Console(
        0xFF0000, 0x10000, 1, (Fraction(53693175, 3420 * 262), Fraction(53203424, 3420 * 313))
    ),
}

_HEADER = struct.Struct("<4s8s8sIQ")
"""Of a savestate: magic, the SHA-256 of the ROM and of the core, both cut to 8 bytes, frames since power-on,
xxh3_64 of what follows with the frames as its seed."""
_MAGIC = b"rss1"

_alive: "weakref.ref[Emulator] | None" = None  # a core keeps its state in globals, so a process can hold one


class _Masks(dict[int, NDArray[np.uint8]]):
    """Button mask -> the array that the core takes."""

    def __init__(self, buttons: tuple[str | None, ...]) -> None:
        super().__init__()
        self._buttons = buttons

    def __missing__(self, bits: int) -> NDArray[np.uint8]:
        names_of(bits, self._buttons)
        self[bits] = np.array([bits >> place & 1 for place in range(len(self._buttons))], np.uint8)
        return self[bits]


class Emulator:
    """One game on its console, switched on when made. A process holds one at a time: `close` it.

    After `load` or `power_on` the screen and the sound are those of before until a frame is run.
    """

    def __init__(self, rom: Path, variables: Mapping[str, Variable]) -> None:
        """Switch on with no frame run.

        Raises:
            Problem: the ROM cannot be read or is of no known console, a variable has an unknown type or an
                address outside memory (it names the variable), or the process holds another Emulator.
        """
        global _alive
        self.rom = rom
        self.rom_sha256 = sha256_file(rom, links=True)
        self.system = console_of(rom)
        core = stable_retro.get_system_info(self.system)
        console = CONSOLES[self.system]
        self.core: str = core["lib"]
        self.buttons: tuple[str | None, ...] = tuple(core["buttons"])
        gc.collect()  # an Emulator that nobody holds is gone
        if _alive is not None and _alive() is not None:
            raise Problem("this process holds another emulator", remedy="close() it before opening the next")
        try:
            core_emulator = stable_retro.RetroEmulator(str(rom.resolve()))
        except RuntimeError as error:
            raise Problem(f"{self.core} does not run it: {error}", file=rom) from error
        data = stable_retro.data.GameData()
        core_emulator.configure_data(data)
        blocks = data.memory.blocks
        self._work_ram = [start for start in sorted(blocks) if 0 <= start - console.work_ram < console.size]
        regions = {start: len(block) for start, block in sorted(blocks.items())}
        for start in regions.keys() - set(self._work_ram):  # memory of the cartridge, which no core clears
            for address in range(start, start + regions[start], 8):
                data.memory.assign(address, "|u8", 0)
        self.values, self._forget = compile_reader(data.memory, variables, regions, console.flip)
        """All variables at this moment, as a named tuple."""
        reported = core_emulator.get_screen_rate()
        self.exact_frame_rate = min(console.frame_rates, key=lambda rate: abs(rate - Fraction(reported)))
        self.frame_rate = float(self.exact_frame_rate)
        """True frames a second of the console."""
        self.audio_rate = round(core_emulator.get_audio_rate())
        """Samples a second of `audio`."""
        self.frame = 0
        """Frames run since power-on."""
        self._core = core_emulator
        self._data = data
        self._step: Callable[[], None] = core_emulator.step
        self._hold: Callable[[NDArray[np.uint8]], None] = core_emulator.set_button_mask
        self._masks = _Masks(self.buttons)
        self._held = 0
        self._rom_id = bytes.fromhex(self.rom_sha256)[:8]
        self._core_id = bytes.fromhex(versions()[self.core])
        self.boot, self._defined = _power_on_state(core_emulator)
        """The core's own savestate at power-on."""
        self._length = int(np.flatnonzero(self._defined)[-1]) + 1
        # The core takes only `bytes` of full length, so a loaded state is written over one that nobody else
        # sees: padding each anew would take as long as the core takes to load it.
        self._whole = bytes(len(self.boot))
        self._whole_at = ctypes.cast(ctypes.c_char_p(self._whole), ctypes.c_void_p).value or 0
        self._hold(self._masks[0])
        self.power_on()
        _alive = weakref.ref(self)
        weakref.finalize(self, self._forget)  # `values` must not look into memory that the core gave back

    # ---- running -------------------------------------------------------------------------------------------

    def power_on(self) -> None:
        """Switch off and on again: no frame is run, and what follows is as in a fresh process."""
        self._restore(self.boot)
        self.frame = 0

    def is_power_on(self, state: bytes) -> bool:
        """Whether a state of the core's own, as in `boot`, is that at power-on. Switches off and on again."""
        if len(state) != len(self.boot) or not self._core.set_state(state):
            return False
        # Compared after loading: a core may keep addresses of its process in a state.
        loaded = np.frombuffer(self._core.get_state(), np.uint8)[self._defined]
        self.power_on()
        fresh = np.frombuffer(self._core.get_state(), np.uint8)[self._defined]
        return bool((loaded == fresh).all())

    def step(self, buttons: int, frames: int = 1) -> None:
        """Run frames, at least one, with these buttons held; a Problem on bits that are no button."""
        if buttons != self._held:
            self._hold(self._masks[buttons])
            self._held = buttons
        step = self._step
        for _ in range(frames):
            step()
        self.frame += frames

    # ---- savestates ----------------------------------------------------------------------------------------

    def save(self) -> bytes:
        """The state of the game at this moment, for `load` in any process with this ROM and this core."""
        content = memoryview(self._core.get_state())[: self._length]
        check = xxhash.xxh3_64_intdigest(content, self.frame)
        header = _HEADER.pack(_MAGIC, self._rom_id, self._core_id, self.frame, check)
        return b"".join((header, content))

    def load(self, state: bytes) -> None:
        """Go on from a saved state; a Problem, and no change, where it is foreign, cut short or corrupt."""
        if len(state) < _HEADER.size:
            raise Problem(f"no savestate: {len(state)} bytes")
        magic, rom_id, core_id, frame, check = _HEADER.unpack_from(state)
        if magic != _MAGIC:
            raise Problem("no savestate of this engine")
        for what, said, here in (("ROM", rom_id, self._rom_id), ("core", core_id, self._core_id)):
            if said != here:
                raise Problem(f"a savestate of another {what}: {said.hex()}, not {here.hex()}")
        content = state[_HEADER.size :]
        if xxhash.xxh3_64_intdigest(content, frame) != check or len(content) > len(self._whole):
            raise Problem("a savestate that is cut short or corrupt")
        ctypes.memmove(self._whole_at, content, len(content))
        self._restore(self._whole)
        self.frame = frame

    def _restore(self, state: bytes) -> None:
        if not self._core.set_state(state):
            raise Problem(f"the core {self.core} refuses the savestate", remedy="see `versions` of both")

    # ---- looking -------------------------------------------------------------------------------------------

    def read(self, name: str) -> int:
        """One variable at this moment; a Problem where the package has none of this name."""
        values = self.values()
        if name not in values._fields:
            raise Problem(
                f"there is no variable {name!r}", remedy=f"choose from: {', '.join(values._fields)}"
            )
        return int(getattr(values, name))

    def work_ram(self) -> NDArray[np.uint8]:
        """Work RAM as the core keeps it; on the Genesis the bytes of each 16-bit word are swapped."""
        return np.frombuffer(self._work_ram_bytes(), np.uint8)

    def ram_hash(self) -> str:
        """xxh3_64 of `work_ram()`: 16 digits in lowercase hex."""
        return xxhash.xxh3_64_hexdigest(self._work_ram_bytes())

    def _work_ram_bytes(self) -> bytes:
        blocks = self._data.memory.blocks
        return b"".join([blocks[start] for start in self._work_ram])

    def screen(self) -> NDArray[np.uint8]:
        """The picture of the last frame: (height, width, 3), red, green, blue."""
        return np.array(self._core.get_screen(), np.uint8)

    def audio(self) -> NDArray[np.int16]:
        """The sound of the last frame: (samples, 2), left and right, at `audio_rate`."""
        return np.array(self._core.get_audio(), np.int16).reshape(-1, 2)

    def close(self) -> None:
        """Switch off. Nothing else may be called after this but `close`."""
        global _alive
        self._forget()
        for name in ("_core", "_data", "_step", "_hold"):
            self.__dict__.pop(name, None)
        if _alive is not None and _alive() is self:
            _alive = None


def console_of(rom: Path) -> str:
    """Name of the console that a ROM is for, by its extension; a Problem where it is none that runs here."""
    extensions: dict[str, str] = stable_retro.data.EMU_EXTENSIONS
    known = {end: system for end, system in extensions.items() if system in CONSOLES}
    system = known.get(rom.suffix)
    if system is None:
        endings = ", ".join(f"{end} ({system})" for end, system in sorted(known.items()))
        raise Problem(
            f"a ROM of no console that runs here: {rom.suffix!r}", file=rom, remedy=f"use {endings}"
        )
    return system


def _power_on_state(core: Any) -> tuple[bytes, NDArray[np.bool_]]:
    """(the core's state with undefined bytes made 0, which bytes are defined).

    A core may leave part of a state unwritten. What memory held before shows there: once 0xAA, once 0x55.
    """
    length = len(core.get_state())
    saved = []
    for filler in (b"\xaa", b"\x55"):
        before = filler * length
        del before  # the next allocation of this length gets the same memory
        saved.append(np.frombuffer(core.get_state(), np.uint8))
    defined = saved[0] == saved[1]
    return np.where(defined, saved[0], 0).astype(np.uint8).tobytes(), defined


@cache
def versions() -> dict[str, str]:
    """What emulation depends on: the version of stable-retro, and of each core the SHA-256 of its library,
    cut to 16 digits."""
    found = {"stable-retro": version("stable-retro")}
    for system in sorted(CONSOLES):
        library = Path(stable_retro.get_core_path(system))
        found[stable_retro.get_system_info(system)["lib"]] = sha256_file(library, links=True)[:16]
    return found
