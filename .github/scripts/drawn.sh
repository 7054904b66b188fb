#!/usr/bin/env bash
# After `make boards`: nothing is left to make, and nothing but what all records share was made.
set -euo pipefail
.venv/bin/python -m harness.boards --check
git diff --exit-code --stat -- . ':!README.md' ':!docs/figures/*_history.svg'
