//! The accounts of a trial in lines, for a reader with little room: ledger, client, target.

use plimsoll_core::record::Trial;

use super::{Fact, Tellers, Text};
use crate::facts;
use crate::words::{self, bytes, count, maybe, percent, us};

/// One line for each.
pub(super) fn of_trial(trial: &Trial, tellers: Tellers) -> Vec<Fact> {
    let mut lines = Vec::new();
    lines.extend(tellers.of(&trial.workload).in_lines(trial));
    lines.extend(ledger(trial, tellers));
    lines.push(Fact::new("client", client(trial)));
    lines.push(Fact::new("target", target(trial)));
    lines.extend(memory(trial).map(|told| Fact::new("memory", told)));
    let start = trial.start_ms.map(words::ms);
    lines.extend(start.map(|ms| Fact::new("start", format!("ready after {ms}"))));
    lines.extend(sockets(trial).map(|told| Fact::new("sockets", told)));
    lines.extend(tellers.of(&trial.workload).companions_in_lines(trial));
    for row in facts::drift_of(trial) {
        let facts::DriftRow {
            name,
            slope,
            interval,
            reading,
        } = row;
        let told = format!("{name}: {reading}, {slope} ({interval})");
        lines.push(Fact::new("drift", told));
    }
    let holding = trial.sanity.iter().filter(|check| check.holds);
    let names: Vec<&str> = holding.map(|check| check.name.as_str()).collect();
    if !names.is_empty() {
        let agree = Text::from("agree: ").joined(Text::codes(names));
        lines.push(Fact::new("accounts", agree));
    }
    lines
}

fn ledger(trial: &Trial, tellers: Tellers) -> Vec<Fact> {
    let ledger = &trial.ledger;
    let nouns = tellers.of(&trial.workload).nouns(trial);
    let started = if trial.load_unit.is_sessions() {
        "sessions"
    } else {
        "connected"
    };
    let frames = format!(
        "{} due, {} sent, {} answered, {} errored, {} lost, {} duplicated, {} out of order",
        count(ledger.frames_due),
        count(ledger.frames_sent),
        count(ledger.frames_answered),
        count(ledger.frames_errored),
        count(ledger.frames_lost),
        count(ledger.frames_duplicated),
        count(ledger.frames_out_of_order),
    );
    let sessions = format!(
        "{} started, {} failed, {} died",
        count(ledger.sessions_started),
        count(ledger.sessions_failed),
        count(ledger.sessions_died),
    );
    let answers = format!(
        "{} {}, {} errors, {} protocol faults, {} recomputed, {} of them wrong",
        count(ledger.partials),
        nouns.messages,
        count(ledger.errors),
        count(ledger.protocol_faults),
        count(ledger.content_checked),
        count(ledger.content_wrong),
    );
    let mut lines = vec![
        Fact::new(nouns.frames, frames),
        Fact::new(started, sessions),
        Fact::new("answers", answers),
    ];
    for (reason, times) in &ledger.reasons {
        lines.push(Fact::new("", format!("{} × {reason}", count(*times))));
    }
    lines
}

fn client(trial: &Trial) -> String {
    let client = &trial.client;
    let steal = client.steal_share.map_or_else(String::new, |share| {
        format!(", {} stolen by the hypervisor", percent(share))
    });
    let achieved = client.achieved_share.map_or_else(String::new, |share| {
        let share = words::near_whole(Some(share));
        format!(", achieved {share} of the offered load")
    });
    let tls = client
        .tls_us_per_frame
        .map_or_else(String::new, |per_frame| {
            format!(" ({} of it TLS)", us(per_frame))
        });
    let handshake = client.tls_handshake_us.map_or_else(String::new, |each| {
        format!(", {} per TLS handshake", us(each))
    });
    format!(
        "{} of its busiest core, {} per frame{tls}{handshake}, send lag p99.9 {}, send wait p99.9 {}{steal}{achieved}",
        percent(client.cpu_share),
        maybe(client.cpu_us_per_frame, us),
        maybe(client.send_lag.p999_us, us),
        maybe(client.send_wait.p999_us, us),
    )
}

fn target(trial: &Trial) -> String {
    let Some(resources) = &trial.target_resources else {
        return "resources not measured".to_owned();
    };
    let per_session = resources.rss_bytes_per_session;
    let per_session = per_session.map_or_else(String::new, |per_session| {
        let holder = words::holder(trial.load_unit);
        format!(" ({} per {holder})", bytes(per_session))
    });
    let throttled = resources.throttled_share;
    let throttled = throttled.map_or_else(String::new, |share| {
        format!(", throttled in {} of periods", percent(share))
    });
    let core = resources.core_us_per_session_second;
    let core = core.map_or_else(String::new, |core_us| {
        let beyond = words::beyond_charged(resources);
        let beyond = beyond.map_or_else(String::new, |text| format!(": {text}"));
        format!(" ({} of its cores{beyond})", us(core_us))
    });
    format!(
        "{} CPU {}{core}, {} of {}, RSS peak {}{per_session}{throttled}",
        maybe(resources.cpu_us_per_session_second, us),
        words::per_one_and_second(trial.load_unit),
        percent(resources.cpu_share),
        words::given(trial.vcpu),
        words::whole_bytes(resources.rss_peak_bytes),
    )
}

/// The target's memory at moments of the trial, as far as it was read.
fn memory(trial: &Trial) -> Option<String> {
    let memory = trial.target_resources.as_ref()?.memory?;
    let moments = [
        ("idle", memory.idle),
        ("loaded", memory.loaded),
        ("after the last close", memory.after),
    ];
    let told = moments.into_iter();
    let told = told.filter_map(|(when, at)| Some(format!("{when}: {}", words::memory(at?))));
    let told: Vec<String> = told.collect();
    (!told.is_empty()).then(|| told.join("; "))
}

/// The target's ends of the connections: what each side left unread, and what was lost on the way.
fn sockets(trial: &Trial) -> Option<String> {
    let sockets = trial.target_resources.as_ref()?.sockets.as_ref()?;
    let again = sockets.retransmits.map_or_else(String::new, |segments| {
        format!(", {} segments retransmitted", count(segments))
    });
    Some(format!(
        "{} connections, unread by the target {} at most, not acknowledged by the client {} at most{again}",
        count(sockets.connections_peak),
        words::whole_bytes(sockets.receive_queue_peak_bytes),
        words::whole_bytes(sockets.send_queue_peak_bytes),
    ))
}
