"""Frames as time, at the console's own rate."""

from fractions import Fraction


def format_time(frames: int, frame_rate: float | Fraction) -> str:
    """Frames as "m:ss.ff", cut off to hundredths of a second: "1:23.45"."""
    # The rates of consoles are fractions with denominators below a million, so a float of one gives it back.
    hundredths = int(frames * 100 / Fraction(frame_rate).limit_denominator(1_000_000))
    minutes, rest = divmod(hundredths, 6000)
    return f"{minutes}:{rest // 100:02}.{rest % 100:02}"


def format_frames(frames: int, frame_rate: float | Fraction) -> str:
    """Frames with their time: "1,093 frames (0:18.18)"."""
    return f"{frames:,} frame{'' if frames == 1 else 's'} ({format_time(frames, frame_rate)})"
