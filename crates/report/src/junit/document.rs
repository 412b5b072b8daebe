//! The document: suites of cases, valid by the schema that build servers share (`junit-10.xsd` of Jenkins' xUnit
//! plugin).
//!
//! That schema has properties only for suites, not for cases. All readers agree only on one outcome per case.

use std::fmt::Write;

use crate::xml::escape;

/// A group of cases, with the facts about them.
#[derive(Debug, Default)]
pub(super) struct Suite {
    pub(super) name: String,
    /// When it was measured, RFC 3339 in UTC; empty when unknown.
    pub(super) started_at: String,
    /// Names and values for tools.
    pub(super) properties: Vec<(&'static str, String)>,
    pub(super) cases: Vec<Case>,
    /// Lines for people.
    pub(super) output: Vec<String>,
}

#[derive(Debug)]
pub(super) struct Case {
    /// The position in a report's tree, with parts separated by dots.
    pub(super) class: String,
    pub(super) name: String,
    pub(super) outcome: CaseResult,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum CaseResult {
    Passed,
    /// The target did not do what it should.
    Failed(Reason),
    /// The measurement could not tell.
    Error(Reason),
    Skipped(String),
}

/// The reason in one line, with more lines where there are any.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Reason {
    /// A stable word.
    pub(super) kind: String,
    pub(super) message: String,
    pub(super) lines: Vec<String>,
}

impl Reason {
    pub(super) fn new(kind: impl Into<String>, message: impl Into<String>) -> Self {
        Self {
            kind: kind.into(),
            message: message.into(),
            lines: Vec::new(),
        }
    }
}

impl Suite {
    /// How many cases failed, could not be decided, and were left out.
    fn counts(&self) -> [usize; 3] {
        let of = |wanted: fn(&CaseResult) -> bool| {
            let cases = self.cases.iter().filter(|case| wanted(&case.outcome));
            cases.count()
        };
        [
            of(|outcome| matches!(outcome, CaseResult::Failed(_))),
            of(|outcome| matches!(outcome, CaseResult::Error(_))),
            of(|outcome| matches!(outcome, CaseResult::Skipped(_))),
        ]
    }
}

/// The whole file.
pub(super) fn write(suites: &[Suite]) -> String {
    let sum = |of: &dyn Fn(&Suite) -> usize| suites.iter().map(of).sum::<usize>();
    let mut xml = Xml::default();
    xml.line(format_args!("<?xml version=\"1.0\" encoding=\"UTF-8\"?>"));
    xml.line(format_args!(
        "<testsuites name=\"plimsoll\" tests=\"{}\" failures=\"{}\" errors=\"{}\">",
        sum(&|suite| suite.cases.len()),
        sum(&|suite| suite.counts()[0]),
        sum(&|suite| suite.counts()[1]),
    ));
    for suite in suites {
        xml.suite(suite);
    }
    xml.line(format_args!("</testsuites>"));
    xml.text
}

#[derive(Debug, Default)]
struct Xml {
    text: String,
}

impl Xml {
    fn line(&mut self, line: std::fmt::Arguments<'_>) {
        // Writing to a string cannot fail.
        let _ = writeln!(self.text, "{line}");
    }

    fn suite(&mut self, suite: &Suite) {
        let [failures, errors, skipped] = suite.counts();
        let timestamp = match without_zone(&suite.started_at) {
            "" => String::new(),
            time => format!(" timestamp=\"{}\"", escape(time)),
        };
        self.line(format_args!(
            "  <testsuite name=\"{}\" tests=\"{}\" failures=\"{failures}\" errors=\"{errors}\" skipped=\"{skipped}\"{timestamp}>",
            escape(&suite.name),
            suite.cases.len()
        ));
        if !suite.properties.is_empty() {
            self.line(format_args!("    <properties>"));
            for (name, value) in &suite.properties {
                let value = escape(value);
                self.line(format_args!(
                    "      <property name=\"{name}\" value=\"{value}\"/>"
                ));
            }
            self.line(format_args!("    </properties>"));
        }
        for case in &suite.cases {
            self.case(case);
        }
        if !suite.output.is_empty() {
            let output = body(&suite.output);
            self.line(format_args!("    <system-out>{output}</system-out>"));
        }
        self.line(format_args!("  </testsuite>"));
    }

    fn case(&mut self, case: &Case) {
        let attributes = format!(
            "classname=\"{}\" name=\"{}\"",
            escape(&case.class),
            escape(&case.name)
        );
        let outcome = match &case.outcome {
            CaseResult::Passed => {
                self.line(format_args!("    <testcase {attributes}/>"));
                return;
            }
            CaseResult::Skipped(why) => format!("<skipped message=\"{}\"/>", escape(why)),
            CaseResult::Failed(reason) => element("failure", reason),
            CaseResult::Error(reason) => element("error", reason),
        };
        self.line(format_args!("    <testcase {attributes}>"));
        self.line(format_args!("      {outcome}"));
        self.line(format_args!("    </testcase>"));
    }
}

/// Some readers show the message, others the text, so the text includes the message.
fn element(name: &str, reason: &Reason) -> String {
    let mut lines = vec![reason.message.clone()];
    lines.extend(reason.lines.iter().cloned());
    format!(
        "<{name} type=\"{}\" message=\"{}\">{}</{name}>",
        escape(&reason.kind),
        escape(&reason.message),
        body(&lines)
    )
}

fn body(lines: &[String]) -> String {
    let lines: Vec<_> = lines.iter().map(|line| escape(line)).collect();
    lines.join("\n")
}

/// Stricter readers accept only a time without a zone.
fn without_zone(time: &str) -> &str {
    time.strip_suffix('Z').unwrap_or(time)
}
