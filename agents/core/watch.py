"""FIXED: what is seen of a run while it runs: a bar with score, tokens, dollars and the time that is left."""

import threading
import time
from collections.abc import Sequence
from typing import Any

from tqdm import tqdm

from agents.llm.ledger import Totals
from agents.llm.model import Model
from harness.progress import progress_bar

_SECONDS_BETWEEN = 1.0  # counting calls takes time


class Watch:
    """The bar of a run. Thread-safe."""

    def __init__(self, total: int, rows: Sequence[dict[str, Any]], metric: str, model: Model) -> None:
        """`rows` are those of the episodes played so far; they grow with the run."""
        self._priced = model.priced
        self._rows, self._metric, self._ledger = rows, metric, model.ledger
        self._lock = threading.Lock()
        self._due = 0.0
        self._bar = progress_bar(total, "episode")
        self._bar.initial = self._bar.n = len(rows)
        self.show()

    def show(self) -> None:
        """Show what has changed, at most once a second."""
        with self._lock:
            now = time.monotonic()
            if now >= self._due:
                self._due = now + _SECONDS_BETWEEN
                self._draw()

    def advance(self) -> None:
        """An episode has been played."""
        with self._lock:
            self._bar.update(1)
            self._draw()

    def say(self, text: str) -> None:
        """Print a line above the bar."""
        tqdm.write(text)

    def close(self) -> None:
        with self._lock:
            self._draw()
            self._bar.close()

    def _draw(self) -> None:
        scores = [row["score"] for row in self._rows if row["part"] == "learn"]
        totals = self._ledger.totals()
        parts = [f"{self._metric} {sum(scores) / len(scores):.2f}"] if scores else []
        parts.append(f"{short(totals.tokens)} tokens{'+' if totals.unmetered else ''}")
        parts.append(f"cost {dollars_text(known_dollars(totals, priced=self._priced), totals.unpriced)}")
        self._bar.set_postfix_str(", ".join(parts), refresh=True)


def short(count: float) -> str:
    """A count for people: 950, 12.3k, 4.56M."""
    for size, sign in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if count >= size:
            return f"{count / size:.3g}{sign}"
    return f"{count:.0f}"


def known_dollars(totals: Totals, *, priced: bool) -> float | None:
    """What calls cost as far as that is known; None = of none is. `priced`: the model's price is known."""
    return totals.dollars if totals.unpriced < totals.calls or (priced and not totals.calls) else None


def dollars_text(dollars: float | None, unpriced: int) -> str:
    """An amount as `known_dollars`, and what there is besides."""
    if dollars is None:
        return "unknown"
    return f"${dollars:.4f}" + (f" and {unpriced} calls of unknown cost" if unpriced else "")
