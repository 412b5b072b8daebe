"""scripts/check-claims against small trees of its own: what is right passes, and each fault is found and named.

python3 -m unittest discover -s tests/claims
"""

import json
import pathlib
import subprocess
import sys
import tarfile
import tempfile
import unittest

SCRIPT = pathlib.Path(__file__).resolve().parents[2] / "scripts/check-claims"

PAGE = """# Plimsoll

## Cost

The gateway costs 84 µs
per session-second at 1,000 sessions.

| target | cost |
|---|---|
| rust-axum | 456 µs |

<!-- claims findings/limit
let t = trial(F, 1)
costs {us(t.target_resources.cpu_us_per_session_second)} per session-second at {n(t.sessions)} sessions
| {trial(F, 2).target.name} | {us(trial(F, 2).target_resources.cpu_us_per_session_second)} |
-->
"""


def trial(verdict="pass", cost=83.6, name="rust-epoll"):
    return {"verdict": verdict, "sessions": 1000, "target": {"name": name}, "target_resources": {"cpu_us_per_session_second": cost}}


class CheckClaims(unittest.TestCase):
    def setUp(self):
        place = tempfile.TemporaryDirectory()
        self.addCleanup(place.cleanup)
        self.root = pathlib.Path(place.name)
        self.folder = self.root / "docs/results/findings/limit"
        self.folder.mkdir(parents=True)
        self.record(1, trial())
        self.record(2, trial(cost=456.2, name="rust-axum"))

    def record(self, number, data):
        (self.folder / f"trial-{number:03}.json").write_text(json.dumps(data))

    def check(self, page=PAGE, *flags):
        (self.root / "README.md").write_text(page)
        return subprocess.run([sys.executable, SCRIPT, "--root", self.root, *flags], capture_output=True, text=True, check=False)

    def passes(self, page=PAGE):
        ended = self.check(page)
        self.assertEqual((ended.returncode, ended.stderr), (0, ""))
        return ended.stdout

    def fails(self, page, *words):
        ended = self.check(page)
        self.assertEqual(ended.returncode, 1, ended.stdout + ended.stderr)
        self.assertNotIn("Traceback", ended.stderr)
        for word in words:
            self.assertIn(word, ended.stderr)

    def test_what_the_records_say_passes(self):
        self.assertIn("2 claims on 1 pages, 0 problems", self.passes())

    def test_packed_records_are_read(self):
        with tarfile.open(self.folder / "records.tar.gz", "w:gz") as archive:
            for path in sorted(self.folder.glob("*.json")):
                archive.add(path, path.name)
                path.unlink()
        self.passes()

    def test_a_wrong_figure_is_named_with_its_line_and_the_record_s(self):
        self.fails(PAGE.replace("84 µs", "85 µs"), "README.md:14: the records say `costs 84 µs per", "says `costs 85 µs per")

    def test_a_wrong_cell_is_named_and_no_other_row_is_meant(self):
        self.fails(PAGE.replace("456 µs", "465 µs"), "| rust-axum | 456 µs |", "says `| rust-axum | 465 µs |`")

    def test_a_record_that_changes_is_noticed(self):
        self.record(1, trial(cost=90.2))
        self.fails(PAGE, "90 µs")

    def test_a_record_that_is_not_there_is_named(self):
        self.fails(PAGE.replace("claims findings/limit", "claims findings/gone"), "there is no record docs/results/findings/gone")
        (self.folder / "trial-002.json").unlink()
        self.fails(PAGE, "docs/results/findings/limit has no trial-002.json")

    def test_a_field_that_is_not_there_is_named(self):
        self.fails(PAGE.replace("F, 1", "F, 1).cost, (F"), "cost")

    def test_a_figure_in_no_claim_is_named(self):
        for figure in ["2.5", "90 %", "1,500", "300 ms", "16 KiB", "4 s"]:
            self.fails(PAGE.replace("The gateway", f"It takes {figure}. The gateway"), "is in no claim", figure)
        self.fails(PAGE.replace("| rust-axum | 456 µs |", "| rust-axum | 456 µs |\n| other | 7 |"), "`7` is in no claim")

    def test_what_is_no_measurement_needs_no_claim(self):
        self.passes(PAGE.replace("The gateway", "On 22 November 2026, Linux 6.18, `--vcpu 0.25`, [5.3 ms](#cost), 2 cores and 3 trials. The gateway"))

    def test_a_figure_is_given_with_a_reason_or_not_at_all(self):
        page = PAGE.replace("The gateway", "Every 20 ms. The gateway")
        self.passes(page.replace("let t", "given 20 ms: the contract's pace\nlet t"))
        self.fails(page.replace("let t", "given 20 ms\nlet t"), "needs a reason")
        self.fails(page.replace("let t", "given 30 ms: another pace\nlet t"), "the text above does not have it")

    def test_an_invalid_trial_must_be_called_so_in_its_sentence(self):
        self.record(1, trial("invalid"))
        self.fails(PAGE, "quotes an invalid trial (findings/limit/trial-001.json)")
        self.fails(PAGE.replace("The gateway", "Some trials are invalid. The gateway"), "quotes an invalid trial")
        self.passes(PAGE.replace("sessions.", "sessions, in a trial that is `invalid`."))

    def test_an_invalid_trial_must_be_called_so_in_its_row_or_footnote(self):
        self.record(2, trial("invalid", 456.2, "rust-axum"))
        self.fails(PAGE, "quotes an invalid trial")
        claim = "| {trial(F, 2).target.name}"
        self.passes(PAGE.replace("| rust-axum |", "| rust-axum (invalid) |").replace(claim, claim + " (invalid)"))
        noted = PAGE.replace("| rust-axum |", "| rust-axum † |").replace(claim, claim + " †")
        self.fails(noted, "quotes an invalid trial")
        self.passes(noted.replace("\n<!--", "\n† This trial is `invalid`.\n\n<!--"))

    def test_words_are_checked_too(self):
        self.passes(PAGE.replace("let t", "check len(F.trials) == 2\nlet t"))
        self.fails(PAGE.replace("let t", "check len(F.trials) == 3\nlet t"), "do not say that `len(F.trials) == 3`")

    def test_a_figure_that_stands_there_twice_is_ambiguous(self):
        self.fails(PAGE.replace("The gateway", "It costs 84 µs per session-second at 1,000 sessions. The gateway"), "2 times")

    def test_a_claim_without_a_figure_is_none(self):
        self.fails(PAGE.replace("let t", "the gateway costs little\nlet t"), "has no {expression}")

    def test_a_long_number_is_not_found_in_a_longer_one(self):
        self.fails(PAGE.replace("at 1,000 sessions", "at 1,000,000 sessions"), "1,000")

    def test_rows_by_a_loop(self):
        page = PAGE.replace("| {trial(F, 2).target.name} | {us(trial(F, 2).", "for I in 2\n| {trial(F, I).target.name} | {us(trial(F, I).")
        self.passes(page)

    def test_claims_apart_from_a_short_page(self):
        page, claims = PAGE.split("<!--")
        apart = self.root / "docs/claims"
        apart.mkdir()
        (apart / "README.claims").write_text("## Cost\n\n<!--" + claims)
        self.passes(page)
        self.fails(page.replace("84", "85"), "docs/claims/README.claims:3: the records say `costs 84 µs")
        self.fails(page.replace("## Cost", "## Price"), "the page has no heading `Cost`")

    def test_expressions_can_only_compute(self):
        for expression in ["__import__('os')", "F.__class__", "F.path.unlink()", "open('/etc/hostname')", "(lambda: F)()", "[x := 1]"]:
            self.fails(PAGE.replace("{n(t.sessions)}", "{%s}" % expression), f"`{expression}`")

    def test_a_page_that_is_not_there_is_bad_usage(self):
        ended = self.check(PAGE, "nowhere.md")
        self.assertEqual(ended.returncode, 2)
        self.assertIn("there is no page nowhere.md", ended.stderr)

    def test_the_list_names_page_record_and_value(self):
        ended = self.check(PAGE, "--list")
        self.assertIn("README.md:5: costs 84 µs per session-second at 1,000 sessions  <- findings/limit: 84 µs, 1,000", ended.stdout)


if __name__ == "__main__":
    unittest.main()
