//! One file per subcommand.

pub(crate) mod agent;
pub(crate) mod calibrate;
pub(crate) mod check;
pub(crate) mod compare;
pub(crate) mod doctor;
pub(crate) mod find;
pub(crate) mod fleet;
pub(crate) mod generate;
pub(crate) mod history;
pub(crate) mod list;
pub(crate) mod report;
pub(crate) mod run;
pub(crate) mod series;
pub(crate) mod serve;
