"""FIXED: A small model of this machine behind OpenAI's protocol, for machines without a GPU.

python -m agents.llm.chat_server --model smollm2 --port 5014
"""

import argparse
from pathlib import Path

from starlette.applications import Starlette
from starlette.responses import JSONResponse, Response

from agents.llm.chat_app import ChatRequest, Refused, chat_app, completion, listen, serve
from agents.llm.local_model import LocalModel, TooLong, find_model
from harness.errors import run_command


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m agents.llm.chat_server",
        description=(__doc__ or "").removeprefix("FIXED: "),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "--model", default="smollm2", help="smollm2, a .gguf file, or a folder of transformers"
    )
    parser.add_argument("--name", help="how requests name it (default: the last part of --model)")
    parser.add_argument("--host", default="127.0.0.1", help="there is no log-in: keep it to this machine")
    parser.add_argument("--port", type=int, default=5014, help="0: any that is free")
    options = parser.parse_args()
    folder, gguf = find_model(options.model)
    listening = listen(options.host, options.port)
    name = options.name or Path(options.model).stem
    print(f"Loading {options.model} ...", flush=True)
    app = local_app(name, LocalModel(folder, gguf))
    host, port = listening.getsockname()[:2]
    print(f"{name} at http://{host}:{port}/v1; Ctrl-C ends it.", flush=True)
    serve(app, listening)


def local_app(name: str, model: LocalModel) -> Starlette:
    """The application that answers with a model of this machine."""

    def answer(request: ChatRequest) -> Response:
        try:
            said = model.complete(
                request.messages, request.max_tokens, request.temperature, request.top_p, request.seed
            )
        except TooLong as error:
            raise Refused(400, str(error), "context_length_exceeded") from None
        return JSONResponse(
            completion(
                request,
                said.text,
                finish=said.finish,
                prompt_tokens=said.prompt,
                completion_tokens=said.completion,
                cached_tokens=said.cached,
            )
        )

    return chat_app([name], answer)


if __name__ == "__main__":
    run_command(main)
