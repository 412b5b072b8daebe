//! What `plimsoll calibrate` found, of each kind.

use plimsoll_core::latency::Quantiles;
use plimsoll_core::record::{
    Calibration, ClientCost, ClientCosts, EndedBy, Holding, InferenceCalibration, InferenceLoad,
    LoadUnit, SCHEMA_VERSION, ServerUse, Spread,
};

/// What a client can generate.
pub(crate) fn engine() -> Calibration {
    Calibration {
        build: plimsoll_core::record::Build::default(),
        schema_version: SCHEMA_VERSION,
        bare_us_per_frame: 2.9,
        engine_us_per_frame: 4.1,
        ratio: 1.41,
        tls: None,
        max_sessions: 4_200,
        send_lag_p99_us: 320.0,
        timer_error_p99_us: 58.0,
        sessions: 1_000,
        engine_backend: "epoll".to_owned(),
        started_at: "2026-01-02T03:04:05Z".to_owned(),
    }
}

/// What workload `ws` costs a client.
pub(crate) fn client_costs() -> ClientCosts {
    let spread = |least: f64, median: f64, greatest: f64| Spread {
        median,
        least,
        greatest,
    };
    let messages = |messages_per_write: u32, connections: u32, load: u32| ClientCost {
        work: "json".to_owned(),
        load_unit: LoadUnit::MESSAGES_PER_SECOND,
        load,
        connections: Some(connections),
        message_bytes: Some(175),
        messages_per_write: Some(messages_per_write),
        bare_cpu_us: spread(3.9, 4.0, 4.3),
        engine_cpu_us: spread(4.8, 5.0, 5.2),
        ratio: spread(1.21, 1.25, 1.31),
        bare_per_core_second: 250_000.0,
        engine_per_core_second: 200_000.0,
        on_time_load: Some(172_500),
        send_lag_p99_us: Some(1_100.0),
        tls: None,
    };
    let connections = ClientCost {
        work: "connections".to_owned(),
        load_unit: LoadUnit::CONNECTIONS_PER_SECOND,
        connections: None,
        message_bytes: None,
        messages_per_write: None,
        load: 2_000,
        on_time_load: None,
        send_lag_p99_us: None,
        ..messages(1, 100, 0)
    };
    ClientCosts {
        workload: "ws".to_owned(),
        build: plimsoll_core::record::Build::default(),
        schema_version: SCHEMA_VERSION,
        costs: vec![
            messages(1, 100, 50_000),
            messages(8, 25, 400_000),
            connections,
        ],
        timer_error_p99_us: 58.0,
        rounds: 5,
        seconds: 3.0,
        engine_backend: "epoll".to_owned(),
        started_at: "2026-01-03T03:04:05Z".to_owned(),
    }
}

/// What an inference server holds alone.
pub(crate) fn inference() -> InferenceCalibration {
    let load = |sessions: u32, judged, p99_ms| InferenceLoad {
        sessions,
        judged,
        connections: 8,
        batches: u64::from(sessions) * 3,
        sent_per_s: sessions.into(),
        answered_per_s: sessions.into(),
        from_schedule: Quantiles {
            p50_ms: Some(85.0),
            p95_ms: Some(120.0),
            p99_ms: Some(p99_ms),
            count: u64::from(sessions) * 3,
            ..Quantiles::default()
        },
        server: Some(ServerUse {
            cpu_us_per_batch: 210.0,
            cpu_share: 0.02,
        }),
        ..InferenceLoad::default()
    };
    InferenceCalibration {
        schema_version: SCHEMA_VERSION,
        workload: "stt".to_owned(),
        url: "http://127.0.0.1:9000".to_owned(),
        transport: "h2c".to_owned(),
        batch_bytes: 32_000,
        p99_limit_ms: 350.0,
        sessions: Some(80),
        ended: EndedBy::Server,
        loads: vec![
            load(80, Holding::Held, 230.0),
            load(160, Holding::Late, 900.0),
            load(160, Holding::Late, 910.0),
        ],
        seconds: 3.0,
        seed: 1,
        build: plimsoll_core::record::Build::default(),
        started_at: "2026-01-04T03:04:05Z".to_owned(),
    }
}
