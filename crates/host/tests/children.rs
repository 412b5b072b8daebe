//! Tests real children: started, watched, and ended with everything that they started.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener};
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use plimsoll_host::Error;
use plimsoll_host::isolation::CpuList;
use plimsoll_host::process::{Ask, Child, Launch, Ready, StopSignal, last_lines};
use plimsoll_host::signals::Stop;
use plimsoll_testing::eventually;

/// Far longer than anything here takes. Only a failing test waits this long.
const PATIENCE: Duration = Duration::from_secs(20);

fn launch(folder: &Path, script: &str) -> Launch {
    let command = ["sh", "-c", script].map(str::to_owned);
    Launch::new("the child", &command, folder, &folder.join("child.log"))
}

fn start(folder: &Path, script: &str) -> Child {
    launch(folder, script).start(None).expect("starts")
}

/// Waits until the log has `count` lines, and returns them.
fn lines(child: &Child, count: usize) -> Vec<String> {
    eventually("the lines are written", || {
        last_lines(child.log(), count).len() == count
    });
    last_lines(child.log(), count)
}

/// A process that has ended but was not waited for (its new parent may be slow) counts as dead.
fn is_dead(pid: &str) -> bool {
    match std::fs::read_to_string(format!("/proc/{pid}/stat")) {
        Ok(stat) => stat
            .rsplit_once(") ")
            .is_none_or(|(_, rest)| rest.starts_with(['Z', 'X'])),
        Err(_) => true,
    }
}

#[test]
fn a_child_that_exits_at_once_is_an_error_with_its_log_and_status() {
    let folder = tempfile::tempdir().expect("temp");
    let mut child = start(folder.path(), "echo PORT is not a number >&2; exit 2");
    let asked = Instant::now();
    let error = child
        .wait_ready(
            &Ready::get("http://127.0.0.1:9/health"),
            PATIENCE,
            &Stop::new(),
        )
        .expect_err("not ready");
    assert!(
        asked.elapsed() < PATIENCE / 2,
        "it must not wait for the whole time-out"
    );
    let text = error.to_string();
    assert!(
        text.contains("ended before it was ready (exit code 2)"),
        "{text}"
    );
    assert!(text.ends_with("\n    PORT is not a number"), "{text}");
}

#[test]
fn a_child_killed_by_a_signal_says_so() {
    let folder = tempfile::tempdir().expect("temp");
    let mut child = start(folder.path(), "kill -SEGV $$");
    let error = child
        .wait_ready(
            &Ready::get("http://127.0.0.1:9/health"),
            PATIENCE,
            &Stop::new(),
        )
        .expect_err("not ready");
    assert!(error.to_string().contains("killed by SIGSEGV"), "{error}");
}

#[test]
fn a_child_that_never_becomes_ready_is_an_error_that_tells_the_last_answer() {
    let folder = tempfile::tempdir().expect("temp");
    let mut child = start(folder.path(), "echo starting; exec sleep 600");
    lines(&child, 1);
    let nobody = child.wait_ready(
        &Ready::get("http://127.0.0.1:9/health"),
        Duration::from_millis(50),
        &Stop::new(),
    );
    let text = nobody.expect_err("not ready").to_string();
    assert!(
        text.contains("nothing answered") && text.ends_with("starting"),
        "{text}"
    );
    let health = Ready::get(health_server(u32::MAX));
    let draining = child.wait_ready(&health, Duration::from_millis(200), &Stop::new());
    let text = draining.expect_err("not ready").to_string();
    assert!(text.contains("the last answer was 503"), "{text}");
}

#[test]
fn a_child_is_ready_when_its_health_is_200() {
    let folder = tempfile::tempdir().expect("temp");
    let asked = Instant::now();
    let mut child = start(folder.path(), "exec sleep 600");
    // Its start counts, not when we began to ask.
    std::thread::sleep(Duration::from_millis(30));
    let took = child
        .wait_ready(&Ready::get(health_server(3)), PATIENCE, &Stop::new())
        .expect("ready after three refusals");
    let least = Duration::from_millis(30);
    assert!(took >= least && took <= asked.elapsed(), "{took:?}");
    child.must_run().expect("runs");
}

/// Takes a byte on each connection and answers with the number of the connection: 1, 2, ….
fn counting_server() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").expect("bind");
    let address = listener.local_addr().expect("address");
    std::thread::spawn(move || {
        for (number, stream) in (1u8..).zip(listener.incoming()) {
            let mut stream = stream.expect("accept");
            let mut byte = [0];
            if stream.read_exact(&mut byte).is_ok() {
                // The client may have given up.
                let _ = stream.write_all(&[number]);
            }
        }
    });
    address
}

/// Asks such a server, and takes it for ready from this number on.
fn ready_from(least: u8) -> Ask {
    Ask::new(move |stream| {
        let mut number = [0];
        let talked = stream
            .write_all(b"?")
            .and_then(|()| stream.read_exact(&mut number));
        talked.map_err(|error| error.to_string())?;
        match number[0] >= least {
            true => Ok(()),
            false => Err(format!("number {}\nand more", number[0])),
        }
    })
}

#[test]
fn a_child_without_http_is_ready_when_it_answers_as_it_should() {
    let folder = tempfile::tempdir().expect("temp");
    let mut child = start(folder.path(), "exec sleep 600");
    let ready = Ready::Asked(counting_server(), ready_from(3));
    let took = child.wait_ready(&ready, PATIENCE, &Stop::new());
    // Two pauses were in between.
    let least = Duration::from_millis(20);
    assert!(took.expect("ready") >= least);
    let at = counting_server();
    let never = Ready::Asked(at, ready_from(u8::MAX));
    let late = child.wait_ready(&never, Duration::from_millis(100), &Stop::new());
    let text = late.expect_err("not ready").to_string();
    let told = format!("was not ready within 100ms: asked at {at}: the last answer: number ");
    assert!(text.contains(&told) && !text.contains("and more"), "{text}");
}

#[test]
fn a_child_that_takes_connections_and_says_nothing_is_not_ready() {
    let folder = tempfile::tempdir().expect("temp");
    let mut child = start(folder.path(), "exec sleep 600");
    let silent = TcpListener::bind("127.0.0.1:0").expect("bind");
    let at = silent.local_addr().expect("address");
    let ready = Ready::Asked(at, ready_from(0));
    let late = child.wait_ready(&ready, Duration::from_millis(1), &Stop::new());
    let text = late.expect_err("not ready").to_string();
    assert!(text.contains("no answer within 3s"), "{text}");
    drop(silent);
    let nobody = child.wait_ready(&ready, Duration::from_millis(50), &Stop::new());
    let text = nobody.expect_err("not ready").to_string();
    assert!(text.contains("nothing answered"), "{text}");
}

/// Answers 503 `refusals` times, then 200.
fn health_server(refusals: u32) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("bind");
    let url = format!("http://{}/health", listener.local_addr().expect("address"));
    std::thread::spawn(move || {
        for (count, stream) in (0u32..).zip(listener.incoming()) {
            let mut stream = stream.expect("accept");
            let mut reader = BufReader::new(stream.try_clone().expect("clone"));
            let mut line = String::new();
            while reader.read_line(&mut line).is_ok_and(|length| length > 2) {
                line.clear();
            }
            let status = if count < refusals {
                "503 Busy"
            } else {
                "200 OK"
            };
            let answer = format!("HTTP/1.1 {status}\r\nContent-Length: 0\r\n\r\n");
            // The client may have given up.
            let _ = stream.write_all(answer.as_bytes());
        }
    });
    url
}

#[test]
fn waiting_ends_when_we_are_asked_to_stop() {
    let folder = tempfile::tempdir().expect("temp");
    let mut child = start(folder.path(), "exec sleep 600");
    let stop = Stop::new();
    stop.request();
    let error = child
        .wait_ready(&Ready::get("http://127.0.0.1:9/health"), PATIENCE, &stop)
        .expect_err("stopped");
    assert!(matches!(error, Error::Interrupted(_)), "{error}");
}

#[test]
fn sigterm_gives_a_child_the_chance_to_end_itself() {
    let folder = tempfile::tempdir().expect("temp");
    let mut child = start(
        folder.path(),
        "trap 'echo drained; exit 7' TERM; echo up; while :; do sleep 0.01; done",
    );
    lines(&child, 1);
    let ended = child.terminate(PATIENCE).expect("ended");
    assert_eq!((ended.status.code(), ended.killed), (Some(7), false));
    assert_eq!(last_lines(child.log(), 1), ["drained"]);
    let again = child.terminate(PATIENCE).expect("ended before");
    assert_eq!(again.status, ended.status);
}

#[test]
fn a_child_gets_the_signal_that_it_takes_for_an_end() {
    let folder = tempfile::tempdir().expect("temp");
    let script = "trap 'exit 3' TERM; trap 'exit 7' QUIT; echo up; while :; do sleep 0.01; done";
    for (signal, code) in [(StopSignal::Term, 3), (StopSignal::Quit, 7)] {
        let mut launch = launch(folder.path(), script);
        launch.stop_signal = signal;
        let mut child = launch.start(None).expect("starts");
        lines(&child, 1);
        let ended = child.terminate(PATIENCE).expect("ended");
        assert_eq!((ended.status.code(), ended.killed), (Some(code), false));
    }
}

#[test]
fn a_child_that_ignores_sigterm_is_killed_after_the_grace() {
    let folder = tempfile::tempdir().expect("temp");
    let mut child = start(
        folder.path(),
        "trap '' TERM; echo up; while :; do sleep 0.01; done",
    );
    lines(&child, 1);
    let ended = child.terminate(Duration::from_millis(50)).expect("ended");
    assert!(ended.killed);
    assert_eq!(ended.status.signal(), Some(9));
}

/// One grandchild in the process group, and one that left it for its own session.
const GRANDCHILDREN: &str =
    "sleep 600 & echo $!; setsid sh -c 'echo $$; exec sleep 600' & sleep 600";

#[test]
fn grandchildren_are_killed_too_whether_terminated_killed_or_dropped() {
    for how in ["terminated", "killed", "dropped"] {
        let folder = tempfile::tempdir().expect("temp");
        let mut child = start(folder.path(), GRANDCHILDREN);
        let pids = lines(&child, 2);
        assert!(pids.iter().all(|pid| !is_dead(pid)), "{pids:?}");
        match how {
            "terminated" => {
                child.terminate(Duration::from_millis(50)).expect("ended");
            }
            "killed" => child.kill().expect("killed"),
            _ => {}
        }
        drop(child);
        eventually("the grandchildren die", || {
            pids.iter().all(|pid| is_dead(pid))
        });
    }
}

#[test]
fn what_a_dead_child_leaves_in_its_group_is_killed() {
    let folder = tempfile::tempdir().expect("temp");
    let mut child = start(folder.path(), "sleep 600 & echo $!");
    let pids = lines(&child, 1);
    child.wait_ended(&Stop::new()).expect("ended by itself");
    eventually("the grandchild dies", || is_dead(&pids[0]));
}

#[test]
fn a_child_gets_its_environment_folder_cpus_and_group() {
    let folder = tempfile::tempdir().expect("temp");
    std::fs::write(folder.path().join("here"), "found").expect("write");
    let allowed = CpuList::allowed_to_us().expect("allowed");
    let last = CpuList::new(vec![*allowed.as_slice().last().expect("one")]).expect("one");
    let script = "echo $PLIMSOLL_TEST:${PATH:+path}:${HOME-no home}; cat here; echo; \
                  grep Cpus_allowed_list /proc/self/status; cut -d' ' -f5 /proc/self/stat; echo $$";
    let mut launch = launch(folder.path(), script);
    launch.env = vec![("PLIMSOLL_TEST".into(), "set".into())];
    launch.env_remove = vec!["HOME".into()];
    launch.cpus = Some(last.clone());
    let child = launch.start(None).expect("starts");
    let lines = lines(&child, 5);
    assert_eq!(lines[0], "set:path:no home");
    assert_eq!(lines[1], "found");
    assert_eq!(lines[2], format!("Cpus_allowed_list:\t{last}"));
    assert_eq!(lines[3], lines[4], "its process group is its own");
    assert_eq!(lines[4], child.pid().to_string());
}

#[test]
fn a_program_that_is_not_there_is_one_line() {
    let folder = tempfile::tempdir().expect("temp");
    let command = ["./none".to_owned()];
    let launch = Launch::new(
        "rust-axum",
        &command,
        folder.path(),
        &folder.path().join("log"),
    );
    let text = launch.start(None).expect_err("absent").to_string();
    assert!(
        text.starts_with("rust-axum: cannot start \"./none\": No such file"),
        "{text}"
    );
}

#[test]
fn a_child_outlives_the_thread_that_started_it() {
    let folder = tempfile::tempdir().expect("temp");
    let launch = launch(
        folder.path(),
        "read line < fifo; echo alive; exec sleep 600",
    );
    let fifo = folder.path().join("fifo");
    assert!(
        Command::new("mkfifo")
            .arg(&fifo)
            .status()
            .expect("mkfifo")
            .success()
    );
    let mut child = std::thread::spawn(move || launch.start(None).expect("starts"))
        .join()
        .expect("thread");
    std::fs::write(&fifo, "go\n").expect("the child reads");
    assert_eq!(lines(&child, 1), ["alive"]);
    child.must_run().expect("runs");
}

/// Not a test by itself: this is the process that dies in the next test.
#[test]
#[ignore = "started by children_die_with_us"]
fn a_process_that_waits_to_be_killed() {
    let folder = tempfile::tempdir().expect("temp");
    let child = start(folder.path(), "exec sleep 600");
    println!("\nchild {}", child.pid());
    std::thread::sleep(PATIENCE);
}

#[test]
fn children_die_with_us() {
    let executable = std::env::current_exe().expect("this test");
    let mut process = Command::new(executable)
        .args([
            "a_process_that_waits_to_be_killed",
            "--exact",
            "--ignored",
            "--nocapture",
        ])
        .stdout(Stdio::piped())
        .spawn()
        .expect("starts");
    let stdout = BufReader::new(process.stdout.take().expect("piped"));
    let pid = stdout
        .lines()
        .map_while(Result::ok)
        .find_map(|line| line.strip_prefix("child ").map(str::to_owned))
        .expect("its child's pid");
    assert!(!is_dead(&pid));
    process.kill().expect("kill");
    process.wait().expect("reaped");
    eventually("its child dies", || is_dead(&pid));
}

#[test]
fn a_log_is_made_anew_with_its_folder() {
    let folder = tempfile::tempdir().expect("temp");
    let log = folder.path().join("a/b/log");
    for text in ["a long first text", "second"] {
        let command = ["echo".to_owned(), text.to_owned()];
        let launch = Launch::new("echo", &command, folder.path(), &log);
        let mut child = launch.start(None).expect("starts");
        child.wait_ended(&Stop::new()).expect("ended");
        let mut written = String::new();
        std::fs::File::open(&log)
            .and_then(|mut file| file.read_to_string(&mut written))
            .expect("read");
        assert_eq!(written, format!("{text}\n"));
    }
}
