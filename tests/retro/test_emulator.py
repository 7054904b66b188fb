"""The emulator on the real cores: a ROM written here byte by byte, Airstriker and Quarterstep."""

import gc
import random
import re
import struct
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
import stable_retro

from harness.errors import Problem
from harness.track import ROOT
from retro.emulator import Emulator, mask, versions
from retro.packages import Variable, load_package
from retro.replay import replay_fresh

AIRSTRIKER = Path(stable_retro.data.get_romfile_path("Airstriker-Genesis-v0"))
PACKAGES = ("airstriker", "quarterstep")

Open = Callable[..., Emulator]


@pytest.fixture
def opened() -> Iterator[Open]:
    """Opens emulators that are closed after the test."""
    emulators: list[Emulator] = []

    def open_one(rom: Path, variables: dict[str, Variable] | None = None) -> Emulator:
        emulators.append(Emulator(rom, variables or {}))
        return emulators[-1]

    yield open_one
    for emulator in emulators:
        emulator.close()


@pytest.fixture
def pad(tmp_path: Path) -> Path:
    """A ROM that counts its vertical blanks at $10 and shows the joypad at $12, first button highest."""
    boot = bytes.fromhex("78 D8 A2FF 9A A900 AA 9500 E8 D0FB 2C0220 10FB 2C0220 10FB A980 8D0020")
    jump = bytes([0x4C]) + (0xC000 + len(boot)).to_bytes(2, "little")
    read = bytes.fromhex("E610 D002 E611 A901 8D1640 4A 8D1640 A208 AD1640 4A 2612 CA D0F7 40")
    vectors = struct.pack("<HHH", 0xC000 + len(boot) + 3, 0xC000, 0xC000 + len(boot) + 3)
    program = (boot + jump + read).ljust(0x4000 - 6, b"\0") + vectors
    path = tmp_path / "pad.nes"
    path.write_bytes(b"NES\x1a" + bytes([1, 1, 0, 8]) + bytes(8) + program + bytes(0x2000))
    return path


PAD = {"blanks": Variable(0x10, "<u2"), "pad": Variable(0x12, "|u1")}


def some_inputs(emulator: Emulator, count: int, seed: int) -> list[int]:
    """A frame of nothing, then random holds, START often so that games begin."""
    generator = random.Random(seed)
    buttons = [mask([name], emulator.buttons) for name in ("START", "LEFT", "RIGHT", "UP", "A", "B")]
    inputs = [0]
    while len(inputs) < count:
        inputs += [sum(generator.sample(buttons, generator.randint(0, 2)))] * generator.randint(1, 12)
    return inputs[:count]


def hashes(emulator: Emulator, inputs: list[int]) -> list[str]:
    found = []
    for bits in inputs:
        emulator.step(bits)
        found.append(emulator.ram_hash())
    return found


# ---- what a frame is ---------------------------------------------------------------------------------------


def test_every_step_is_one_frame_and_every_button_one_bit(opened: Open, pad: Path) -> None:
    emulator = opened(pad, PAD)
    assert (emulator.system, emulator.core, emulator.frame) == ("Nes", "fceumm", 0)
    emulator.step(0, 10)
    blanks = emulator.read("blanks")
    # The order in which an NES joypad shifts its buttons out.
    for place, name in enumerate(("A", "B", "SELECT", "START", "UP", "DOWN", "LEFT", "RIGHT")):
        emulator.step(mask([name], emulator.buttons), 2)
        assert emulator.values() == ((blanks + 2 * place + 2) & 0xFFFF, 0x80 >> place)
    assert emulator.frame == 26
    emulator.step(mask(["A", "RIGHT"], emulator.buttons))
    assert emulator.read("pad") == 0x81
    emulator.step(0)
    assert emulator.read("pad") == 0


def test_frame_rates_are_those_of_the_consoles(opened: Open, pad: Path) -> None:
    nes = opened(pad)
    assert nes.frame_rate == pytest.approx(60.0988, abs=1e-4)  # as nesdev.org has it
    nes.close()
    genesis = opened(AIRSTRIKER)
    assert genesis.frame_rate == pytest.approx(59.9227, abs=1e-4)
    assert genesis.frame_rate == pytest.approx(genesis._core.get_screen_rate(), rel=1e-6)


@pytest.mark.parametrize("name", PACKAGES)
def test_power_on_gives_the_run_of_a_fresh_process(name: str, opened: Open) -> None:
    emulator = opened(load_package(name).rom)
    inputs = some_inputs(emulator, 500, seed=1)
    first = hashes(emulator, inputs)
    emulator.power_on()
    assert emulator.frame == 0
    assert hashes(emulator, inputs) == first
    assert len(set(first)) > 100
    assert list(replay_fresh(name, inputs, hash_every=1).ram_hashes) == first


def test_memory_of_a_cartridge_is_empty_at_power_on(opened: Open, pad: Path) -> None:
    emulator = opened(pad, {f"cell_{place}": Variable(0x6000 + 8 * place, "<u8") for place in range(1024)})
    assert set(emulator.values()) == {0}


# ---- savestates --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", PACKAGES)
def test_a_loaded_state_goes_on_as_the_run_did(name: str, opened: Open) -> None:
    emulator = opened(load_package(name).rom)
    inputs = some_inputs(emulator, 700, seed=2)
    hashes(emulator, inputs[:450])
    state = emulator.save()
    after = hashes(emulator, inputs[450:])
    picture = emulator.screen()
    emulator.power_on()
    emulator.load(state)
    assert emulator.frame == 450
    assert hashes(emulator, inputs[450:]) == after
    assert (emulator.screen() == picture).all()


@pytest.mark.parametrize("name", PACKAGES)
def test_a_state_loads_in_another_process(name: str, opened: Open, tmp_path: Path) -> None:
    emulator = opened(load_package(name).rom)
    inputs = some_inputs(emulator, 600, seed=3)
    hashes(emulator, inputs[:400])
    (tmp_path / "state").write_bytes(emulator.save())
    after = hashes(emulator, inputs[400:])
    script = (
        "import sys\nfrom pathlib import Path\nfrom retro.emulator import Emulator\n"
        "emulator = Emulator(Path(sys.argv[1]), {})\n"
        "emulator.step(0, 77)\n"
        "emulator.load(Path(sys.argv[2]).read_bytes())\n"
        "for bits in sys.argv[3:]:\n    emulator.step(int(bits))\n    print(emulator.ram_hash())\n"
    )
    command = [sys.executable, "-c", script, str(emulator.rom), str(tmp_path / "state")]
    done = subprocess.run(
        [*command, *map(str, inputs[400:])], capture_output=True, text=True, cwd=ROOT, check=True
    )
    assert done.stdout.split() == after


@pytest.mark.parametrize("name", PACKAGES)
def test_broken_states_are_refused_and_change_nothing(name: str, opened: Open) -> None:
    emulator = opened(load_package(name).rom)
    hashes(emulator, some_inputs(emulator, 100, seed=4))
    state = emulator.save()
    emulator.step(0, 3)
    before = emulator.ram_hash(), emulator.frame
    generator = random.Random(5)
    broken = [state[:length] for length in (0, 10, 32, 100, len(state) // 2, len(state) - 1)]
    broken += [state + b"\0", bytes(len(state)), b"GENPLUS-GX 1.7.5" + state]
    for place in (*range(32), *(generator.randrange(32, len(state)) for _ in range(40))):
        flipped = bytearray(state)
        flipped[place] ^= 1 << generator.randrange(8)
        broken.append(bytes(flipped))
    for bad in broken:
        with pytest.raises(Problem, match="savestate"):
            emulator.load(bad)
    assert (emulator.ram_hash(), emulator.frame) == before
    emulator.load(state)
    assert emulator.frame == 100


def test_a_state_of_another_game_is_refused(opened: Open, pad: Path) -> None:
    emulator = opened(pad)
    state = emulator.save()
    emulator.close()
    with pytest.raises(Problem, match="another ROM"):
        opened(load_package("quarterstep").rom).load(state)


@pytest.mark.parametrize("name", PACKAGES)
def test_the_state_at_power_on_is_known(name: str, opened: Open) -> None:
    emulator = opened(load_package(name).rom)
    boot, later = emulator.boot, []
    assert emulator.is_power_on(boot)
    for frames in (1, 60):
        emulator.step(0, frames)
        later.append(emulator._core.get_state())
    assert not any(emulator.is_power_on(state) for state in (*later, b"", boot[:-1], boot + b"\0"))
    assert emulator.frame == 0


def test_a_genesis_state_is_kept_without_its_undefined_end(opened: Open) -> None:
    emulator = opened(AIRSTRIKER)
    assert len(emulator.save()) < 150_000 < 1_000_000 < len(emulator.boot)


# ---- looking -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["|u1", "|i1", ">u2", ">i2", ">u4", ">i4", "<u2", "<u4", ">u3"])
def test_variables_are_as_stable_retro_reads_them(kind: str, opened: Open) -> None:
    for rom, base in ((AIRSTRIKER, 0xFF0000), (load_package("quarterstep").rom, 0)):
        variables = {f"at_{place}": Variable(base + place, kind) for place in range(0, 1000, 7)}
        emulator = opened(rom, variables)
        hashes(emulator, some_inputs(emulator, 60, seed=6))
        memory = emulator._data.memory
        seen = [memory.extract(variable.address, kind) for variable in variables.values()]
        assert list(emulator.values()) == seen
        assert emulator.read("at_7") == seen[1]
        emulator.close()


def test_work_ram_pictures_and_sound(opened: Open, pad: Path) -> None:
    nes = opened(pad, PAD)
    nes.step(0, 30)
    ram = nes.work_ram()
    assert ram.shape == (2048,) and ram.dtype == np.uint8
    assert int(ram[0x10]) + 256 * int(ram[0x11]) == nes.read("blanks")
    assert nes.screen().shape == (224, 240, 3) and nes.screen().dtype == np.uint8
    heard = nes.audio()
    assert heard.dtype == np.int16 and heard.shape[1] == 2
    assert heard.shape[0] == pytest.approx(nes.audio_rate / nes.frame_rate, abs=2)
    nes.close()
    genesis = opened(AIRSTRIKER)
    genesis.step(0, 60)
    assert genesis.work_ram().shape == (65536,) and genesis.screen().shape == (224, 320, 3)
    assert genesis.screen().any()


def test_versions_name_stable_retro_and_the_cores() -> None:
    found = versions()
    assert found["stable-retro"] == stable_retro.__version__.strip()
    assert all(re.fullmatch(r"[0-9a-f]{16}", found[core]) for core in ("fceumm", "genesis_plus_gx"))


# ---- faults ------------------------------------------------------------------------------------------------


def test_faults_of_roms_are_named(opened: Open, tmp_path: Path, pad: Path) -> None:
    with pytest.raises(Problem, match=r"none\.nes: cannot be read: No such file"):
        opened(tmp_path / "none.nes")
    for name in ("game.exe", "game", "game.sfc"):
        (tmp_path / name).write_bytes(b"x")
        with pytest.raises(Problem, match=r"no console that runs here.*\.md \(Genesis\), \.nes \(Nes\)"):
            opened(tmp_path / name)
    for content in (b"", random.Random(7).randbytes(50_000)):
        (tmp_path / "bad.nes").write_bytes(content)
        with pytest.raises(Problem, match=r"bad\.nes: fceumm does not run it"):
            opened(tmp_path / "bad.nes")
    opened(pad).step(0)


def test_faults_of_variables_are_named(opened: Open, pad: Path) -> None:
    with pytest.raises(Problem, match="'lives' lies outside memory: 0x5000"):
        opened(pad, {"lives": Variable(0x5000, "|u1")})
    with pytest.raises(Problem, match="'lives' has the unknown type 'byte'"):
        opened(pad, {"lives": Variable(0x50, "byte")})
    emulator = opened(pad, PAD)
    with pytest.raises(Problem, match=r"no variable 'lives'.*blanks, pad"):
        emulator.read("lives")


def test_a_process_holds_one_emulator(opened: Open, pad: Path) -> None:
    emulator = opened(pad, PAD)
    with pytest.raises(Problem, match="another emulator"):
        opened(AIRSTRIKER)
    emulator.step(0)
    emulator.close()
    emulator.close()
    for use in (emulator.values, emulator.save, emulator.ram_hash, lambda: emulator.step(0)):
        with pytest.raises(AttributeError):
            use()
    dropped, values = Emulator(pad, PAD), None
    values = dropped.values
    del dropped
    gc.collect()
    with pytest.raises(AttributeError):
        values()
    opened(AIRSTRIKER).step(0)


@pytest.mark.parametrize("bits", [2, 512, -1])
def test_bits_that_are_no_button_are_refused(bits: int, opened: Open, pad: Path) -> None:
    emulator = opened(pad)
    with pytest.raises(Problem, match="not buttons"):
        emulator.step(bits)
    assert emulator.frame == 0
