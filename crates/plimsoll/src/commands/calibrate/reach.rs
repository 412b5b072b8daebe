//! How much load this machine's client, or the agents, can drive, estimated in seconds. A search warns early with it.

use plimsoll_host::isolation::{CpuList, OwnNetwork};
use plimsoll_host::signals::Stop;
use plimsoll_lab::calibrate::{self, EngineOnAgent, Settings};
use plimsoll_lab::fleet::Fleet;
use plimsoll_lab::trial::{BackEnd, Conditions, NetworkPlan};
use plimsoll_report::words;
use plimsoll_workload::Work;

use crate::failure::Failure;

/// How much load can be driven.
#[derive(Debug, PartialEq)]
pub(crate) struct Reach {
    pub(crate) sessions: u32,
    /// The same in words, with who drives it and what a frame costs there.
    pub(crate) told: String,
    /// What to do if it is too little.
    pub(crate) remedy: &'static str,
}

/// The agents that drive the load; `None` if this machine's client does.
fn agents(conditions: &Conditions) -> Option<&Fleet> {
    let fleet = conditions.fleet.as_ref();
    fleet.filter(|fleet| fleet.agents() > 0)
}

/// Who drives the load, in words.
pub(crate) fn driver(conditions: &Conditions) -> String {
    match agents(conditions) {
        Some(fleet) => words::counted(fleet.agents().into(), "agent"),
        None => format!("client on CPU {}", conditions.placement.client_cpus),
    }
}

/// Calibrates the engine briefly with the work of the load's own frames, on this machine or on each agent, and estimates how many
/// sessions can be driven there if each sends so many frames per second.
pub(crate) fn quick_reach(
    conditions: &Conditions,
    work: &dyn Work,
    frames_per_s: f64,
    stop: &Stop,
) -> Result<Reach, Failure> {
    let who = driver(conditions);
    if let Some(fleet) = agents(conditions) {
        let engines = calibrate::engine_on_agents(fleet, &*conditions.plan, work, stop)?;
        return Ok(of_agents(&who, &engines, frames_per_s));
    }
    let us_per_frame = here(conditions, work, stop)?;
    let companions = conditions.plan.workload().companions();
    let companion_us = match (&conditions.back_end, companions) {
        (BackEnd::Companion(_), Some(companions)) => companions.cpu_us_per_session_second(),
        _ => 0.0,
    };
    let cores = cores(&conditions.placement.client_cpus);
    let sessions = sessions_within(cores, frames_per_s * us_per_frame + companion_us);
    Ok(Reach {
        sessions,
        told: format!(
            "{who}: about {us_per_frame:.1} µs of CPU per frame, so it can drive about {sessions} sessions"
        ),
        remedy: "give the client more cores (--client-cpus) or the target less (--vcpu)",
    })
}

/// CPU time of this machine's engine per frame, µs, in the network that the load will have.
fn here(conditions: &Conditions, work: &dyn Work, stop: &Stop) -> Result<f64, Failure> {
    let placement = &conditions.placement;
    let sessions_max = calibrate::sessions_max();
    // If the network cannot be had, the first trial says why.
    let own = (conditions.network == NetworkPlan::Own)
        .then(|| OwnNetwork::make(placement, 1).ok())
        .flatten();
    let settings = Settings {
        client_cpus: placement.client_cpus.clone(),
        sink_cpus: placement.target_cpus.clone(),
        sessions: work.usual_sessions().min(sessions_max),
        rounds: 1,
        seconds: calibrate::BRIEF_SECONDS,
        sessions_max,
        tls: false,
        cores_share: 1.0,
    };
    Ok(calibrate::engine_us_per_frame(
        work,
        &settings,
        own.as_ref(),
        stop,
    )?)
}

/// What agents can drive. Each gets an even part, so all together drive as many times what the least of them can.
fn of_agents(who: &str, engines: &[EngineOnAgent], frames_per_s: f64) -> Reach {
    let each = engines.iter().map(|engine| {
        let sessions = sessions_within(engine.cores, frames_per_s * engine.us_per_frame);
        (sessions, engine)
    });
    let count = u32::try_from(engines.len()).unwrap_or(u32::MAX);
    let least = each.min_by_key(|(sessions, _)| *sessions);
    let sessions = least.map_or(0, |(sessions, _)| sessions.saturating_mul(count));
    let least = least.map_or_else(String::new, |(sessions, engine)| {
        format!(
            ", for parts are even and agent {} can drive about {sessions} ({:.1} µs of CPU per frame on {:.1} cores)",
            engine.name, engine.us_per_frame, engine.cores
        )
    });
    Reach {
        sessions,
        told: format!("{who} can drive about {sessions} sessions{least}"),
        remedy: "give it more agents (--agents), or agents more cores",
    }
}

/// The sessions that the cores can drive if each costs so many µs of CPU per second.
fn sessions_within(cores: f64, us_per_session_second: f64) -> u32 {
    whole(cores * calibrate::BUSY_LIMIT * 1e6 / us_per_session_second)
}

#[expect(clippy::cast_precision_loss, reason = "a count of cores")]
fn cores(cpus: &CpuList) -> f64 {
    cpus.count() as f64
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a count of sessions; the cast saturates"
)]
fn whole(sessions: f64) -> u32 {
    sessions as u32
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use plimsoll_workload::{Plan, Value, Values, Workload};

    /// A session of workload `echo` sends a fifth of the frames of a speech session.
    #[test]
    fn the_reach_follows_from_the_pace_of_the_workload() {
        let sessions = |plan: Arc<dyn Plan>, us_per_frame| {
            let frames_per_s = plan.frames_per_session_second().expect("a pace");
            sessions_within(2.0, frames_per_s * us_per_frame)
        };
        let echo = |period_ms| {
            let values = Values::default().with("period_ms", Value::Whole(period_ms));
            plimsoll_workload_echo::Echo.plan(values).expect("a plan")
        };
        let stt = plimsoll_workload_stt::Stt.plan(Values::default());
        assert_eq!(sessions(stt.expect("a plan"), 4.0), 9_000);
        assert_eq!(sessions(echo(100), 4.0), 45_000);
        assert_eq!(sessions(echo(10), 4.0), 4_500);
        assert_eq!(sessions(echo(100), 6.0), 30_000);
    }

    #[test]
    fn the_least_agent_decides_what_agents_can_drive() {
        let engine = |name: &str, cores, us_per_frame| EngineOnAgent {
            name: name.to_owned(),
            cores,
            us_per_frame,
        };
        let engines = [engine("0 (a)", 4.0, 4.0), engine("1 (b)", 2.0, 4.0)];
        let reach = of_agents("2 agents", &engines, 50.0);
        assert_eq!(reach.sessions, 18_000);
        assert_eq!(
            reach.told,
            "2 agents can drive about 18000 sessions, for parts are even and agent 1 (b) can drive about 9000 (4.0 µs of CPU per frame on 2.0 cores)"
        );
    }
}
