#!/usr/bin/env bash
# Comments the file SUMMARY on the pull request that it names, if HEAD_SHA is the head of that one.
set -euo pipefail
number=$(python3 -m harness.submission.summary --number "$SUMMARY")
head=$(gh api "repos/$REPOSITORY/pulls/$number" --jq .head.sha)
if [ "$head" != "$HEAD_SHA" ]; then
	echo "Pull request $number has another head than the one that was reviewed: no comment."
	exit 0
fi
# A pull request can change the workflow that reviews it, so one whose .github/ is not the one here is not
# believed. The folders are compared whole: lists of changed files end somewhere, and follow one shared commit.
warning=
there=$(gh api "repos/$REPOSITORY/git/trees/$HEAD_SHA" --jq '.tree[] | select(.path == ".github") | .sha')
if [ "$there" != "$(git rev-parse HEAD:.github)" ]; then
	warning='This pull request has another .github/ than the main branch, so it may have written this summary '
	warning+='itself: do not trust it.'
fi
python3 -m harness.submission.summary --warning "$warning" "$SUMMARY" |
	gh pr comment "$number" --repo "$REPOSITORY" --body-file - --edit-last --create-if-none
