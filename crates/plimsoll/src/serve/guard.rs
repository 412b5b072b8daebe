//! Decides which requests are answered.
//!
//! A page of another site can make a browser send us a request. If its own host name leads here, it could even read the
//! answer. So the requested host must be one of ours. If others than this machine can reach us, we also require a
//! token.

use std::hint::black_box;
use std::net::IpAddr;
use std::sync::Arc;

use axum::extract::{Query, Request, State};
use axum::http::header::{ALLOW, AUTHORIZATION, COOKIE, HOST, SET_COOKIE, WWW_AUTHENTICATE};
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, Uri};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};

use super::pages::frame;
use super::problem::Problem;
use super::{STYLE, Site, harden};

/// The shortest token that a user may choose.
const TOKEN_MIN: usize = 16;

/// A secret that requests must present.
#[derive(Clone)]
pub(crate) struct Token(String);

/// Hides the secret, so that no message contains it by accident.
impl std::fmt::Debug for Token {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Token")
    }
}

impl Token {
    /// A token that the user chose; `None` if it is too short, or has a character with a meaning in an address or a
    /// cookie.
    pub(crate) fn chosen(text: &str) -> Option<Self> {
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_';
        let fits = text.len() >= TOKEN_MIN && text.bytes().all(plain);
        fits.then(|| Self(text.to_owned()))
    }

    /// A token made of random bytes.
    pub(crate) fn of_random(bytes: [u8; 16]) -> Self {
        Self(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
    }

    /// The token as it appears in an address.
    pub(crate) fn text(&self) -> &str {
        &self.0
    }

    /// Whether the text is this token. How long this takes says nothing about where the two differ.
    fn is(&self, text: &str) -> bool {
        let (ours, theirs) = (self.0.as_bytes(), text.as_bytes());
        if ours.len() != theirs.len() {
            return false;
        }
        let pairs = ours.iter().zip(theirs);
        black_box(pairs.fold(0, |differing, (a, b)| differing | black_box(a ^ b))) == 0
    }
}

/// Decides which requests are answered.
#[derive(Debug)]
pub(crate) struct Guard {
    /// Host names by which we may be addressed, in lower case.
    hosts: Vec<String>,
    /// Whether any IP address is accepted: we listen on all of them, and only a name can be made to lead here by
    /// somebody else.
    any_address: bool,
    token: Option<Token>,
    /// Name of the cookie. It contains the port, because the ports of a machine share their cookies.
    cookie: String,
}

/// What happens to a request.
#[derive(Debug, PartialEq, Eq)]
enum Admission {
    Enter,
    /// The token was in the address; from now on a cookie holds it. Contains the address that the request was for.
    Entered(String),
    Refused(Problem),
}

impl Guard {
    /// For a listener at that address. `name` is the host as the user wrote it.
    pub(crate) fn new(name: &str, address: IpAddr, port: u16, token: Option<Token>) -> Self {
        let name = name.trim_matches(|c| c == '[' || c == ']');
        let hosts = ["localhost", "127.0.0.1", "::1", name].map(str::to_ascii_lowercase);
        let mut hosts = hosts.to_vec();
        hosts.push(address.to_string());
        Self {
            hosts,
            any_address: address.is_unspecified(),
            token,
            cookie: format!("plimsoll-token-{port}"),
        }
    }

    fn judge(&self, method: &Method, uri: &Uri, headers: &HeaderMap) -> Admission {
        if !self.is_ours(headers) {
            return Admission::Refused(Problem::new(
                StatusCode::MISDIRECTED_REQUEST,
                "this host name is not one of ours; use the address that plimsoll serve printed",
            ));
        }
        if *method != Method::GET {
            let text = "only GET requests are allowed";
            return Admission::Refused(Problem::new(StatusCode::METHOD_NOT_ALLOWED, text));
        }
        let Some(token) = &self.token else {
            return Admission::Enter;
        };
        // The refusing page uses it, and nothing in it is secret.
        if uri.path() == STYLE {
            return Admission::Enter;
        }
        let in_address = Query::<Vec<(String, String)>>::try_from_uri(uri)
            .map(|Query(parameters)| parameters)
            .unwrap_or_default()
            .into_iter()
            .find_map(|(name, value)| (name == TOKEN).then_some(value));
        let refused = Admission::Refused(Problem::new(
            StatusCode::UNAUTHORIZED,
            "the token is missing or wrong; use the address that plimsoll serve printed",
        ));
        match in_address {
            Some(shown) if token.is(&shown) => Admission::Entered(without_token(uri)),
            Some(_) => refused,
            None if self.shows(token, headers) => Admission::Enter,
            None => refused,
        }
    }

    /// Whether exactly one host was requested, and it is one of ours. The port does not matter: a tunnel has another.
    fn is_ours(&self, headers: &HeaderMap) -> bool {
        let mut asked = headers.get_all(HOST).iter();
        let (Some(host), None) = (asked.next(), asked.next()) else {
            return false;
        };
        let Some(name) = host.to_str().ok().and_then(name_of) else {
            return false;
        };
        let name = name.to_ascii_lowercase();
        self.hosts.contains(&name) || (self.any_address && name.parse::<IpAddr>().is_ok())
    }

    /// Whether the token is in a header.
    fn shows(&self, token: &Token, headers: &HeaderMap) -> bool {
        let bearers = headers.get_all(AUTHORIZATION).iter();
        let mut bearers = bearers.filter_map(|value| value.to_str().ok()?.strip_prefix("Bearer "));
        let cookies = headers.get_all(COOKIE).iter();
        let mut cookies = cookies
            .filter_map(|value| value.to_str().ok())
            .flat_map(|value| value.split(';'))
            .filter_map(|cookie| cookie.trim().split_once('='))
            .filter_map(|(name, value)| (name == self.cookie).then_some(value));
        bearers.any(|shown| token.is(shown)) || cookies.any(|shown| token.is(shown))
    }
}

/// The query parameter that holds the token.
const TOKEN: &str = "token";

/// The name in a `Host` header, without the port. `None` when it is not one.
fn name_of(host: &str) -> Option<&str> {
    let (name, port) = match host.strip_prefix('[') {
        Some(rest) => rest.split_once(']')?,
        None => host.split_at(host.find(':').unwrap_or(host.len())),
    };
    let is_port = |port: &str| {
        let digits = port.bytes().all(|byte| byte.is_ascii_digit());
        (1..=5).contains(&port.len()) && digits
    };
    let fits = port.is_empty() || port.strip_prefix(':').is_some_and(is_port);
    (fits && !name.is_empty()).then_some(name)
}

/// The address without the token. It stays on this site, whatever was requested: an address that begins with two
/// slashes would be another host.
fn without_token(uri: &Uri) -> String {
    let path = match uri.path().as_bytes() {
        [b'/', b'/' | b'\\', ..] => "/",
        [b'/', ..] => uri.path(),
        _ => "/",
    };
    let others = uri.query().unwrap_or_default().split('&');
    let others: Vec<&str> = others
        .filter(|pair| !pair.is_empty() && pair.split('=').next() != Some(TOKEN))
        .collect();
    match others.as_slice() {
        [] => path.to_owned(),
        others => format!("{path}?{}", others.join("&")),
    }
}

/// Runs before all routes.
pub(super) async fn guard(State(site): State<Arc<Site>>, request: Request, next: Next) -> Response {
    let admission = site
        .guard
        .judge(request.method(), request.uri(), request.headers());
    let mut response = match admission {
        Admission::Enter => next.run(request).await,
        Admission::Entered(to) => entered(&site.guard, &to),
        Admission::Refused(problem) => refused(problem),
    };
    harden(&mut response);
    response
}

fn refused(problem: Problem) -> Response {
    let header = match problem.status {
        StatusCode::UNAUTHORIZED => Some((WWW_AUTHENTICATE, "Bearer")),
        StatusCode::METHOD_NOT_ALLOWED => Some((ALLOW, "GET")),
        _ => None,
    };
    let mut response = problem.into_response();
    if let Some((name, value)) = header {
        let value = HeaderValue::from_static(value);
        response.headers_mut().insert(name, value);
    }
    response
}

/// Sets the cookie and continues. Uses a page and not a redirect: a browser that came here from another site would not
/// send the cookie to where it is redirected.
fn entered(guard: &Guard, to: &str) -> Response {
    let onward = format!("0; url={to}");
    let html = frame::bare(
        "Plimsoll",
        &[("http-equiv", "refresh"), ("content", &onward)],
        |html| {
            html.inside("p", &[], |html| html.element("a", &[("href", to)], "Go on"));
        },
    );
    let mut response = super::page(html);
    let token = guard.token.as_ref().map_or("", Token::text);
    let cookie = format!(
        "{}={token}; HttpOnly; SameSite=Strict; Path=/",
        guard.cookie
    );
    // A token has only characters that a header allows.
    if let Ok(cookie) = HeaderValue::from_str(&cookie) {
        response.headers_mut().insert(SET_COOKIE, cookie);
    }
    response
}

#[cfg(test)]
mod tests {
    use std::net::{Ipv4Addr, Ipv6Addr};

    use super::*;

    const SECRET: &str = "0123456789abcdef0123456789abcdef";

    fn local() -> Guard {
        Guard::new("127.0.0.1", Ipv4Addr::LOCALHOST.into(), 7878, None)
    }

    fn with_token() -> Guard {
        let token = Token::chosen(SECRET);
        Guard::new("0.0.0.0", Ipv4Addr::UNSPECIFIED.into(), 7878, token)
    }

    fn headers(pairs: &[(&'static str, &str)]) -> HeaderMap {
        let header = |(name, value): &(&'static str, &str)| {
            let value = HeaderValue::from_str(value).expect("a value");
            (axum::http::HeaderName::from_static(name), value)
        };
        let mut headers = HeaderMap::new();
        for (name, value) in pairs.iter().map(header) {
            headers.append(name, value);
        }
        headers
    }

    fn judged(guard: &Guard, uri: &str, pairs: &[(&'static str, &str)]) -> Result<String, u16> {
        let uri: Uri = uri.parse().expect("an address");
        match guard.judge(&Method::GET, &uri, &headers(pairs)) {
            Admission::Enter => Ok(String::new()),
            Admission::Entered(to) => Ok(to),
            Admission::Refused(problem) => Err(problem.status.as_u16()),
        }
    }

    #[test]
    fn only_names_of_ours_are_answered() {
        let guard = local();
        for host in [
            "localhost",
            "LOCALHOST:7878",
            "127.0.0.1:7878",
            "127.0.0.1:1",
            "[::1]:7878",
            "[::1]",
        ] {
            assert_eq!(
                judged(&guard, "/", &[("host", host)]),
                Ok(String::new()),
                "{host}"
            );
        }
        for host in [
            "",
            ":7878",
            "evil.example",
            "evil.example:7878",
            "localhost.evil.example",
            "127.0.0.1.evil.example:7878",
            "localhost:7878:1",
            "localhost:x",
            "localhost:",
            "[::1",
            "[::1]x",
            "::1",
            "127.0.0.2",
            "user@localhost",
        ] {
            assert_eq!(judged(&guard, "/", &[("host", host)]), Err(421), "{host}");
        }
        assert_eq!(judged(&guard, "/", &[]), Err(421));
        let two = [("host", "localhost"), ("host", "evil.example")];
        assert_eq!(judged(&guard, "/", &two), Err(421));
    }

    #[test]
    fn the_address_that_is_listened_on_is_ours_too() {
        let guard = Guard::new(
            "[fd00::7]",
            Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, 7).into(),
            1,
            None,
        );
        assert!(judged(&guard, "/", &[("host", "[fd00::7]:1")]).is_ok());
        assert!(judged(&guard, "/", &[("host", "[fd00::8]:1")]).is_err());
        let guard = Guard::new("buildbox", Ipv4Addr::new(10, 0, 0, 7).into(), 1, None);
        assert!(judged(&guard, "/", &[("host", "BuildBox:1")]).is_ok());
        assert!(judged(&guard, "/", &[("host", "10.0.0.7:1")]).is_ok());
        let bearer = format!("Bearer {SECRET}");
        let bearer = ("authorization", bearer.as_str());
        let everywhere = with_token();
        assert!(judged(&everywhere, "/", &[("host", "10.9.9.9:1"), bearer]).is_ok());
        assert_eq!(
            judged(&everywhere, "/", &[("host", "evil.example"), bearer]),
            Err(421)
        );
    }

    #[test]
    fn only_reading_is_allowed() {
        let uri = Uri::from_static("/");
        for method in [
            Method::POST,
            Method::PUT,
            Method::DELETE,
            Method::HEAD,
            Method::OPTIONS,
        ] {
            let judged = local().judge(&method, &uri, &headers(&[("host", "localhost")]));
            let Admission::Refused(problem) = judged else {
                panic!("{method} is answered");
            };
            assert_eq!(problem.status, StatusCode::METHOD_NOT_ALLOWED);
        }
    }

    #[test]
    fn the_token_is_shown_in_the_address_in_a_cookie_or_in_a_header() {
        let guard = with_token();
        let host = ("host", "127.0.0.1:7878");
        let cookie = format!("other=1; plimsoll-token-7878={SECRET}");
        assert_eq!(
            judged(&guard, "/", &[host, ("cookie", &cookie)]),
            Ok(String::new())
        );
        let bearer = format!("Bearer {SECRET}");
        assert_eq!(
            judged(&guard, "/", &[host, ("authorization", &bearer)]),
            Ok(String::new())
        );
        let address = format!("/result/a%20b?kind=find&token={SECRET}&since=7d");
        assert_eq!(
            judged(&guard, &address, &[host]),
            Ok("/result/a%20b?kind=find&since=7d".to_owned())
        );
        for (uri, header) in [
            ("/", ("cookie", "plimsoll-token-7878=")),
            (
                "/",
                (
                    "cookie",
                    "plimsoll-token-7878=0123456789abcdef0123456789abcdee",
                ),
            ),
            (
                "/",
                (
                    "cookie",
                    "plimsoll-token-1=0123456789abcdef0123456789abcdef",
                ),
            ),
            (
                "/",
                ("authorization", "Basic 0123456789abcdef0123456789abcdef"),
            ),
            ("/", ("authorization", "Bearer 0123456789abcdef")),
            ("/?token=", ("cookie", "x=y")),
            ("/?token=%FF", ("cookie", "x=y")),
            // A wrong token in the address is refused, whatever the cookie says.
            ("/?token=wrong", ("cookie", cookie.as_str())),
        ] {
            assert_eq!(
                judged(&guard, uri, &[host, header]),
                Err(401),
                "{uri} {header:?}"
            );
        }
    }

    #[test]
    fn one_stays_on_this_site() {
        let to = |uri: &'static str| without_token(&Uri::from_static(uri));
        assert_eq!(to("/?token=x"), "/");
        assert_eq!(to("//evil.example/?token=x"), "/");
        assert_eq!(to("/live/a?x=1&token=x&token=y"), "/live/a?x=1");
        assert_eq!(to("/?tokens=1"), "/?tokens=1");
    }

    #[test]
    fn a_token_is_long_plain_and_never_in_a_message() {
        assert!(Token::chosen("short").is_none());
        assert!(Token::chosen("0123456789abcdef; Path=/x").is_none());
        assert!(Token::chosen("0123456789abcdeü").is_none());
        let made = Token::of_random([0xab; 16]);
        assert_eq!(made.text(), "ab".repeat(16));
        assert!(Token::chosen(made.text()).is_some());
        assert!(made.is(&"ab".repeat(16)) && !made.is("") && !made.is(&"ab".repeat(17)));
        assert!(!format!("{made:?}").contains("ab"));
    }
}
