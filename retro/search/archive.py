"""FIXED: the cells of a segment that were reached, each with the fastest savestate that reached it.

Nodes form a tree: a node knows its parent and the inputs from there, so a path costs no more than its last
leg. A node whose cell was reached faster by another, or was dropped, stays only while others descend from it.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from retro.packages import Cell

PLACE = 3  # numbers of a cell that tell its place: the state, and the first two of the package
HALF_LIFE = 40  # frames by which a cell is late that halve its weight

Runs = tuple[tuple[int, int], ...]
"""Inputs as (button mask, frames) pairs."""


@dataclass(slots=True)
class Node:
    """A place in the tree of inputs; with a cell while it is the fastest way into it."""

    index: int
    parent: int
    """-1 for the start."""
    runs: Runs
    """The inputs from the parent."""
    frames: int
    """Frames since the segment's start."""
    cell: Cell | None
    state: bytes
    """The savestate, packed; empty once the cell is lost."""
    reward: float
    novelty: int
    """How many RAM values were seen here for the first time in the segment."""
    visits: int = 0
    expanded: bool = False
    """Whether the frontier search has tried every action from here."""
    children: dict[int, None] = field(default_factory=dict)
    """Indices of those whose parent it is, in order."""


@dataclass(frozen=True, slots=True)
class Found:
    """A cell that a worker reached, as it comes back from it."""

    start: int
    """Index of the node that the inputs begin from."""
    runs: Runs
    frames: int
    cell: Cell
    state: bytes
    reward: float
    novelty: int


class Archive:
    """At most `limit` cells; the least promising go first when there are more."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.nodes: dict[int, Node] = {}
        self.cells: dict[Cell, Node] = {}
        self.next_index = 0
        self.dropped = 0
        self.beaten: dict[int, list[int]] = {}
        """Node -> those that were the way into its cell before, whose children are to be tried from it."""
        self.near: Mapping[Cell, float] = {}
        """Cell -> how many times its merit counts; not saved, and empty unless whoever searches sets it."""

    def begin(self, cell: Cell, state: bytes, reward: float) -> None:
        """Put in the start of the segment, which is never dropped."""
        self._add(Node(0, -1, (), 0, cell, state, reward, 0))

    def offer(self, found: Found) -> bool:
        """Take a cell in if it is new, or reached faster than before."""
        before = self.cells.get(found.cell)
        if before is not None and before.frames <= found.frames:
            return False
        if found.start not in self.nodes:  # dropped since the piece of work was dealt out
            return False
        node = Node(
            *(self.next_index, found.start, found.runs, found.frames, found.cell),
            *(found.state, found.reward, found.novelty),
        )
        if before is not None:
            node.visits = before.visits // 2  # a faster way in deserves another look
            del self.cells[found.cell]  # so that cells stand in the order of nodes, also after `restore`
        self._add(node)
        if before is not None:
            beaten = [*self.beaten.pop(before.index, ()), before.index]
            self._release(before)
            if kept := [index for index in beaten if index in self.nodes]:
                self.beaten[node.index] = kept
        return True

    def keep_exit(self, start: int, runs: Runs, frames: int) -> None:
        """Keep a way out of the segment, to be tried from a faster way into the cell that it began in."""
        if start in self.nodes and self.nodes[start].parent >= 0:  # there is none into the segment's start
            index, self.next_index = self.next_index, self.next_index + 1
            self.nodes[index] = Node(index, start, runs, frames, None, b"", 0.0, 0)
            self.nodes[start].children[index] = None

    def legs(self, limit: int, transit: int, budget: int) -> dict[int, list[Runs]]:
        """Of nodes that were reached faster than before, what led on from the slower: about `budget` frames.

        They stay in `beaten` until they were tried; those from which nothing can be in time are forgotten.
        """
        legs: dict[int, list[Runs]] = {}
        for index in sorted(self.beaten, key=lambda index: self.nodes[index].frames):
            node, runs = self.nodes[index], []
            olds = self.beaten[index] if node.cell is not None else []
            tails = [child for old in olds if old in self.nodes for child in self.nodes[old].children]
            for leg in map(self.nodes.__getitem__, tails):
                length = sum(frames for _, frames in leg.runs)
                is_exit = leg.cell is None and not leg.children
                late = limit if is_exit else limit - transit  # the inputs of an exit go through its transit
                if (is_exit or leg.cell is not None) and node.frames + length < min(leg.frames, late):
                    runs.append(leg.runs)
                    budget -= length
            if runs:
                legs[index] = runs
            else:
                del self.beaten[index]
            if budget <= 0:
                break
        return legs

    def shrink(self, bound: int | None = None) -> list[Cell]:
        """Drop cells down to the limit, those of least weight first; returns the dropped."""
        excess = len(self.cells) - self.limit
        if excess <= 0:
            return []
        weights = self.weights(bound)
        order = sorted(
            (node for node in self.cells.values() if node.parent >= 0), key=lambda n: weights[n.index]
        )
        gone = [node.cell for node in order[:excess] if node.cell is not None]
        for node in order[:excess]:
            self._drop(node)
        self.dropped += len(gone)
        return gone

    def weights(self, bound: int | None = None) -> dict[int, float]:
        """Node -> how promising its cell is: rarely visited, well rewarded, or with new RAM values.

        Without a `bound` the cells of one place share what one of them would weigh, so that a place that was
        just reached is not lost among many ways of being in another. With a `bound` there is a crossing to
        beat: a cell that took so many frames weighs nothing, and the others less, the later they are than
        the first cell of as much reward.
        """
        nodes = list(self.cells.values())
        rewards = [node.reward for node in nodes]
        low, high = min(rewards), max(rewards)
        scale = 1 / (high - low) if high > low else 0.0
        late = self._lateness(nodes) if bound is not None else {}
        crowds = Counter(cell[:PLACE] for cell in self.cells)
        weights = {}
        for cell, node in self.cells.items():
            merit = 1.0 + min(node.novelty, 4) + 40.0 * ((node.reward - low) * scale) ** 6
            if self.near:
                merit *= self.near.get(cell, 1.0)
            if bound is None:
                merit /= crowds[cell[:PLACE]]
            else:
                merit *= 0.02 + 0.5 ** (late[node.index] / HALF_LIFE) if node.frames < bound else 0.0
            weights[node.index] = merit / (1 + node.visits)
        return weights

    def _lateness(self, nodes: list[Node]) -> dict[int, int]:
        """Node -> frames by which it is later than the first cell of at least its reward."""
        late, first = {}, nodes[0].frames
        for number, node in enumerate(sorted(nodes, key=lambda node: (-node.reward, node.frames))):
            first = min(first, node.frames) if number else node.frames
            late[node.index] = node.frames - first
        return late

    def path(self, index: int) -> list[tuple[int, int]]:
        """The inputs from the segment's start to a node."""
        legs = []
        while index >= 0:
            node = self.nodes[index]
            legs.append(node.runs)
            index = node.parent
        return [run for leg in reversed(legs) for run in leg]

    def unexpanded(self) -> Iterator[Node]:
        """Cells from which the frontier search has not tried every action."""
        return (node for node in self.cells.values() if not node.expanded)

    def restore(
        self, nodes: Sequence[Node], next_index: int, dropped: int, beaten: dict[int, list[int]]
    ) -> None:
        """Become what `nodes` was saved from."""
        self.nodes = {node.index: node for node in nodes}
        self.cells = {node.cell: node for node in nodes if node.cell is not None}
        for node in nodes:
            if node.parent >= 0:
                self.nodes[node.parent].children[node.index] = None
        self.next_index, self.dropped, self.beaten = next_index, dropped, beaten

    def known(self) -> dict[Cell, int]:
        """Cell -> frames of the fastest way into it."""
        return {cell: node.frames for cell, node in self.cells.items()}

    @property
    def state_bytes(self) -> int:
        """Bytes that the packed savestates take."""
        return sum(len(node.state) for node in self.cells.values())

    def _add(self, node: Node) -> None:
        assert node.cell is not None
        self.nodes[node.index] = self.cells[node.cell] = node
        self.next_index = node.index + 1
        if node.parent >= 0:
            self.nodes[node.parent].children[node.index] = None

    def _drop(self, node: Node) -> None:
        assert node.cell is not None
        del self.cells[node.cell]
        self._release(node)

    def _release(self, node: Node) -> None:
        """Let a node go that has lost its cell, and all above it that stood only for its path."""
        node.cell, node.state = None, b""
        while node.parent >= 0 and node.cell is None and not node.children:
            del self.nodes[node.index]
            self.beaten.pop(node.index, None)
            child, node = node.index, self.nodes[node.parent]
            del node.children[child]
