//! Who may come in: tokens, and how a bad one is refused.

use plimsoll_conformance::Verdict;
use plimsoll_conformance::socket::Connection;
use plimsoll_core::secret::Secret;
use serde_json::Value;

use super::session::{lacks, next_of, now_s, open_as, token, without_token};
use super::{Case, Site, case};
use crate::check::talk::{PATIENCE, upgrade};
use crate::jwt::Credentials;
use crate::wse::AUTH_CLOSE_CODE;

/// All tokens here are made with the contract's default secret, so none of the cases runs against a URL.
pub(super) fn cases() -> Vec<Case> {
    [
        case(
            "token-in-cookie",
            "The upgrade request carries Cookie: access_token=<JWT>",
            "a session",
            |site| {
                let cookie = format!("access_token={}", token(&Credentials::default()));
                let how = with(site, "Cookie", cookie);
                open_as(site, &how).map(|_| "a session".to_owned())
            },
        ),
        case(
            "token-in-authorization",
            "The upgrade request may carry Authorization: Bearer <JWT> instead",
            "a session",
            |site| {
                let bearer = format!("Bearer {}", token(&Credentials::default()));
                let how = with(site, "Authorization", bearer);
                open_as(site, &how).map(|_| "a session".to_owned())
            },
        ),
        case(
            "token-absent",
            "A request without a token is refused after the 101 with AUTH_REQUIRED, then close 4401",
            "error AUTH_REQUIRED, then close 4401",
            |site| refused(site, &without_token(site), "AUTH_REQUIRED"),
        ),
        case(
            "token-garbage",
            "A bad token is refused after the 101 with AUTH_FAILED, then close 4401: it is no JWT",
            "error AUTH_FAILED, then close 4401",
            |site| refused(site, &with_cookie(site, "not.a.token"), "AUTH_FAILED"),
        ),
        bad(
            "token-other-secret",
            "another secret signed it",
            |good| Credentials {
                secret: Secret::new("another-secret-key-of-at-least-32-bytes"),
                ..good
            },
        ),
        bad("token-other-issuer", "its iss is another", |good| Credentials {
            issuer: "somebody".to_owned(),
            ..good
        }),
        bad("token-other-audience", "its aud is another", |good| Credentials {
            audience: "somebody".to_owned(),
            ..good
        }),
        bad("token-without-subject", "its sub is empty", |good| Credentials {
            subject: String::new(),
            ..good
        }),
        case(
            "token-expired",
            "A bad token is refused after the 101 with AUTH_FAILED, then close 4401: its exp is over",
            "error AUTH_FAILED, then close 4401",
            |site| {
                let old = Credentials::default().token(now_s() - 7200);
                refused(site, &with_cookie(site, &old), "AUTH_FAILED")
            },
        ),
        case(
            "token-changed",
            "A bad token is refused after the 101 with AUTH_FAILED, then close 4401: its signature is another's",
            "error AUTH_FAILED, then close 4401",
            |site| {
                let good = token(&Credentials::default());
                let other = token(&Credentials {
                    subject: "another-user".to_owned(),
                    ..Credentials::default()
                });
                let (claims, signature) = (good.rsplit_once('.'), other.rsplit_once('.'));
                let changed = claims
                    .zip(signature)
                    .map(|((claims, _), (_, signature))| format!("{claims}.{signature}"));
                let changed = changed.ok_or("a token has no dots")?;
                refused(site, &with_cookie(site, &changed), "AUTH_FAILED")
            },
        ),
        case(
            "token-refusal-fields",
            "The refusal is the text {c: WSE, t: error, p: {code, message, timestamp}, v: 1}",
            "all of them",
            refusal_fields,
        ),
    ]
    .map(Case::only_when_started)
    .into()
}

/// A token that differs from a good one in one way.
fn bad(id: &'static str, what: &str, change: fn(Credentials) -> Credentials) -> Case {
    Case::new(
        id,
        format!("A bad token is refused after the 101 with AUTH_FAILED, then close 4401: {what}"),
        "error AUTH_FAILED, then close 4401",
        &crate::check::setup::BASE,
        move |site| {
            let bad = token(&change(Credentials::default()));
            refused(site, &with_cookie(site, &bad), "AUTH_FAILED")
        },
    )
}

fn with(site: &Site<'_>, name: &'static str, value: String) -> Connection {
    Connection {
        headers: vec![(name, value)],
        ..without_token(site)
    }
}

fn with_cookie(site: &Site<'_>, token: &str) -> Connection {
    with(site, "Cookie", format!("access_token={token}"))
}

/// The error that a connection is refused with; then it must be closed.
fn refusal(site: &Site<'_>, how: &Connection) -> Result<(Value, String), String> {
    let mut socket = upgrade(site, how)?.accepted()?;
    let error = next_of(&mut socket, "error")?;
    let close = socket.expect_close(&[AUTH_CLOSE_CODE], PATIENCE)?;
    Ok((error, close))
}

fn refused(site: &Site<'_>, how: &Connection, code: &str) -> Verdict {
    let (error, close) = refusal(site, how)?;
    let seen = format!("error {}, then {close}", error["p"]["code"]);
    if error["p"]["code"] == code {
        Ok(seen)
    } else {
        Err(seen)
    }
}

fn refusal_fields(site: &Site<'_>) -> Verdict {
    let (error, _) = refusal(site, &without_token(site))?;
    let lacking = lacks(&error["p"], &["code", "message", "timestamp"]);
    if lacking.is_empty() && error["c"] == "WSE" && error["v"] == 1 {
        Ok(error.to_string())
    } else {
        Err(error.to_string())
    }
}
