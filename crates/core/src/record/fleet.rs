//! What the agents of a fleet can drive.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Build, LoadUnit};

/// What the agents of a fleet can drive. Each calibrates its own client against a sink of its own, all at the same time.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FleetCalibration {
    /// Version of this schema.
    pub schema_version: u32,
    /// Name of the workload.
    pub workload: String,
    /// The agents, by their numbers.
    pub agents: Vec<CalibratedAgent>,
    /// What was measured of each kind of work, in the order measured.
    pub works: Vec<FleetWork>,
    /// How often bare loop and engine took turns on each agent.
    pub rounds: u32,
    /// How long each of them ran in a round.
    pub seconds: f64,
    /// How the engine waits for sockets.
    pub engine_backend: String,
    /// The build of Plimsoll that made this.
    pub build: Build,
    /// When the calibration began, RFC 3339 in UTC.
    pub started_at: String,
}

/// An agent whose client was calibrated.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CalibratedAgent {
    /// Its number, from 0.
    pub index: u32,
    /// The name of its machine.
    pub host: String,
    /// Its kernel.
    pub kernel: String,
    /// CPUs that it may use.
    pub cpus: usize,
    /// How many of them the client had. The sink had the last one, so a trial may have one more.
    pub client_cpus: usize,
    /// Whether client and sink shared a CPU, because the agent has no other: the costs include each other's disturbance.
    pub shares_cpu: bool,
    /// How late a sleep ends.
    pub timer_error_p99_us: f64,
}

impl CalibratedAgent {
    /// Its number and its machine, as texts name it.
    #[must_use]
    pub fn name(&self) -> String {
        format!("{} ({})", self.index, self.host)
    }
}

/// What a fleet can do of a kind of work.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FleetWork {
    /// What the clients do, in the words of their workload.
    pub work: String,
    /// What a load of this work counts.
    pub load_unit: LoadUnit,
    /// Payload of a message in bytes; `null` for connections.
    pub message_bytes: Option<u64>,
    /// Messages of a connection that are due together and sent with one write; `null` for connections.
    pub messages_per_write: Option<u32>,
    /// The highest load of which every agent drove an even part at once and was on time; `null` if there is none.
    pub on_time_load: Option<u32>,
    /// The highest send lag of an agent at `on_time_load`.
    pub send_lag_p99_us: Option<f64>,
    /// As many times the load of `least_agent` as there are agents: parts of a load are even, so it is what they should drive
    /// together. It is more than `on_time_load` if agents disturb each other.
    pub even_load: u32,
    /// The sum of the agents' own highest loads. A load that is divided evenly does not reach it, unless all are equal.
    pub load_sum: u32,
    /// The number of the agent whose own highest load is the lowest.
    pub least_agent: u32,
    /// What each agent measured, by their numbers.
    pub agents: Vec<AgentCost>,
}

/// What a kind of work costs one core of an agent, and how much of it the agent can do on all its cores.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct AgentCost {
    /// The number of the agent.
    pub index: u32,
    /// The load at which the costs were measured.
    pub load: u32,
    /// CPU time of the bare loop per message, echo or connection: median of the rounds.
    pub bare_cpu_us: f64,
    /// CPU time of the engine per message, echo or connection: median of the rounds.
    pub engine_cpu_us: f64,
    /// Engine / bare within a round: median of the rounds.
    pub ratio: f64,
    /// The highest load at which its client was tried on all its cores and was on time; `null` if it never was.
    pub on_time_load: Option<u32>,
    /// Send lag at `on_time_load`. If that is `null`, send lag at the lowest load tried.
    pub send_lag_p99_us: f64,
}

impl FleetWork {
    /// This work with the figures of the fleet as a whole, which follow from those of its agents. Nothing is known of what they
    /// do at once.
    #[must_use]
    pub fn summed(self) -> Self {
        let loads = self
            .agents
            .iter()
            .map(|agent| agent.on_time_load.unwrap_or(0));
        let least = self
            .agents
            .iter()
            .min_by_key(|agent| agent.on_time_load.unwrap_or(0));
        let least = least.map_or((0, 0), |agent| {
            (agent.index, agent.on_time_load.unwrap_or(0))
        });
        Self {
            load_sum: loads.fold(0, u32::saturating_add),
            least_agent: least.0,
            even_load: least.1.saturating_mul(self.of()),
            ..self
        }
    }

    /// How many agents there are.
    #[must_use]
    pub fn of(&self) -> u32 {
        u32::try_from(self.agents.len()).unwrap_or(u32::MAX)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn of(loads: &[Option<u32>]) -> FleetWork {
        let agents = (0..).zip(loads).map(|(index, load)| AgentCost {
            index,
            on_time_load: *load,
            ..AgentCost::default()
        });
        FleetWork {
            agents: agents.collect(),
            ..FleetWork::default()
        }
        .summed()
    }

    #[test]
    fn the_least_agent_decides_what_an_even_load_may_be() {
        let work = of(&[Some(3_000), Some(1_000), Some(2_000)]);
        assert_eq!(
            (work.load_sum, work.even_load, work.least_agent),
            (6_000, 3_000, 1)
        );
        assert_eq!((work.on_time_load, work.of()), (None, 3));
    }

    #[test]
    fn an_agent_that_was_never_on_time_drives_nothing() {
        let work = of(&[Some(3_000), None]);
        assert_eq!(
            (work.load_sum, work.even_load, work.least_agent),
            (3_000, 0, 1)
        );
        let nobody = of(&[]);
        assert_eq!((nobody.load_sum, nobody.even_load, nobody.of()), (0, 0, 0));
    }

    proptest! {
        /// The even load is never more than the sum, and the same if all agents are equal.
        #[test]
        fn an_even_load_is_at_most_the_sum(loads in prop::collection::vec(prop::option::of(0_u32..2_000_000), 1..50)) {
            let work = of(&loads);
            prop_assert!(work.even_load <= work.load_sum);
            let least = loads[work.least_agent as usize];
            prop_assert!(loads.iter().all(|load| load.unwrap_or(0) >= least.unwrap_or(0)));
            let equal = of(&vec![loads[0]; loads.len()]);
            prop_assert_eq!(equal.even_load, equal.load_sum);
        }
    }
}
