"""FIXED: A server without a model: it answers every method's prompts from a script, over OpenAI's protocol.

    python -m agents.scripted.server --port 5013                   a competent but forgetful programmer
    python -m agents.scripted.server --port 5013 --script chaos    everything that can go wrong

Its model is called `scripted`. What it answers depends on the request alone, seed included. Tokens are
counted as a quarter of the characters.
"""

import argparse
from collections.abc import Sequence
from typing import Literal

from starlette.applications import Starlette
from starlette.responses import JSONResponse, Response

from agents.llm.chat_app import ChatRequest, chat_app, completion, listen, serve
from agents.llm.messages import Message
from agents.scripted import demo
from agents.scripted.asked import read_asked
from agents.scripted.chaos import Chaos
from agents.scripted.saying import Saying
from harness.errors import run_command

MODEL = "scripted"
Script = Literal["demo", "chaos"]


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m agents.scripted.server",
        description=(__doc__ or "").removeprefix("FIXED: "),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "--script", choices=["demo", "chaos"], default="demo", help="which of the two (default: demo)"
    )
    parser.add_argument("--host", default="127.0.0.1", help="there is no log-in: keep it to this machine")
    parser.add_argument("--port", type=int, default=5013, help="0: any that is free")
    options = parser.parse_args()
    listening = listen(options.host, options.port)
    host, port = listening.getsockname()[:2]
    print(f"The script {options.script} at http://{host}:{port}/v1; Ctrl-C ends it.", flush=True)
    serve(scripted_app(options.script), listening)


def scripted_app(script: Script) -> Starlette:
    """The application that answers from a script."""
    chaos = Chaos() if script == "chaos" else None

    def answer(request: ChatRequest) -> Response:
        asked = read_asked(request)
        if chaos is None:
            return JSONResponse(_body(request, Saying(demo.answer(asked))))
        return chaos.failure(asked) or JSONResponse(_body(request, chaos.answer(asked)))

    return chat_app([MODEL], answer)


def tokens_of(text: str) -> int:
    """Tokens of a text, as this server counts them."""
    return (len(text) + 3) // 4


def _body(request: ChatRequest, saying: Saying) -> dict[str, object]:
    """The body of an answer, cut at the tokens that the request allows."""
    text, finish = saying.text, saying.finish
    if text is not None and request.max_tokens is not None and tokens_of(text) > request.max_tokens:
        text, finish = text[: 4 * request.max_tokens], "length"
    body = completion(
        request,
        text,
        finish=finish,
        prompt_tokens=_prompt_tokens(request.messages),
        completion_tokens=tokens_of(text or ""),
        message=saying.message,
    )
    if not saying.metered:
        body["usage"] = None
    return body


def _prompt_tokens(messages: Sequence[Message]) -> int:
    return sum(tokens_of(message.content) + 4 for message in messages)


if __name__ == "__main__":
    run_command(main)
