//! A calibration of two agents.

use plimsoll_core::record::{
    AgentCost, Build, CalibratedAgent, FleetCalibration, FleetWork, LoadUnit, SCHEMA_VERSION,
};

/// What two agents can drive: the second is on a slower machine.
pub(crate) fn two_agents() -> FleetCalibration {
    let agent = |index: u32, host: &str| CalibratedAgent {
        index,
        host: host.to_owned(),
        kernel: "6.12.0".to_owned(),
        cpus: 4,
        client_cpus: 3,
        shares_cpu: false,
        timer_error_p99_us: 61.0,
    };
    let cost = |index: u32, engine_cpu_us: f64, most: u32| AgentCost {
        index,
        load: 1_000,
        bare_cpu_us: 2.9,
        engine_cpu_us,
        ratio: engine_cpu_us / 2.9,
        on_time_load: Some(most),
        send_lag_p99_us: 410.0,
    };
    let work = FleetWork {
        work: "speech".to_owned(),
        load_unit: LoadUnit::SESSIONS,
        message_bytes: Some(640),
        messages_per_write: Some(1),
        on_time_load: Some(7_000),
        send_lag_p99_us: Some(520.0),
        agents: vec![cost(0, 4.1, 6_000), cost(1, 6.2, 3_500)],
        ..FleetWork::default()
    };
    FleetCalibration {
        schema_version: SCHEMA_VERSION,
        workload: "stt".to_owned(),
        agents: vec![agent(0, "agent-a"), agent(1, "agent-b")],
        works: vec![work.summed()],
        rounds: 5,
        seconds: 3.0,
        engine_backend: "epoll".to_owned(),
        build: Build::default(),
        started_at: "2026-01-05T03:04:05Z".to_owned(),
    }
}
