"""The competition: how a run is timed, recorded and judged. Knows no game and no model, imports no torch."""

from harness.errors import quiet_interrupts

quiet_interrupts()
