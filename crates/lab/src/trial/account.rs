//! What a target without HTTP says of itself, asked once its sessions have closed.

use std::path::Path;
use std::time::Duration;

use plimsoll_core::secret::Secrets;
use plimsoll_core::session::Endpoint;
use plimsoll_host::signals::Stop;
use plimsoll_host::talk;
use plimsoll_workload::Findings;
use serde_json::Value;

use super::conditions::Conditions;
use super::stage::Staged;

/// How long the target may take for its account.
const LIMIT: Duration = Duration::from_secs(5);

/// The log of a trial that says why there is no account.
const LOG: &str = "account.log";

/// The target's account of itself, without secrets; null if the plan asks for none. `to` is where the sessions went. It is null as well if the target did
/// not answer, which a log then says. Nobody waits after a signal.
pub(super) fn account(
    conditions: &Conditions,
    stage: &Staged,
    to: &Endpoint,
    stop: &Stop,
) -> Findings {
    let Some(speaker) = conditions.plan.speaker() else {
        return Findings::Null;
    };
    if stop.requested() {
        return Findings::Null;
    }
    let address = stage.url.address;
    let told = if stage.url.secure {
        Err("it is asked without TLS only".to_owned())
    } else {
        talk(address, LIMIT, |stream| speaker.account(stream, to))
            .map_err(|error| error.to_string())
    };
    match told {
        Ok(account) => scrubbed(account, &stage.secrets),
        Err(why) => {
            note(
                &conditions.log_folder,
                &format!("{address} gave no account of itself within {LIMIT:?}: {why}\n"),
            );
            Findings::Null
        }
    }
}

/// Writes the log. The trial is worth more than this line, so a failure ends nothing.
fn note(folder: &Path, line: &str) {
    let made = std::fs::create_dir_all(folder);
    let _ = made.and_then(|()| std::fs::write(folder.join(LOG), line));
}

/// The same without secrets: a server chooses its words, and may repeat what it was sent.
fn scrubbed(value: Value, secrets: &Secrets) -> Value {
    match value {
        Value::String(text) => Value::String(secrets.scrub(&text).into_owned()),
        Value::Array(items) => {
            let items = items.into_iter();
            items.map(|item| scrubbed(item, secrets)).collect()
        }
        Value::Object(fields) => {
            let scrub = |name: String| secrets.scrub(&name).into_owned();
            let fields = fields.into_iter();
            fields
                .map(|(name, value)| (scrub(name), scrubbed(value, secrets)))
                .collect()
        }
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn an_account_has_no_secret() {
        let mut secrets = Secrets::default();
        secrets.add("canary-of-the-password");
        let told =
            json!({"depth": 7, "users": [{"canary-of-the-password": "canary-of-the-password"}]});
        let kept = scrubbed(told, &secrets).to_string();
        assert!(
            kept.contains("\"depth\":7") && !kept.contains("canary"),
            "{kept}"
        );
    }

    #[test]
    fn a_trial_without_an_account_says_why() {
        let folder = tempfile::tempdir().expect("temp");
        let logs = folder.path().join("logs/001");
        note(&logs, "nobody\n");
        let text = std::fs::read_to_string(logs.join(LOG)).expect("written");
        assert_eq!(text, "nobody\n");
    }
}
