//! The seal by which we know that this user started a search on this machine: a code over its plan, made with a key
//! that nobody else has.
//!
//! A plan names programs to build and to start. Who owns the folder says nothing about who wrote the plan: if you
//! unpack an archive, you own what was in it.

use std::fs::{self, DirBuilder, OpenOptions};
use std::io::{Read, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::PathBuf;

use hmac::{Hmac, KeyInit as _, Mac as _};
use plimsoll_core::record::SearchPlan;
use sha2::Sha256;

const KEY_BYTES: usize = 32;

/// Adds this user's seal to the plan. If there is no place for the key, the plan stays unsealed, and later it counts as
/// a stranger's.
pub(super) fn sealed(mut plan: SearchPlan) -> SearchPlan {
    plan.seal = key(true).map_or_else(String::new, |key| seal_of(&plan, &key));
    plan
}

/// Whether this user started the search on this machine.
pub(super) fn is_ours(plan: &SearchPlan) -> bool {
    key(false).is_some_and(|key| is_sealed_with(plan, &key))
}

fn is_sealed_with(plan: &SearchPlan, key: &[u8]) -> bool {
    !plan.seal.is_empty() && plan.seal == seal_of(plan, key)
}

fn seal_of(plan: &SearchPlan, key: &[u8]) -> String {
    let unsealed = SearchPlan {
        seal: String::new(),
        ..plan.clone()
    };
    let text = serde_json::to_vec(&unsealed)
        .unwrap_or_else(|_| unreachable!("texts and numbers are JSON"));
    let mut mac = Hmac::<Sha256>::new_from_slice(key)
        .unwrap_or_else(|_| unreachable!("HMAC takes a key of any length"));
    mac.update(&text);
    let code = mac.finalize().into_bytes();
    code.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// This user's key. With `make`, a missing key is created.
fn key(make: bool) -> Option<Vec<u8>> {
    let file = key_file()?;
    if make && !file.exists() {
        // If it cannot be created, it cannot be read either.
        let _ = make_key(&file);
    }
    let mut opened = fs::File::open(&file).ok()?;
    let facts = opened.metadata().ok()?;
    let ours = facts.uid() == our_uid()? && facts.mode() & 0o077 == 0;
    let mut key = Vec::new();
    opened.read_to_end(&mut key).ok()?;
    (ours && key.len() == KEY_BYTES).then_some(key)
}

/// The user that this process acts for: the owner of its folder in /proc.
fn our_uid() -> Option<u32> {
    Some(fs::metadata("/proc/self").ok()?.uid())
}

/// `resume.key` where Plimsoll keeps its state.
fn key_file() -> Option<PathBuf> {
    Some(plimsoll_host::state::folder()?.join("resume.key"))
}

fn make_key(file: &PathBuf) -> std::io::Result<()> {
    let folder = file.parent().unwrap_or(file);
    DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(folder)?;
    let mut key = [0; KEY_BYTES];
    fs::File::open("/dev/urandom")?.read_exact(&mut key)?;
    let draft = file.with_extension(format!("draft-{}", std::process::id()));
    let mut options = OpenOptions::new();
    options.write(true).create_new(true).mode(0o600);
    options.open(&draft)?.write_all(&key)?;
    // A link, not a rename: if two commands create a key at once, both must end up with the same one.
    let linked = fs::hard_link(&draft, file);
    fs::remove_file(&draft)?;
    linked
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan() -> SearchPlan {
        SearchPlan {
            schema_version: 1,
            command: vec!["find".to_owned(), "x".to_owned()],
            working_folder: "/tmp".to_owned(),
            target: "x".to_owned(),
            max: 5,
            trials_before: 0,
            started_at: "2026-01-31T00:00:00Z".to_owned(),
            headers: Vec::new(),
            secret_parameters: Vec::new(),
            goals_sha256: None,
            seal: String::new(),
        }
    }

    #[test]
    fn a_seal_holds_for_one_plan_and_one_key() {
        let mut ours = plan();
        assert!(
            !is_sealed_with(&ours, b"key"),
            "an unsealed plan is nobody's"
        );
        ours.seal = seal_of(&ours, b"key");
        assert!(is_sealed_with(&ours, b"key"));
        assert!(!is_sealed_with(&ours, b"another"));
        let mut changed = ours.clone();
        changed.command[1] = "--manifest=/tmp/evil.toml".to_owned();
        assert!(!is_sealed_with(&changed, b"key"));
        changed = ours.clone();
        changed.working_folder = "/elsewhere".to_owned();
        assert!(!is_sealed_with(&changed, b"key"));
    }
}
