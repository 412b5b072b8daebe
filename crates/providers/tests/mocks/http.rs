//! Connections: what every HTTP/1.1 client may do.

use std::time::Duration;

use crate::gateway::{Connection, ask, at_once, with_mocks};

#[test]
fn requests_may_come_in_pieces_in_chunks_and_ahead() {
    with_mocks(at_once(), |address| async move {
        let mut connection = Connection::to(address).await;
        let body = r##"{"text": "#1.1 a"}"##;
        let (begun, rest) = body.split_at(7);
        let head = "POST /v1/speak?encoding=linear16&sample_rate=24000 HTTP/1.1\r\nHost: mock\r\nTransfer-Encoding: chunked\r\n\r\n";
        let whole = format!(
            "{head}{:x}\r\n{begun}\r\n{:x}\r\n{rest}\r\n0\r\n\r\nGET /health HTTP/1.1\r\n\r\n",
            begun.len(),
            rest.len()
        );
        for piece in whole.as_bytes().chunks(29) {
            connection.write(piece).await;
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        let spoken = connection.answer().await;
        assert_eq!(
            (spoken.status, spoken.whole, spoken.marks().len()),
            (200, true, 18)
        );
        let healthy = connection.answer().await;
        assert_eq!(
            (healthy.status, healthy.body.as_slice()),
            (200, b"ok\n".as_slice())
        );
    });
}

#[test]
fn whoever_expects_to_be_asked_on_is() {
    with_mocks(at_once(), |address| async move {
        let mut connection = Connection::to(address).await;
        let head = "PUT /faults HTTP/1.1\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\n";
        connection.write(head.as_bytes()).await;
        assert_eq!(connection.answer().await.status, 100);
        connection.write(b"{}").await;
        assert_eq!(connection.answer().await.status, 200);
    });
}

#[test]
fn a_connection_closes_when_asked_to_and_after_what_is_no_request() {
    with_mocks(at_once(), |address| async move {
        for (request, status) in [
            ("GET /health HTTP/1.1\r\nConnection: close\r\n\r\n", 200),
            ("GET /health HTTP/1.0\r\n\r\n", 505),
            ("hello\r\n\r\n", 400),
            (
                "PUT /faults HTTP/1.1\r\nContent-Length: 1000000\r\n\r\n",
                413,
            ),
        ] {
            let mut connection = Connection::to(address).await;
            connection.write(request.as_bytes()).await;
            let answer = connection.answer().await;
            assert_eq!((answer.status, answer.whole), (status, true), "{request}");
            assert_eq!(answer.header("connection"), Some("close"));
            assert_eq!(connection.answer().await.status, 0, "closed");
        }
    });
}

#[test]
fn other_paths_are_not_found_and_lists_are() {
    with_mocks(at_once(), |address| async move {
        for (method, path) in [
            ("GET", "/nothing"),
            ("GET", "/v1/speak"),
            ("POST", "/v1/listen"),
            ("POST", "/faults"),
        ] {
            assert_eq!(
                ask(address, method, path, "").await.status,
                404,
                "{method} {path}"
            );
        }
        let voices = ask(address, "GET", "/v1/voices", "").await.json();
        assert_eq!(voices["voices"][0]["voice_id"], "mock");
    });
}
