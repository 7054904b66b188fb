"""FIXED: the prompts are the Markdown files of this folder, rendered with jinja2 and known by hash."""

from functools import cache
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from harness.files import sha256_file

FOLDER = Path(__file__).parent


def render(name: str, /, **values: object) -> str:
    """The prompt `<name>.md` with its values, which the comment on top of the file lists.

    Raises:
        jinja2.TemplateNotFound, jinja2.UndefinedError: no such prompt, a value is missing.
    """
    return _environment().get_template(f"{name}.md").render(**values).strip()


def say(name: str, /, **values: object) -> str:
    """The phrase of that name in `phrases.md`, with its values; "" where it has nothing to say of them.

    Raises:
        AttributeError, TypeError, jinja2.UndefinedError: no such phrase, no such value, a value is missing.
    """
    phrase = getattr(_environment().get_template("phrases.md").module, name)
    return str(phrase(**values)).strip()


def prompt_hashes() -> dict[str, str]:
    """SHA-256 of every prompt file, by its name without `.md`."""
    return {path.stem: sha256_file(path) for path in sorted(FOLDER.glob("*.md"))}


@cache
def _environment() -> Environment:
    return Environment(  # text for models, so nothing is escaped
        loader=FileSystemLoader(FOLDER), undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
