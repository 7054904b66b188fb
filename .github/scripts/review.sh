#!/usr/bin/env bash
# Reviews the pull request NUMBER at the commit HEAD_SHA, and writes what is found to the file SUMMARY.
set -euo pipefail
git fetch --quiet --no-tags origin "+refs/pull/$NUMBER/head:refs/remotes/pull/head"
.venv/bin/python -m harness.submission --base HEAD --head "$HEAD_SHA" --number "$NUMBER" --summary "$SUMMARY" |
	tee "$GITHUB_STEP_SUMMARY"
