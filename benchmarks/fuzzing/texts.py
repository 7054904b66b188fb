"""Hostile numbers, texts and structures, as they stand in JSON, and texts that look like another."""

import json
import unicodedata
from random import Random

DEEP = 100_000
"""Levels of nesting, more than any parser that recurses can take."""

# Cyrillic letters, wide digits and other strokes.
_LOOK_ALIKES = str.maketrans(
    "aceopxyiS0123456789-_/.|",
    "\u0430\u0441\u0435\u043e\u0440\u0445\u0443\u0456\u0405"
    "\uff10\uff11\uff12\uff13\uff14\uff15\uff16\uff17\uff18\uff19"
    "\u2010\uff3f\u2215\u2024\u01c0",
)
_OTHER_DIGITS = str.maketrans("0123456789", "٠١٢٣٤٥٦٧٨٩")
_UNSEEN = ("\u200b", "\u200d", "\u200e", "\u200f", "\u202e", "\u2066", "\ufeff", "\u00ad", "\u0301", "\u2028")
_CONTROLS = ("\x00", "\x07", "\x1b[2J", "\x7f", "\x85", "\r", "\n", "\t", "\r\n", "\x0c")

_PATHS = ("..", "../record.json", "../../../../etc/passwd", "/dev/zero", "/etc/passwd", "C:\\NUL",
          "a/../b", "verification/../README.md", "~", "%2e%2e%2f", "file:///etc/passwd", "")  # fmt: skip
_WORDS = ("", " ", "null", "NaN", "true", "-0", "0x10", "\uff11\uff12", "Ⅷ", "²", "<script>alert(1)</script>",
          "| a | b |", "<<<<<<< HEAD", "{{7*7}}", "${HOME}", "'; drop table records", "%s%n", "\ufffd",
          "\U0001f600" * 20)  # fmt: skip
_NUMBERS = ("0", "-0", "-0.0", "1", "-1", "1.0", "1e0", "1E+2", "0.1", "1e-400", "5e-324", "1e308", "1e400",
            "-1e400", "2147483647", "2147483648", "9007199254740993", "-9223372036854775809",
            "9" * 400, "-" + "9" * 400, "1" + "0" * 309, "9" * 4300, "9" * 4301, "0." + "1" * 400,
            "1e99999999999999999999", "NaN", "Infinity", "-Infinity", "0x1", "01", "+1", ".5", "1.", "\uff11",
            "1_000")  # fmt: skip
_OTHERS = ("null", "true", "false", "[]", "{}", "[[]]", '{"":""}', '"\\ud800"', '"\\udc00x"', '"\\u0000"',
           "'a'", "undefined", "", "//", '{"a":1,"a":2}', "[null]", "[1,2,3]")  # fmt: skip


def hostile_value(random: Random) -> str:
    """The JSON, or what only looks like it, of a value that some parser somewhere has choked on."""
    kind = random.randrange(12)
    if kind < 4:
        return random.choice(_NUMBERS)
    if kind < 6:
        return random.choice(_OTHERS)
    if kind < 9:
        return json.dumps(random.choice(_PATHS + _WORDS), ensure_ascii=bool(random.randrange(2)))
    if kind < 10:
        return json.dumps("x" * random.choice((61, 201, 4097, 70_000)))
    depth = random.choice((40, 150, 900, 990, 3_000, DEEP))
    opening, closing = random.choice((("[", "]"), ('{"a":', "}")))
    return opening * depth + "0" + closing * depth


def other_number(number: str, random: Random) -> str:
    """Another spelling of a number in JSON, or a number near it, or far off."""
    try:
        value = float(number) if set(".eE") & set(number) else int(number)
        if not abs(value) < 1e300:
            return "0"
    except ValueError:
        return "0"
    near = [
        *(value + 1, value - 1, -value, value * 2, value / 2, value * (1 + 1e-12), value + 1e-4, value + 0.3),
        *(value * 10, value * 0.99, 2**31 - 1, float(value)),
    ]
    made = json.dumps(random.choice(near))
    spelt = (f"{number}0" if "." in number else f"{number}.0", f"-{number}", f'"{number}"', f"{number}e0",
             f"{number}e-1", f"0{number}", f" {number}\t",
             f"{number}0", number.translate(_OTHER_DIGITS))  # fmt: skip
    return random.choice((made, made, random.choice(spelt)))


def other_text(text: str, random: Random) -> str:
    """A text that is nearly the same: to the eye, to a lenient comparison, or but for one character."""
    place = random.randint(0, len(text))
    before, after = text[:place], text[place:]
    kind = random.randrange(15)
    if kind < 3:
        return before + random.choice(_UNSEEN + _CONTROLS) + after
    if kind < 5 and text:
        return text[: place - 1] + text[place - 1 :].translate(_LOOK_ALIKES)
    made = (
        *(text.upper(), text.casefold(), text.swapcase(), text.translate(_OTHER_DIGITS), text.title()),
        *(
            unicodedata.normalize("NFD", text),
            unicodedata.normalize("NFKC", text),
            f"{text} ",
            f"\ufeff{text}",
        ),
        *(
            text + text,
            text[::-1],
            before,
            after,
            before + after[1:],
            before + chr(random.randrange(32, 0xD800)),
        ),
    )
    return random.choice(made)
