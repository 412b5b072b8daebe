//! What a result folder holds: the records from which every rendering is made, and which other tools read.
//!
//! The JSON schema is generated from these types, checked in, and tested. A change of meaning raises
//! [`SCHEMA_VERSION`]. A field that was added later has a default, so that older results can still be read.

mod bracket;
mod build;
mod calibration;
mod comparison;
mod disk;
mod escalation;
mod fleet;
mod goals;
mod inference;
mod json;
mod live;
mod load_unit;
mod network;
mod plan;
mod probe;
mod ranking;
mod resources;
mod second;
mod sections;
mod tls;
mod trial;

pub use bracket::{
    Baseline, Bracket, CostPoint, Edge, LoadClass, LoadEvidence, Tail, TrialSummary,
};
pub use build::Build;
pub use calibration::{Calibration, ClientCost, ClientCosts, CostOverTls, Spread};
pub use comparison::{Carried, Comparison, Conclusion, CostAccount, LoadCosts, Pair, Side};
pub use disk::{BlockDevice, DiskProbe, FileSystem, Storage};
pub use escalation::{Collapse, CollapseSign, Escalation, Knee};
pub use fleet::{AgentCost, CalibratedAgent, FleetCalibration, FleetWork};
pub use goals::{Bound, Finding, Goal, Goals, Outcome};
pub use inference::{
    EndedBy, Holding, InferenceCalibration, InferenceLoad, ServerUse, ServerWords,
};
pub use json::Json;
pub use live::{Live, LiveBracket, LiveCommand, LiveEnded, LiveGate, LivePhases, LiveTrial};
pub use load_unit::LoadUnit;
pub use network::{Network, NetworkEnd, NetworkMode, NetworkReceive};
pub use plan::SearchPlan;
pub use probe::{MedianProbe, Moved, Probe, ProbeFigure, Probes};
pub use ranking::{CostAtLoad, LeftOut, RankedTarget, Ranking};
pub use resources::{
    Agent, BeyondCharged, Client, CompanionWindow, MemoryAt, Observer, ProcessResources,
    SocketResources, TargetMemory, TargetResources,
};
pub use second::{Phase, Second};
pub use sections::Sections;
pub use tls::Tls;
pub use trial::{
    Drift, Environment, GateResult, Goodput, Parameters, SanityCheck, SloVerdict, Slope, Target,
    Trial, Verdict,
};

/// Schema version of the records in this module.
pub const SCHEMA_VERSION: u32 = 1;
