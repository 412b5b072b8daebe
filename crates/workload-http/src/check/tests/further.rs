//! The defects of what a server bounds, of its life, and of HTTP/2.

use super::{Defect, each_is_shown, ids};
use crate::check::{Offer, Protocol};

/// Each defect, the cases that must show it, and one that is not about it.
#[rustfmt::skip]
pub(super) const SHOWN_BY: &[(Defect, &[&str], &str)] = &[
    (Defect::TakesLargeHeads, &["limits-large-field"], "limits-many-fields"),
    (Defect::TakesManyFields, &["limits-many-fields"], "limits-large-field"),
    (Defect::OneHoldsUpAll, &["limits-unfinished-heads", "limits-unfinished-bodies"], "routes-root"),
    (Defect::NeverGivesUp, &["limits-unfinished-heads-closed", "limits-unfinished-bodies-closed"], "limits-slow-body"),
    (Defect::GivesUpSlowClients, &["limits-slow-body"], "routes-sum"),
    (Defect::KeepsEveryAnswer, &["limits-deaf-clients"], "routes-root"),
    (Defect::GaugeNeverFalls, &["limits-vanished"], "routes-root"),
    (Defect::SaysNoVersion, &["life-start-line"], "life-ready"),
    (Defect::ReadyTooEarly, &["life-ready"], "life-start-line"),
    (Defect::OneClientPerWorker, &["life-workers"], "life-ready"),
    (Defect::DropsInFlight, &["life-drain-in-flight"], "life-drain-idle"),
    (Defect::AnnouncesNoClose, &["life-drain-in-flight"], "life-drain-idle"),
    (Defect::KeepsIdle, &["life-drain-idle"], "life-drain-in-flight"),
    (Defect::ExitsWith1, &["life-drain-in-flight", "life-drain-idle", "life-drain-timeout"], "life-drain-refuses"),
    (Defect::KeepsAccepting, &["life-drain-refuses"], "life-drain-idle"),
    (Defect::WaitsForEver, &["life-drain-timeout"], "life-drain-idle"),
    (Defect::TakesAnyValue, &["bad-value-port", "bad-value-worker-threads", "bad-value-drain-timeout-ms", "bad-value-max-body-bytes"], "life-ready"),
];

/// The same of HTTP/2.
#[rustfmt::skip]
const SHOWN_BY_H2: &[(Defect, &[&str], &str)] = &[
    (Defect::H2BodyToHead, &["h2c-routes"], "h2c-ping"),
    (Defect::JsonLosesBits, &["routes-json"], "h2c-routes"),
    (Defect::ForgetsTheLast, &["h2c-routes", "h2c-streams", "h2c-large-body"], "h2c-ping"),
    (Defect::H2TenStreams, &["h2c-streams"], "h2c-routes"),
    (Defect::MixesClients, &["h2c-streams"], "h2c-ping"),
    (Defect::H2PongOfZeros, &["h2c-ping"], "h2c-routes"),
    (Defect::H2NoContinuation, &["h2c-continuation"], "h2c-routes"),
    (Defect::H2KeepsTable, &["h2c-table-size"], "h2c-own-table-size"),
    (Defect::H2KnowsNoResize, &["h2c-own-table-size"], "h2c-table-size"),
    (Defect::H2PaddingIsData, &["h2c-many-data"], "h2c-large-body"),
    (Defect::H2OpensNoWindow, &["h2c-large-body"], "h2c-many-data"),
    (Defect::H2ResetEndsAll, &["h2c-reset-of-a-request", "h2c-reset-of-an-answer"], "h2c-routes"),
    (Defect::H2IgnoresWindows, &["h2c-window-of-a-byte", "h2c-window-of-the-connection"], "h2c-ping"),
    (Defect::H2WaitsForRoom, &["h2c-window-of-a-byte"], "h2c-window-of-the-connection"),
    (Defect::H2NoGoaway, &["h2c-goaway"], "h2c-routes"),
    (Defect::DropsInFlight, &["h2c-goaway"], "h2c-routes"),
    (Defect::TakesAnyValue, &["bad-value-h2-port"], "h2c-routes"),
];

/// A target that speaks both.
fn of_both() -> Offer {
    Offer {
        protocols: Protocol::ALL.to_vec(),
        h2_port: true,
        ..Offer::default()
    }
}

#[test]
fn each_further_defect_fails_the_cases_that_are_about_it() {
    each_is_shown(&Offer::default(), SHOWN_BY);
}

#[test]
fn each_defect_of_h2c_fails_the_cases_that_are_about_it() {
    each_is_shown(&of_both(), SHOWN_BY_H2);
}

#[test]
fn each_case_of_h2c_has_a_defect_that_fails_it() {
    let shown: Vec<&str> = SHOWN_BY_H2
        .iter()
        .flat_map(|(_, ids, _)| *ids)
        .copied()
        .collect();
    for id in ids(of_both()).iter().filter(|id| id.starts_with("h2c-")) {
        assert!(shown.contains(&id.as_str()), "no defect fails {id}");
    }
    let plain = ids(Offer::default());
    assert!(plain.iter().all(|id| !id.contains("h2")), "{plain:?}");
}

#[test]
fn an_honest_server_of_both_passes_every_case() {
    super::passes_every_case(of_both());
}

#[test]
fn an_honest_server_of_files_over_h2c_passes_every_case_that_it_has() {
    super::passes_every_case(Offer {
        protocols: Protocol::ALL.to_vec(),
        ..Offer::of_infrastructure()
    });
}
