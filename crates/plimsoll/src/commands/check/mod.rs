//! `plimsoll check`: conformance to the contract, case by case.

mod all;
mod suites;

use std::collections::BTreeMap;
use std::process::ExitCode;

use plimsoll_conformance::location::Location;
use plimsoll_conformance::{CaseResult, Check, CheckReport, Level, Options, Subject};
use plimsoll_core::secret::{Secret, Secrets, redacted_url};
use plimsoll_host::isolation::{CpuList, Placement};
use plimsoll_host::signals::Stop;
use plimsoll_lab::build::build as build_target;
use plimsoll_lab::manifest::Manifest;
use plimsoll_report::ResultFolder;

use self::suites::{Place, Suites};
use crate::args::CheckArgs;
use crate::failure::Failure;
use crate::output::{self, say};
use crate::{build, secrets, setup};

pub(crate) fn run(args: &CheckArgs, stop: &Stop) -> Result<ExitCode, Failure> {
    let suites = Suites::of(args)?;
    // clap ignores a `requires` if its argument conflicts with one that is present.
    let token_given = args.token.is_some() || args.token_file.is_some();
    if token_given && args.which.url.is_none() {
        return Err(Failure::Usage(
            "--token and --token-file are only for a running server (--url); Plimsoll creates the token for targets that it starts".to_owned(),
        ));
    }
    if args.all {
        return all::run(args, &suites, stop);
    }
    if args.jobs.is_some() {
        return Err(Failure::Usage("--jobs needs --all".to_owned()));
    }
    let name = args.target.as_deref();
    let folder = || output::folder(&args.out, "check", &setup::subject_name(name, &args.which));
    let (folder, report) = if let Some(url) = &args.which.url {
        let url = plain_url(url)?;
        must_be_there(&suites, &url)?;
        (folder()?, of_url(args, &suites, url, stop)?)
    } else {
        let manifest = setup::manifest_of(name, &args.which)?;
        suites.must_fit(&manifest)?;
        let folder = folder()?;
        let report = target(args, &suites, &manifest, &folder, stop)?;
        (folder, report)
    };
    kept(&folder, &report)?;
    if args.out.json {
        output::print_json(&report)?;
    } else {
        say!("{}", counts(&report));
        say!("result: {}", folder.path().display());
    }
    Ok(code_of(&report, stop))
}

/// Checks a server that is already running. If it repeats the token, the report leaves that out.
fn of_url(
    args: &CheckArgs,
    suites: &Suites,
    url: String,
    stop: &Stop,
) -> Result<CheckReport, Failure> {
    let suite = suites.on_url()?;
    let token = token(args)?;
    let mut secrets = Secrets::default();
    token.iter().for_each(|token| secrets.add(token.expose()));
    secrets::warn_of_the_process_list();
    setup::proxies::note_that_they_are_ignored();
    let subject = Subject::Url {
        url,
        token: token.map(|token| token.expose().to_owned()),
    };
    let scrubbed = |case: &CaseResult| CaseResult {
        seen: secrets.scrub(&case.seen).into_owned(),
        ..case.clone()
    };
    let mut report = cases_told(args, stop, (&*suite, &subject, None), |case| {
        show(&scrubbed(case), args.out.json);
    });
    report.cases = report.cases.iter().map(scrubbed).collect();
    Ok(report)
}

/// The bearer token, from the flag, its file or the environment.
fn token(args: &CheckArgs) -> Result<Option<Secret>, Failure> {
    match &args.token {
        Some(token) => Ok(Some(token.clone())),
        None => secrets::in_file_or_environment(
            "--token-file",
            args.token_file.as_deref(),
            secrets::TOKEN_VARIABLE,
        ),
    }
}

/// The URL, which is also the subject's name. Only its host, port and path are used, so a URL with parts that may be secret
/// is rejected.
fn plain_url(url: &str) -> Result<String, Failure> {
    if url.contains(['@', '?']) {
        return Err(Failure::Usage(format!(
            "--url {}: a check uses only HOST, PORT and path; remove user, password and query, and pass a token with --token-file FILE",
            redacted_url(url)
        )));
    }
    Ok(url.to_owned())
}

/// Refuses a URL where no case could pass, whatever the server is: that would say nothing of it.
fn must_be_there(suites: &Suites, url: &str) -> Result<(), Failure> {
    let place = Location::of_url(url, suites.on_url()?.form());
    let place = place.map_err(|why| Failure::Usage(format!("--url {why}")))?;
    place.connect().map_err(|error| {
        Failure::Usage(format!(
            "nothing can be checked at {url}: {error}; start the server first, or correct --url"
        ))
    })
}

/// Writes the report and its renderings.
fn kept(folder: &ResultFolder, report: &CheckReport) -> Result<(), Failure> {
    let mut json = serde_json::to_value(report)
        .map_err(|error| Failure::Usage(format!("the report cannot be written: {error}")))?;
    json["build"] = serde_json::json!(build::of_this_program());
    folder.write_check(&json)?;
    output::render(folder.path())?;
    Ok(())
}

fn counts(report: &CheckReport) -> String {
    let mut text = format!(
        "{}: {} passed, {} failed, {} disturbed, {} not run",
        report.target, report.passed, report.failed, report.disturbed, report.skipped
    );
    let apart = [
        (report.failed_should, "not met that should be"),
        (report.deviations, "deviations by its target.toml"),
    ];
    for (count, what) in apart.into_iter().filter(|(count, _)| *count > 0) {
        text += &format!(", {count} {what}");
    }
    text
}

/// Checks a target, starting it as each case needs.
fn target(
    args: &CheckArgs,
    suites: &Suites,
    manifest: &Manifest,
    folder: &ResultFolder,
    stop: &Stop,
) -> Result<CheckReport, Failure> {
    let logs = folder.path().join("logs");
    build_target(manifest, &logs, stop)?;
    let placement = Placement::choose(1.0, &CpuList::allowed_to_us()?, None, None)?;
    let place = Place {
        placement: &placement,
        logs: &logs,
        stop,
    };
    let (suite, laboratory) = suites.on_target(manifest, &place)?;
    let subject = laboratory.subject();
    let deviations = Some(&manifest.deviations);
    Ok(cases_told(
        args,
        stop,
        (&*suite, &subject, deviations),
        |case| {
            show(case, args.out.json);
        },
    ))
}

/// Cases that a target does not pass by its own account, each with the reason.
type Deviations = BTreeMap<String, String>;

fn cases_told(
    args: &CheckArgs,
    stop: &Stop,
    (suite, subject, deviations): (&dyn Check, &Subject<'_>, Option<&Deviations>),
    mut on_case: impl FnMut(&CaseResult),
) -> CheckReport {
    let wanted = |id: &str| args.only.as_deref().is_none_or(|text| id.contains(text));
    let options = Options {
        only: Some(&wanted),
        quick: args.quick,
        stop: Some(stop),
        deviations,
        ..Options::default()
    };
    let report = suite.run(subject, &options, &mut on_case);
    if args.quick && !args.out.json {
        let ran = |id: &str| report.cases.iter().any(|case| case.id == id);
        let ids = suite.case_ids();
        for id in ids.iter().filter(|id| wanted(id) && !ran(id)) {
            say!("left out {id}: it takes a minute or so; run it without --quick");
        }
    }
    report
}

fn show(case: &CaseResult, json: bool) {
    if json {
        return;
    }
    let attempts = case.attempts.map(|times| format!(" (attempt {times})"));
    let attempts = attempts.unwrap_or_default();
    match (&case.skipped, &case.disturbed) {
        (Some(reason), _) => say!("not run  {}: {} ({reason})", case.id, case.title),
        _ if case.pass => {
            say!("ok       {}: {}{attempts}", case.id, case.title);
            if case.deviation.is_some() {
                say!("           its target.toml lists it under [deviations]: remove it there");
            }
        }
        (None, None) => {
            let word = match (&case.deviation, case.level) {
                (_, Level::Should) => "should  ",
                (Some(_), Level::Must) => "deviates",
                (None, Level::Must) => "FAILED  ",
            };
            say!("{word} {}: {}{attempts}", case.id, case.title);
            not_as_expected(case);
        }
        (None, Some(why)) => {
            say!("DISTURBED {}: {}{attempts}", case.id, case.title);
            not_as_expected(case);
            say!("           inconclusive: {why}");
        }
    }
}

fn not_as_expected(case: &CaseResult) {
    say!("           expected: {}", case.expected);
    say!("           seen:     {}", case.seen);
    if let Some(reason) = &case.deviation {
        say!("           reason:   {reason}");
    }
}

fn code_of(report: &CheckReport, stop: &Stop) -> ExitCode {
    ExitCode::from(if stop.requested() {
        130
    } else {
        code_number_of(report)
    })
}

fn code_number_of(report: &CheckReport) -> u8 {
    if report.failed > 0 {
        1
    } else if report.is_in_doubt() {
        3
    } else if report.passed == 0 {
        // Nothing ran, so nothing is known.
        2
    } else {
        0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report(level: Level, deviation: Option<&str>, disturbed: bool) -> CheckReport {
        let case = CaseResult {
            id: "a".to_owned(),
            title: "it answers".to_owned(),
            level,
            pass: false,
            expected: "an answer".to_owned(),
            seen: "none".to_owned(),
            skipped: None,
            disturbed: disturbed.then(|| "kept for 9 ms".to_owned()),
            deviation: deviation.map(str::to_owned),
            attempts: None,
        };
        let apart = !case.decides() && !disturbed;
        CheckReport {
            target: "a".to_owned(),
            passed: 4,
            failed: usize::from(case.failed() && case.decides()),
            failed_should: usize::from(apart && !level.is_must()),
            deviations: usize::from(apart && level.is_must()),
            skipped: 0,
            disturbed: usize::from(disturbed),
            cases: vec![case],
        }
    }

    #[test]
    fn only_what_decides_changes_the_exit_code() {
        let code = |level, why, disturbed| code_number_of(&report(level, why, disturbed));
        assert_eq!(code(Level::Must, None, false), 1);
        assert_eq!(code(Level::Must, None, true), 3);
        for disturbed in [false, true] {
            assert_eq!(code(Level::Should, None, disturbed), 0);
            assert_eq!(code(Level::Must, Some("why"), disturbed), 0);
        }
    }

    #[test]
    fn what_does_not_decide_is_counted_apart() {
        let told = counts(&report(Level::Should, None, false));
        let usual = "a: 4 passed, 0 failed, 0 disturbed, 0 not run";
        assert_eq!(told, format!("{usual}, 1 not met that should be"));
        let told = counts(&report(Level::Must, Some("why"), false));
        assert_eq!(told, format!("{usual}, 1 deviations by its target.toml"));
        let told = counts(&report(Level::Must, None, false));
        assert_eq!(told, usual.replace("0 failed", "1 failed"));
    }
}
