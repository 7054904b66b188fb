#!/usr/bin/env bash
# Makes a record folder of a run folder; ./assemble_record.sh --help says how.
#   RUN=outputs/<run> DEST=<name> ./assemble_record.sh
#   RUN=outputs/<run> VERIFY_OF=records/<track>/<record> ./assemble_record.sh
set -euo pipefail
cd "$(dirname "$0")"
python=.venv/bin/python
[ -x "$python" ] || python=python
exec "$python" -m harness.assemble "$@"
