#!/bin/sh
# Formatter, linter, type checker (a warning is an error) and tests. The last line has the numbers of pytest's report.
set -eu
cd "$(dirname "$0")"
sh build.sh --dev
.venv/bin/ruff format --check --quiet
.venv/bin/ruff check --quiet
.venv/bin/mypy --no-error-summary

report=$(mktemp)
trap 'rm -f "$report"' EXIT
code=0
PYTHONDONTWRITEBYTECODE=1 .venv/bin/python -m pytest -rs --junit-xml="$report" -o junit_family=xunit2 || code=$?
.venv/bin/python - "$report" <<'PYTHON'
import sys
from xml.etree import ElementTree

try:
    suite = next(ElementTree.parse(sys.argv[1]).iter("testsuite"))
    tests, failed, skipped = (int(suite.get(key, "0")) for key in ("tests", "failures", "skipped"))
    failed += int(suite.get("errors", "0"))
except ElementTree.ParseError:
    tests, failed, skipped = 1, 1, 0
print(f"python-granian: {tests - failed - skipped} passed, {failed} failed, {skipped} skipped")
PYTHON
exit "$code"
