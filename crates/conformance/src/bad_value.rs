//! Cases of variables: a bad value ends the server before it listens, with exit code 2 and one line that names it.

use std::time::Duration;

use super::case::{Case, Level, Trial, Verdict};
use super::subject::{Bench, Environment};
use super::suite::Suite;

/// A server must have refused by then. No contract sets a time, and a virtual machine on a busy core takes its time to
/// start.
const LIMIT: Duration = Duration::from_secs(30);

/// A delay of less can hardly make a refusal too late.
const TOLERANCE: Duration = Duration::from_secs(10);

impl<S: Suite> Case<S> {
    /// The case that each of these values of this variable is refused: `bad-value-` and the variable's name.
    #[must_use]
    pub fn of_bad_values(name: &'static str, values: &'static [&'static str]) -> Self {
        Self {
            id: format!("bad-value-{}", name.to_lowercase().replace('_', "-")).into(),
            title: format!("{name} with a bad value is refused").into(),
            expected: format!(
                "exit code 2 and one line that names {name}, for {}",
                values.join(" and ")
            )
            .into(),
            tolerance: TOLERANCE,
            level: Level::Must,
            trial: Trial::OnBench(Box::new(move |bench| refused(bench, name, values))),
        }
    }
}

fn refused(bench: &dyn Bench, name: &str, values: &[&str]) -> Verdict {
    for value in values {
        let environment = Environment::from([(name.to_owned(), (*value).to_owned())]);
        let ended = bench.start_refused(&environment, LIMIT)?;
        let printed = ended.output.lines();
        let lines: Vec<&str> = printed.filter(|line| !line.trim().is_empty()).collect();
        let code = ended
            .exit_code
            .map_or("a signal".to_owned(), |code| format!("exit code {code}"));
        let seen = format!(
            "{name}={value}: {code} and {} lines: {:?}",
            lines.len(),
            lines.first().unwrap_or(&"")
        );
        if ended.exit_code != Some(2) || lines.len() != 1 || !lines[0].contains(name) {
            return Err(seen);
        }
    }
    Ok(format!("exit code 2 and one line that names {name}"))
}
