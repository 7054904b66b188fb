"""FIXED: variables in the memory of a console, read by a function that is compiled for them."""

import re
from collections import namedtuple
from collections.abc import Callable, Mapping
from typing import Any

from harness.errors import Problem
from retro.packages import Ram, Variable

_TYPE = re.compile(r"([|<>=])([uidn])([1-8])")


def compile_reader(
    memory: Any, variables: Mapping[str, Variable], regions: Mapping[int, int], flip: int
) -> tuple[Callable[[], Ram], Callable[[], None]]:
    """(values, close): all variables as a named tuple; and what ends that, after which `values` raises.

    memory: stable-retro's, whose `blocks` copies every block of memory, address of its first byte -> bytes.
    regions: address of a block -> its length in bytes. flip: the byte at an address lies in its block at
    that offset xor `flip`, 1 where the core keeps 16-bit words in the order of the host.

    Raises:
        Problem: a type is unknown or a variable lies outside the blocks; it names the variable.
    """
    try:
        ram_type = namedtuple("Values", tuple(variables))  # type: ignore[misc]
    except ValueError as error:
        raise Problem(f"a variable cannot be named so: {error}", remedy="use names as in Python") from error
    used: dict[int, str] = {}
    terms = [_term(name, variables[name], regions, flip, used) for name in variables]
    # Written out as one expression, ten variables take a third of the time of ten calls.
    source = "\n".join(
        (
            "def bind(memory):",
            "    def values():",
            "        blocks = memory.blocks",
            *(f"        {block} = blocks[{start}]" for start, block in used.items()),
            f"        return new(ram_type, ({''.join(f'{term}, ' for term in terms)}))",
            "    def close():",
            "        nonlocal memory",
            "        memory = None",
            "    return values, close",
        )
    )
    scope: dict[str, Any] = {"new": tuple.__new__, "ram_type": ram_type}
    exec(source, scope)
    values, close = scope["bind"](memory)
    return values, close


def _term(name: str, variable: Variable, regions: Mapping[int, int], flip: int, used: dict[int, str]) -> str:
    """The expression for one variable; adds the blocks that it reads to `used`."""
    match = _TYPE.fullmatch(variable.type)
    if match is None:
        raise Problem(
            f"variable {name!r} has the unknown type {variable.type!r}",
            remedy='give byte order, kind and size in bytes: "|u1", ">u2", "<i2"; d is packed decimal',
        )
    order, kind, size = match[1], match[2], int(match[3])
    cells = []
    for address in range(variable.address, variable.address + size):
        start = next((s for s, length in regions.items() if s <= address < s + length), None)
        if start is None:
            known = ", ".join(f"{s:#x} to {s + length - 1:#x}" for s, length in _joined(regions).items())
            raise Problem(
                f"variable {name!r} lies outside memory: {address:#x} ({address})",
                remedy=f"give an address in {known}",
            )
        block = used.setdefault(start, f"block_{len(used)}")
        cells.append(f"{block}[{(address - start) ^ flip}]")
    if order == ">":
        cells.reverse()  # from here on the least significant byte comes first
    if kind == "d":
        pairs = (f"(({cell} >> 4) * 10 + ({cell} & 15)) * {100**place}" for place, cell in enumerate(cells))
        return " + ".join(pairs)
    if kind == "n":
        return " + ".join(f"({cell} & 15) * {10**place}" for place, cell in enumerate(cells))
    number = " | ".join(f"{cell} << {8 * place}" if place else cell for place, cell in enumerate(cells))
    sign = 1 << (8 * size - 1)
    return number if kind == "u" else f"(({number}) ^ {sign}) - {sign}"


def _joined(regions: Mapping[int, int]) -> dict[int, int]:
    """Regions with neighbours made one, for people."""
    joined: dict[int, int] = {}
    for start, length in sorted(regions.items()):
        last = next(reversed(joined), None)
        if last is not None and last + joined[last] == start:
            joined[last] += length
        else:
            joined[start] = length
    return joined
