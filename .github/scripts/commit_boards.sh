#!/usr/bin/env bash
# Commits the boards and histories that lie here and pushes them to BRANCH, if they differ and it has not moved on.
set -euo pipefail
git add README.md 'docs/figures/*_history.svg'
if git diff --cached --quiet; then
	echo "The boards are as they should be."
	exit 0
fi
git config user.name 'github-actions[bot]'
git config user.email '41898282+github-actions[bot]@users.noreply.github.com'
git commit --quiet --message 'Boards and histories of the records as they are'
gh auth setup-git
git fetch --quiet origin "$BRANCH"
if [ "$(git rev-parse HEAD~)" != "$(git rev-parse FETCH_HEAD)" ]; then
	echo "$BRANCH has moved on: the run for its newest commit makes the boards."
	exit 0
fi
git push --quiet origin "HEAD:$BRANCH"
