#!/bin/sh
# run-tests.sh NAME PYTHON SERVER: the tests in this folder on an interpreter, with the gateway on a server. The last line has the numbers of
# pytest's report.
set -eu
name=$1 python=$2 server=$3
cd "$(dirname "$0")"

report=$(mktemp)
trap 'rm -f "$report"' EXIT
code=0
TEST_SERVER=$server PYTHONDONTWRITEBYTECODE=1 "$python" -m pytest -rs --junit-xml="$report" -o junit_family=xunit2 || code=$?
"$python" - "$name" "$report" <<'PYTHON'
import sys
from xml.etree import ElementTree

name, report = sys.argv[1:]
try:
    suite = next(ElementTree.parse(report).iter("testsuite"))
    tests, failed, skipped = (int(suite.get(key, "0")) for key in ("tests", "failures", "skipped"))
    failed += int(suite.get("errors", "0"))
except ElementTree.ParseError:
    tests, failed, skipped = 1, 1, 0
print(f"{name}: {tests - failed - skipped} passed, {failed} failed, {skipped} skipped")
PYTHON
exit "$code"
