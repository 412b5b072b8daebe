//! The plans of workload `ws`: a test, and the same as a closed loop.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use plimsoll_conformance::Check;
use plimsoll_core::profile::Profile;
use plimsoll_core::record::LoadUnit;
use plimsoll_core::sanity::MetricNames;
use plimsoll_core::session::Endpoint;
use plimsoll_core::slo::Slo;
use plimsoll_document::Tell;
use plimsoll_document::words::count;
use plimsoll_protocol::connection::check;
use plimsoll_workload::counters::Counted;
use plimsoll_workload::{
    About, Afterwards, Checked, Counters, Demand, Drive, Findings, Job, Key, Outcome, Parameter,
    Plan, Refusal, Row, Seen, Series, Takes, Told, Value, Values, Work, Workload, machines,
    machines_with_findings,
};

use crate::account::{self, Found};
use crate::calibrate::WORKS;
use crate::check::WebSocketSuite;
use crate::closed_loop::{ClosedPings, Flood, PINGS_PER_CONNECTION};
use crate::load::WsLoad;
use crate::parameters::PARAMETERS;
use crate::{
    CONTRACT_VARIABLES, Dialect, EchoMessages, Fanout, Format, Peer, Storm, Test, WseMessages,
    WsePings, wse,
};

/// The message sizes of test `matrix`, exact to the byte.
const SIZES_BYTES: [u64; 6] = [64, 256, 1_024, 4_096, 16_384, 65_536];
/// The formats that a `wse` server is said to accept. MessagePack with the suite's own prefix does not count as one of
/// them; for that, use `--test throughput --format msgpack-prefixed`.
const FORMATS: [Format; 3] = [Format::Json, Format::Msgpack, Format::Zlib];
/// The shortest grace of a closed loop, in seconds. Its pings are given up after 5 s, and the grace must leave that
/// time to the last one.
const CLOSED_LOOP_GRACE_S: f64 = 6.0;

/// The workload.
#[derive(Debug)]
pub struct Ws;

impl Workload for Ws {
    fn about(&self) -> &'static About {
        &About {
            name: "ws",
            line: "General WebSocket servers: eight tests, see --test",
            floor: None,
            contract: Some(1),
        }
    }

    fn parameters(&self) -> &'static [Parameter] {
        &PARAMETERS
    }

    fn manifest_keys(&self) -> &'static [Key] {
        &[Key {
            name: "dialect",
            takes: Takes::OneOf(&["echo", "wse"]),
            required: false,
        }]
    }

    fn variables(&self) -> &'static [&'static str] {
        &CONTRACT_VARIABLES
    }

    fn teller(&self) -> Option<&'static dyn Tell> {
        Some(&Ws)
    }

    fn suite(&self, values: &Values, _target: Option<&Checked<'_>>) -> Option<Box<dyn Check>> {
        let spoken = values.word("dialect");
        let dialect = spoken.and_then(Dialect::by_name).unwrap_or_default();
        Some(Box::new(WebSocketSuite::new(dialect)))
    }

    fn plan(&self, values: Values) -> Result<Arc<dyn Plan>, Refusal> {
        let load = WsLoad::of(&values)?;
        let values = load.complete(values);
        Ok(Arc::new(WsPlan { values, load }))
    }

    fn works(&self) -> &'static [&'static dyn Work] {
        &WORKS
    }
}

/// A test with its parameters.
#[derive(Debug, Clone)]
struct WsPlan {
    values: Values,
    load: WsLoad,
}

impl WsPlan {
    /// The same with another value.
    fn row(&self, name: String, parameter: &str, value: Value) -> Result<Row, Refusal> {
        // A message in another format has another size.
        let values = self.values.clone().without("message_bytes");
        let plan = Ws.plan(values.with(parameter, value))?;
        Ok(Row {
            name,
            plan,
            load: None,
            phases: None,
        })
    }

    fn peer(&self, job: &Job) -> Peer {
        Peer {
            dialect: self.load.dialect,
            endpoint: job.to.clone(),
        }
    }
}

impl Plan for WsPlan {
    fn workload(&self) -> &'static dyn Workload {
        &Ws
    }

    fn values(&self) -> &Values {
        &self.values
    }

    fn unit(&self) -> LoadUnit {
        self.load.test.load_unit()
    }

    fn slo(&self) -> Slo {
        self.load.test.slo()
    }

    fn first_load(&self) -> u32 {
        match self.load.test {
            Test::Storm => 200,
            Test::Fanout => 100,
            Test::Throughput | Test::Matrix | Test::Formats => 10_000,
            Test::Ping | Test::Hold | Test::Limit => 400,
        }
    }

    fn demand(&self, load: u32, profile: &Profile) -> Demand {
        self.load.demand(load, profile)
    }

    fn told(&self) -> Told {
        let who = &self.load.credentials;
        // What a target must know to accept the client's tokens.
        let known = [
            ("WSE_SECRET", who.secret.expose()),
            ("WSE_ISSUER", &who.issuer),
            ("WSE_AUDIENCE", &who.audience),
        ];
        let known = known
            .into_iter()
            .filter(|_| self.load.dialect == Dialect::Wse);
        Told {
            path: self.load.default_path().into(),
            health_path: "/healthz",
            port: None,
            variables: known
                .map(|(name, value)| (name.to_owned(), value.to_owned()))
                .collect(),
            data: None,
        }
    }

    fn let_in(&self, to: Endpoint) -> Result<Endpoint, Refusal> {
        check(&to).map_err(|error| Refusal::new(error.to_string()))?;
        Ok(match self.load.dialect {
            Dialect::Echo => to,
            Dialect::Wse => {
                let since_1970 = SystemTime::now().duration_since(UNIX_EPOCH);
                let now_s = since_1970.map_or(0, |since| since.as_secs());
                wse::with_token(to, &self.load.credentials, now_s)
            }
        })
    }

    fn machines(&self, job: &Job, _profile: &Profile) -> Result<Box<dyn Drive>, Refusal> {
        let (load, peer) = (&self.load, self.peer(job));
        let period_ns = load.message_period_ns(job.load);
        Ok(match (load.test, load.dialect) {
            (Test::Ping | Test::Hold | Test::Limit, Dialect::Wse) => {
                machines(WsePings::new(peer.endpoint, load.period_ns))
            }
            (Test::Ping | Test::Hold | Test::Limit, Dialect::Echo) => {
                let content = WsLoad::ping_content(load.message_bytes)?;
                machines(EchoMessages::new(peer.endpoint, content, load.period_ns))
            }
            (Test::Throughput | Test::Matrix | Test::Formats, Dialect::Wse) => {
                let content = load.content()?;
                let messages = WseMessages::new(peer.endpoint, &content, load.format, period_ns);
                machines_with_findings(messages, |messages| {
                    let decode = Some(messages.decode_proof());
                    let found = Found {
                        decode,
                        ..Found::default()
                    };
                    found.findings()
                })
            }
            (Test::Throughput | Test::Matrix | Test::Formats, Dialect::Echo) => {
                let content = load.content()?;
                machines(EchoMessages::new(peer.endpoint, content, period_ns))
            }
            (Test::Storm, _) => machines(Storm::new(peer, load.arrivals(job.load), load.linger_ns)),
            (Test::Fanout, _) => {
                machines(Fanout::new(peer, job.load, load.message_bytes, period_ns))
            }
        })
    }

    fn frame_bytes(&self) -> Option<usize> {
        self.load.bytes_of_a_message()
    }

    fn source_addresses(&self) -> &[IpAddr] {
        &self.load.source_addresses
    }

    fn counters(&self) -> Option<Counters> {
        let counted = if self.load.frames_reach_the_application() {
            Counted::Messages {
                comes_back: self.load.dialect == Dialect::Echo,
            }
        } else {
            Counted::Sessions {
                arrive: self.load.test == Test::Storm,
            }
        };
        let names = MetricNames {
            frames: "ws_messages_received_total",
            partials: "ws_messages_sent_total",
            sessions: "ws_connections_accepted_total",
        };
        Some(Counters { names, counted })
    }

    fn is_bound_by_the_machine(&self) -> bool {
        true
    }

    fn looks_for_the_machines_limit(&self) -> bool {
        self.load.test == Test::Limit
    }

    fn afterwards(&self) -> Option<Afterwards> {
        self.load.closed_loop.then(|| Afterwards {
            plan: Arc::new(ClosedLoopPlan(self.clone())),
            grace_min_s: CLOSED_LOOP_GRACE_S,
            name: "closed-loop",
            asked_by: "--closed-loop",
        })
    }

    fn series(&self) -> Result<Option<Series>, Refusal> {
        let rows: Result<Vec<Row>, Refusal> = match self.load.test {
            Test::Matrix => SIZES_BYTES
                .into_iter()
                .map(|bytes| {
                    let name = format!("{} B", count(bytes));
                    self.row(name, "message_bytes", Value::Whole(bytes))
                })
                .collect(),
            Test::Formats => FORMATS
                .into_iter()
                .map(|format| {
                    let name = format.name().to_owned();
                    self.row(name.clone(), "format", Value::Word(name))
                })
                .collect(),
            _ => return Ok(None),
        };
        Ok(Some(Series {
            rows: rows?,
            asked_by: format!("--test {}", self.load.test.name()),
            one_at_a_time: match self.load.test {
                Test::Matrix => "one size at a time: --test throughput --message-bytes N",
                _ => "one format at a time: --test throughput --format F",
            },
            ..Series::default()
        }))
    }

    /// A session asks once whether its format is decoded. If it is not, the question is one more message for the
    /// application.
    fn asides(&self, findings: &Findings) -> u64 {
        Found::of(findings).decode.map_or(0, |proof| proof.asked)
    }

    fn outcome(&self, seen: &Seen<'_>) -> Outcome {
        account::outcome(&self.load, seen)
    }
}

/// The same test as a closed loop. Where it does not say otherwise, it is as the test is.
#[derive(Debug)]
struct ClosedLoopPlan(WsPlan);

impl Plan for ClosedLoopPlan {
    fn workload(&self) -> &'static dyn Workload {
        self.0.workload()
    }

    fn values(&self) -> &Values {
        self.0.values()
    }

    fn unit(&self) -> LoadUnit {
        self.0.unit()
    }

    fn slo(&self) -> Slo {
        self.0.slo()
    }

    fn demand(&self, load: u32, profile: &Profile) -> Demand {
        self.0.demand(load, profile)
    }

    fn told(&self) -> Told {
        self.0.told()
    }

    fn let_in(&self, to: Endpoint) -> Result<Endpoint, Refusal> {
        self.0.let_in(to)
    }

    fn machines(&self, job: &Job, profile: &Profile) -> Result<Box<dyn Drive>, Refusal> {
        let (load, peer) = (&self.0.load, self.0.peer(job));
        Ok(if load.pings() {
            let pings = ClosedPings::new(peer, PINGS_PER_CONNECTION);
            machines_with_findings(pings, |pings| Found::of_pings(&pings.told()).findings())
        } else {
            let flood = Flood::new(peer, &load.flood_content()?, profile.window());
            machines_with_findings(flood, |flood| Found::of_messages(&flood.told()).findings())
        })
    }
}
