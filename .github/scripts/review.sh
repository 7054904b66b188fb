#!/usr/bin/env bash
# Reviews the pull request NUMBER at the commit HEAD_SHA, and writes what is found to the file SUMMARY.
set -euo pipefail
git fetch --quiet --no-tags origin "+refs/pull/$NUMBER/head:refs/remotes/pull/head"
status=0
.venv/bin/python -m harness.submission \
	--base HEAD --head "$HEAD_SHA" --number "$NUMBER" --summary "$SUMMARY" || status=$?
if [ -f "$SUMMARY" ]; then
	.venv/bin/python -m harness.submission.summary "$SUMMARY" >"$GITHUB_STEP_SUMMARY"
fi
exit "$status"
