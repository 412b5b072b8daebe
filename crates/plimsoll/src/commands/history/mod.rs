//! `plimsoll history`: the results so far, how a target's load line changed, and whether the newest result is worse
//! than an earlier one.

mod against;
pub(crate) mod columns;
mod list;
mod pairing;
mod trend;

use std::process::ExitCode;
use std::time::SystemTime;

use plimsoll_report::history::{Filter, History, Kind, since};

use crate::args::HistoryArgs;
use crate::failure::Failure;
use crate::workloads::tellers;

pub(crate) fn run(args: &HistoryArgs) -> Result<ExitCode, Failure> {
    let filter = filter(args, SystemTime::now())?;
    let mut history = if args.rebuild {
        History::rebuild(&args.results, tellers())?
    } else {
        opened(args)?
    };
    let refreshed = history.refresh()?;
    if let Some(target) = &args.trend {
        trend::show(&history, target, &filter, args.json)?;
        return Ok(ExitCode::SUCCESS);
    }
    if let Some(baseline) = &args.against {
        return against::judge(args, baseline, &history, &filter);
    }
    list::show(&history, &filter, &refreshed.broken, args.json)?;
    Ok(ExitCode::SUCCESS)
}

/// Opens the history. New users have no such folder yet, so the error says what to do.
fn opened(args: &HistoryArgs) -> Result<History, Failure> {
    if !args.results.exists() {
        return Err(Failure::Usage(format!(
            "there is no folder {}; measure something first, or name the folder of results with --results",
            args.results.display()
        )));
    }
    Ok(History::open(&args.results, tellers())?)
}

fn filter(args: &HistoryArgs, now: SystemTime) -> Result<Filter, Failure> {
    let since = args.since.as_deref().map(|text| {
        since(text, now).ok_or_else(|| {
            Failure::Usage(format!(
                "--since {text}: give a date (2026-01-31), or how long ago (7d, 12h)"
            ))
        })
    });
    Ok(Filter {
        target: args.target.clone(),
        workload: args.workload.clone(),
        kind: args.kind.as_deref().and_then(Kind::by_word),
        since: since.transpose()?,
        vcpu: args.vcpu,
        limit: args.limit,
    })
}
