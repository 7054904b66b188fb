#!/usr/bin/env bash
# Comments the file SUMMARY on the pull request that it names, if HEAD_SHA is the head of that one.
set -euo pipefail
number=$(python3 -m harness.submission.summary --number "$SUMMARY")
head=$(gh api "repos/$REPOSITORY/pulls/$number" --jq .head.sha)
if [ "$head" != "$HEAD_SHA" ]; then
	echo "Pull request $number has another head than the one that was reviewed: no comment."
	exit 0
fi
# A pull request can change the workflow that reviews it, so one that touches this folder is not believed.
warning=
files=$(gh api --paginate "repos/$REPOSITORY/pulls/$number/files" --jq '.[] | .filename, .previous_filename // ""')
if grep -q '^\.github/' <<<"$files"; then
	warning='This pull request changes .github/, so it may have written this summary itself: do not trust it.'
fi
python3 -m harness.submission.summary --warning "$warning" "$SUMMARY" |
	gh pr comment "$number" --repo "$REPOSITORY" --body-file - --edit-last --create-if-none
