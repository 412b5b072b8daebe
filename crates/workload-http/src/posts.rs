//! Requests of another workload on this one's sessions: POSTs with its own body, by the clock, whose answers it judges
//! itself.

use std::sync::Arc;

use plimsoll_core::schedule::Spacing;
use plimsoll_workload::{Drive, Refusal, machines};

use crate::arrivals::Dispatch;
use crate::ask::Ask;
use crate::check::Protocol;
pub use crate::expect::Judge;
use crate::h1::{self, InvalidRequest, Method, Path, RequestSpec};
use crate::h2;
use crate::h2_session::H2Session;
use crate::machines::{Connections, Load};
use crate::schedule::Rates;
use crate::session::{H1Session, Shared, Speaks};

/// POSTs of one kind, as from clients that each ask once a second: each second has as many, at random times. They go to
/// whichever connection has been idle for the longest time. An answer that takes more than 2 s is a timeout.
#[derive(Debug)]
pub struct Posts<'a> {
    /// What the client speaks.
    pub protocol: Protocol,
    /// `name` or `name:port`, for the Host field or `:authority`.
    pub host: &'a str,
    /// The path.
    pub path: &'a str,
    /// Further fields.
    pub fields: &'a [(&'a str, &'a str)],
    /// The length of the body ([`h1::NumberedBody`]): it begins with the number of its request, so no two are the same.
    pub body_bytes: usize,
    /// Requests per second, in the warm-up as well.
    pub per_s: u32,
    /// The most requests at once on a connection of HTTP/2.
    pub streams: u32,
    /// Who knows what the answers must be.
    pub judge: Judge,
}

impl Posts<'_> {
    /// The session machines. A request that an idle connection lost is sent once more, so it must be one that changes
    /// nothing.
    ///
    /// # Errors
    /// There can be no such request.
    pub fn machines(&self) -> Result<Box<dyn Drive>, Refusal> {
        let spec = RequestSpec {
            method: Method::Post,
            path: Path::Fixed(self.path),
            host: self.host,
            fields: self.fields,
            body_bytes: Some(self.body_bytes),
            close: false,
        };
        let refused = |error: InvalidRequest| Refusal::new(error.to_string());
        Ok(match self.protocol {
            Protocol::H1 => {
                let template = h1::Template::new(&spec).map_err(refused)?;
                machines(self.connections::<H1Session>(template, 1))
            }
            Protocol::H2c => {
                let template = h2::Template::new(&spec).map_err(refused)?;
                machines(self.connections::<H2Session>(Arc::new([template]), self.streams))
            }
        })
    }

    fn connections<S: Speaks>(&self, template: S::Template, streams: u32) -> Connections<S> {
        let shared = Shared {
            ask: Ask::judged(self.judge.clone()),
            template,
            a_connection_each: false,
            may_ask_again: true,
        };
        let rates = Rates {
            measured: self.per_s,
            warm_up: self.per_s,
            spacing: Spacing::Poisson,
            whole_seconds: true,
        };
        Connections::new(shared, Load::Rates(rates), Dispatch::Pool, streams)
    }
}

#[cfg(test)]
mod tests {
    use plimsoll_core::latency::Series;
    use plimsoll_core::profile::{NS_PER_MS, NS_PER_S, Profile};
    use plimsoll_core::recorder::Recorder;
    use plimsoll_core::session::{Arrivals, Session, SessionMachines, Share};

    use super::*;

    fn posts(protocol: Protocol) -> Posts<'static> {
        Posts {
            protocol,
            host: "h:1",
            path: "/infer",
            fields: &[("x-cpu-passes", "4")],
            body_bytes: 29,
            per_s: 1_000,
            streams: 10,
            judge: Judge::new(|number, body| body == format!("{number}").as_bytes()),
        }
    }

    /// A window of 10 ms that begins at once.
    fn profile() -> Profile {
        Profile {
            ramp_s: 0.0,
            warm_up_s: 0.0,
            measured_s: 0.01,
            ..Profile::quick()
        }
    }

    #[test]
    fn both_protocols_have_machines_and_a_bad_host_has_none() {
        assert!(posts(Protocol::H1).machines().is_ok());
        assert!(posts(Protocol::H2c).machines().is_ok());
        let mut bad = posts(Protocol::H2c);
        bad.host = "a b";
        let refusal = bad.machines().err().expect("a refusal").to_string();
        assert!(refusal.contains("`a b`"), "{refusal}");
    }

    /// One connection: a request goes out with its number, waits its turn from its schedule, and its judge decides.
    #[test]
    fn an_answer_is_judged_with_its_number() {
        let posts = posts(Protocol::H1);
        let spec = RequestSpec {
            method: Method::Post,
            path: Path::Fixed(posts.path),
            host: posts.host,
            fields: posts.fields,
            body_bytes: Some(posts.body_bytes),
            close: false,
        };
        let template = h1::Template::new(&spec);
        let machines = posts.connections::<H1Session>(template.expect("a request"), 1);
        let profile = profile();
        let share = Share { index: 0, of: 1 };
        let mut arrivals = machines.arrivals(share, 1, &profile, 1).expect("arrivals");
        let arrivals: &mut dyn Arrivals<H1Session> = &mut arrivals;
        let mut session = machines.session(&machines.plan(0, 1, &profile, 1));
        let mut recorder = Recorder::default();
        session.connecting(0, &mut recorder);
        session.connected(0, &mut recorder);
        arrivals.look(0, &session);
        for (number, answer) in [(0, "0"), (1, "1"), (2, "7")] {
            let now_ns = NS_PER_S;
            assert_eq!(arrivals.next(now_ns, &mut recorder), Some(0));
            arrivals.hand_out(0, &mut session, &mut recorder);
            arrivals.look(0, &session);
            let transmit = session.transmit(now_ns).expect("a request");
            let digits = format!("{number:016x}");
            assert!(transmit.head.ends_with(digits.as_bytes()));
            assert_eq!(transmit.body, b"0123456789abc");
            session.sent(now_ns, &mut recorder);
            let answer = h1::answer(200, "OK", &[], answer.as_bytes(), false);
            session.received(now_ns + NS_PER_MS, &answer, &mut recorder);
            arrivals.look(0, &session);
        }
        let ledger = &recorder.ledger;
        assert_eq!((ledger.frames_answered, ledger.frames_errored), (2, 1));
        assert_eq!(ledger.reasons["wrong_body"], 1);
        let latency = recorder.interval.histogram(Series::NewestFromSchedule);
        assert!(latency.min() > 900_000, "from the schedule, in µs");
    }
}
