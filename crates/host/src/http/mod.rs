//! One HTTP/1.1 request to a program of ours or a target, with a timeout, and the Prometheus text format.

mod prometheus;

use std::collections::BTreeSet;
use std::net::{SocketAddr, ToSocketAddrs};
use std::time::Duration;

pub use prometheus::{Metrics, Series};

use crate::error::{Error, Result};

/// Larger bodies are rejected. Nothing that we ask for comes near this size.
const BODY_MAX_BYTES: u64 = 16 * 1024 * 1024;

/// An answer, whatever its status.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Response {
    /// The status code.
    pub status: u16,
    /// The headers, with names in lower case, in the order received.
    pub headers: Vec<(String, String)>,
    /// The body.
    pub body: String,
}

impl Response {
    /// The first header of this name (in lower case).
    #[must_use]
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers
            .iter()
            .find(|(header, _)| header == name)
            .map(|(_, value)| value.as_str())
    }
}

/// `GET url`.
///
/// # Errors
/// No answer within `timeout`. Any status is an answer.
pub fn get(url: &str, timeout: Duration) -> Result<Response> {
    let answer = agent(timeout).get(url).call();
    finish("GET", url, answer)
}

/// `POST url` with this body and content type.
///
/// # Errors
/// As [`get`].
pub fn post(url: &str, content_type: &str, body: &[u8], timeout: Duration) -> Result<Response> {
    let answer = agent(timeout)
        .post(url)
        .content_type(content_type)
        .send(body);
    finish("POST", url, answer)
}

/// `PUT url` with this body and content type.
///
/// # Errors
/// As [`get`].
pub fn put(url: &str, content_type: &str, body: &[u8], timeout: Duration) -> Result<Response> {
    let answer = agent(timeout)
        .put(url)
        .content_type(content_type)
        .send(body);
    finish("PUT", url, answer)
}

/// Like [`get`], but accepts only status 200. Returns the body.
///
/// # Errors
/// As [`get`], or another status.
pub fn get_ok(url: &str, timeout: Duration) -> Result<String> {
    let response = get(url, timeout)?;
    if response.status == 200 {
        Ok(response.body)
    } else {
        Err(failed(
            "GET",
            url,
            &format!(
                "answered {}: {}",
                response.status,
                first_line(&response.body)
            ),
        ))
    }
}

/// This URL for each address of its name, in order: behind one name there may be several servers.
///
/// # Errors
/// It is no `http://` URL, or its name has no address.
pub fn each_address(url: &str) -> Result<Vec<String>> {
    let refused = |text: &str| failed("GET", url, text);
    let rest = url.strip_prefix("http://");
    let rest = rest.ok_or_else(|| refused("it does not begin with http://"))?;
    let (authority, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
    let found = authority
        .to_socket_addrs()
        .or_else(|_| format!("{authority}:80").to_socket_addrs());
    let addresses: BTreeSet<SocketAddr> = found
        .map_err(|error| refused(&error.to_string()))?
        .collect();
    let path = path.trim_end_matches('/');
    let each = addresses
        .iter()
        .map(|address| format!("http://{address}{path}"));
    Ok(each.collect())
}

/// A new agent for each request, and so a new connection. A target that is stopped between two requests must not leave
/// a dead one.
fn agent(timeout: Duration) -> ureq::Agent {
    ureq::Agent::config_builder()
        .timeout_global(Some(timeout))
        .http_status_as_error(false)
        .max_redirects(0)
        // We talk only to programs of ours and to targets. A proxy in the user's environment is not meant for them.
        .proxy(None)
        .build()
        .into()
}

fn finish(
    method: &'static str,
    url: &str,
    answer: std::result::Result<ureq::http::Response<ureq::Body>, ureq::Error>,
) -> Result<Response> {
    let mut answer = answer.map_err(|error| failed(method, url, &error.to_string()))?;
    let body = answer
        .body_mut()
        .with_config()
        .limit(BODY_MAX_BYTES)
        .read_to_vec();
    let body = body.map_err(|error| failed(method, url, &format!("the body: {error}")))?;
    let text =
        |value: &ureq::http::HeaderValue| String::from_utf8_lossy(value.as_bytes()).into_owned();
    Ok(Response {
        status: answer.status().as_u16(),
        headers: answer
            .headers()
            .iter()
            .map(|(name, value)| (name.as_str().to_owned(), text(value)))
            .collect(),
        body: String::from_utf8_lossy(&body).into_owned(),
    })
}

/// An [`Error::Http`] for an answer that we cannot use.
#[must_use]
pub fn failed(method: &'static str, url: &str, text: &str) -> Error {
    Error::Http {
        method,
        url: url.into(),
        text: text.into(),
    }
}

/// The first line of an answer, for a message.
#[must_use]
pub fn first_line(body: &str) -> &str {
    body.lines().next().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{BufRead, BufReader, Read, Write};
    use std::net::TcpListener;

    const TIMEOUT: Duration = Duration::from_secs(5);

    /// Serves one request with `answer`. Returns the URL and a thread; joining it gives the request's head and body.
    fn serve_one(answer: &'static str) -> (String, std::thread::JoinHandle<(String, String)>) {
        let listener = TcpListener::bind("127.0.0.1:0").expect("bind");
        let url = format!("http://{}/path", listener.local_addr().expect("address"));
        let serve = move || {
            let (mut stream, _) = listener.accept().expect("accept");
            let mut reader = BufReader::new(stream.try_clone().expect("clone"));
            let mut head = String::new();
            while !head.ends_with("\r\n\r\n") {
                assert!(reader.read_line(&mut head).expect("read") > 0);
            }
            let head = head.to_lowercase();
            let length = head
                .lines()
                .find_map(|line| line.strip_prefix("content-length: ")?.parse().ok());
            let mut body = vec![0; length.unwrap_or(0)];
            reader.read_exact(&mut body).expect("body");
            stream.write_all(answer.as_bytes()).expect("write");
            (head, String::from_utf8(body).expect("text"))
        };
        (url, std::thread::spawn(serve))
    }

    #[test]
    fn a_url_is_told_for_each_address() {
        let each = |url: &str| each_address(url).map_err(|error| error.to_string());
        let one = |url: &str| Ok(vec![url.to_owned()]);
        assert_eq!(each("http://127.0.0.1:9000/"), one("http://127.0.0.1:9000"));
        assert_eq!(
            each("http://127.0.0.1/in/it"),
            one("http://127.0.0.1:80/in/it")
        );
        assert_eq!(each("http://[::1]:9000"), one("http://[::1]:9000"));
        assert!(each("https://127.0.0.1").unwrap_err().contains("http://"));
        assert!(each("http://no-such-name.invalid:1").is_err());
    }

    #[test]
    fn any_status_is_an_answer_with_headers_and_body() {
        let (url, served) =
            serve_one("HTTP/1.1 503 Busy\r\nRetry-After: 1\r\nContent-Length: 5\r\n\r\nlater");
        let response = get(&url, TIMEOUT).expect("answer");
        assert_eq!((response.status, response.body.as_str()), (503, "later"));
        assert_eq!(response.header("retry-after"), Some("1"));
        assert!(
            served
                .join()
                .expect("served")
                .0
                .starts_with("get /path http/1.1\r\n")
        );
    }

    #[test]
    fn a_body_is_sent_with_its_type() {
        let (url, served) = serve_one("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
        let response = put(&url, "application/json", b"{\"never\":0.5}", TIMEOUT).expect("answer");
        assert_eq!(response.status, 200);
        let (head, body) = served.join().expect("served");
        assert!(
            head.starts_with("put ") && head.contains("content-type: application/json"),
            "{head}"
        );
        assert_eq!(body, "{\"never\":0.5}");
    }

    #[test]
    fn only_200_will_do_when_asked_so() {
        let (url, _served) = serve_one("HTTP/1.1 404 Not Found\r\nContent-Length: 4\r\n\r\ngone");
        let error = get_ok(&url, TIMEOUT).expect_err("404").to_string();
        assert!(error.ends_with("answered 404: gone"), "{error}");
    }

    #[test]
    fn silence_ends_by_the_time_out_and_a_closed_port_at_once() {
        let silent = TcpListener::bind("127.0.0.1:0").expect("bind");
        let url = format!("http://{}/", silent.local_addr().expect("address"));
        let error = get(&url, Duration::from_millis(50))
            .expect_err("silence")
            .to_string();
        assert!(error.starts_with(&format!("GET {url}: ")), "{error}");
        drop(silent);
        assert!(get(&url, TIMEOUT).is_err());
    }
}
