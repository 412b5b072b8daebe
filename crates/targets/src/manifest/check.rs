//! Checks what a manifest says.

use plimsoll_workload_ws::Dialect;

use super::{Manifest, Tier};

impl Manifest {
    /// Checks that its values are possible and fit together.
    pub(super) fn check(&self) -> std::result::Result<(), String> {
        plain_name("name", &self.name)?;
        plain_name("workload", &self.workload)?;
        if self.threads_per_vcpu == 0 {
            return Err("threads_per_vcpu is 0; it must be at least 1".into());
        }
        match (self.workload.as_str(), self.inference_transport) {
            ("stt", None) => {
                return Err("inference_transport is missing; say \"h2c\" or \"http1\"".into());
            }
            ("stt", Some(_)) | (_, None) => {}
            (other, Some(_)) => {
                return Err(format!(
                    "inference_transport does not apply to workload {other}; remove it"
                ));
            }
        }
        self.check_ws()?;
        if !self.asks_inference && self.tier != Tier::Test {
            return Err(format!(
                "asks_inference is false, but the tier is {}; remove the key: only a target of tier \"test\" may work without its inference server",
                self.tier.word()
            ));
        }
        runnable("run.command", &self.run.command)?;
        if let Some(test) = &self.test {
            runnable("test.command", &test.command)?;
        }
        let Some(build) = &self.build else {
            return Ok(());
        };
        runnable("build.command", &build.command)?;
        for need in &build.needs {
            runnable(
                &format!("version_command of {}", need.tool),
                &need.version_command,
            )?;
            if need.tool.is_empty() || need.install.is_empty() || need.install.contains('\n') {
                return Err("build.needs: tool and install must each be one non-empty line".into());
            }
        }
        Ok(())
    }

    /// Checks the keys of workload `ws`.
    fn check_ws(&self) -> std::result::Result<(), String> {
        if let Some(dialect) = &self.dialect
            && Dialect::by_name(dialect).is_none()
        {
            return Err(format!(
                "dialect {dialect:?} is unknown; say \"echo\" or \"wse\""
            ));
        }
        let given = [
            ("dialect", self.dialect.is_some()),
            ("separate_metrics_port", self.separate_metrics_port),
        ];
        match given.into_iter().find(|(_, given)| *given) {
            Some((key, _)) if self.workload != "ws" => Err(format!(
                "{key} does not apply to workload {}; remove it",
                self.workload
            )),
            _ => Ok(()),
        }
    }
}

/// Names become parts of file names and control group names, so they must be plain.
fn plain_name(key: &str, name: &str) -> std::result::Result<(), String> {
    let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    if name.is_empty() || name.len() > 64 || !name.chars().all(plain) || name.starts_with('-') {
        return Err(format!(
            "{key} {name:?} must be 1 to 64 lower-case letters, digits and dashes"
        ));
    }
    Ok(())
}

fn runnable(key: &str, command: &[String]) -> std::result::Result<(), String> {
    match command.first() {
        Some(program) if !program.is_empty() => Ok(()),
        _ => Err(format!(
            "{key} is empty; it must be a list that starts with a program"
        )),
    }
}
