#!/usr/bin/env bash
# Serves a model with vLLM at an OpenAI-compatible address, http://HOST:PORT/v1.
#   agents/scripts/run_server.sh
#   MODEL=Qwen/Qwen3-8B PORT=5020 agents/scripts/run_server.sh --tensor-parallel-size 2
# Further arguments go to `vllm serve`.
set -euo pipefail
MODEL=${MODEL:-Qwen/Qwen3.5-35B-A3B}
HOST=${HOST:-127.0.0.1}
PORT=${PORT:-5012}
CONTEXT=${CONTEXT:-32768}  # tokens of prompt and answer

fail() {
    echo "run_server.sh: $1" >&2
    exit 2
}

case $PORT in
    '' | *[!0-9]*) fail "PORT is '$PORT', expected a number" ;;
esac
case $CONTEXT in
    '' | *[!0-9]*) fail "CONTEXT is '$CONTEXT', expected a number of tokens" ;;
esac
command -v vllm >/dev/null ||
    fail "vllm is not installed. Remedy: python -m venv .venv-vllm && .venv-vllm/bin/pip install vllm, then PATH=.venv-vllm/bin:\$PATH $0"
command -v nvidia-smi >/dev/null && nvidia-smi -L >/dev/null 2>&1 ||
    echo "run_server.sh: no NVIDIA GPU is seen; vLLM may not start. agents.llm.chat_server serves small models on a CPU." >&2
if (exec 3<>"/dev/tcp/$HOST/$PORT") 2>/dev/null; then
    fail "something listens on $HOST:$PORT already. Remedy: set PORT"
fi

arguments=(--host "$HOST" --port "$PORT" --max-model-len "$CONTEXT" --enable-prefix-caching)
case $MODEL in
    *Qwen3*) arguments+=(--reasoning-parser qwen3) ;;  # thinking comes apart from the answer
esac
echo "Serving $MODEL at http://$HOST:$PORT/v1; Ctrl-C ends it."
exec vllm serve "$MODEL" "${arguments[@]}" "$@"
