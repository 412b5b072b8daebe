//! The session machine against a simulated gateway and a simulated clock.

use plimsoll_core::latency::Series;
use plimsoll_core::profile::Profile;
use plimsoll_core::schedule::session_plan;
use plimsoll_core::session::{Disconnect, Phase, Session};

use super::*;
use crate::reference::compute;
use crate::synthetic::Synthetic;
use plimsoll_protocol::websocket::handshake::accept_for;
use plimsoll_protocol::websocket::{Opcode, RawFrame, mask_in_place};

const MS: u64 = NS_PER_MS;

/// A session, its recorder, and the time.
struct Rig {
    stt: Sessions,
    session: PacedSession<SttDialogue>,
    recorder: Recorder<Claim>,
    now_ns: u64,
}

impl Rig {
    /// A session that is streaming; ramp 0, warm-up 1 s, window 2 s.
    fn streaming() -> Self {
        let mut profile = Profile::quick();
        (profile.ramp_s, profile.warm_up_s, profile.measured_s) = (0.0, 1.0, 2.0);
        profile.session_start_spread_ms = 0.0;
        let endpoint = Endpoint {
            host: "localhost:1".to_owned(),
            path: "/ws/stt".to_owned(),
            headers: Vec::new(),
        };
        let stt = Sessions::new(endpoint, Arc::new(Audio::synthetic()), Some(4));
        let mut rig = Self {
            session: stt.session(&session_plan(0, 1, &profile, 1)),
            stt,
            recorder: Recorder::default(),
            now_ns: 0,
        };
        let request = rig.write_all().concat();
        let request = std::str::from_utf8(&request).unwrap();
        let key = request
            .lines()
            .find_map(|line| line.strip_prefix("Sec-WebSocket-Key: "))
            .unwrap();
        let answer = format!(
            "HTTP/1.1 101 x\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: {}\r\n\r\n",
            accept_for(key)
        );
        rig.receive(answer.as_bytes());
        rig
    }

    fn write_all(&mut self) -> Vec<Vec<u8>> {
        let mut writes = Vec::new();
        while let Some(transmit) = self.session.transmit(self.now_ns) {
            writes.push([transmit.head, transmit.body].concat());
            self.session.sent(self.now_ns, &mut self.recorder);
        }
        writes
    }

    fn receive(&mut self, bytes: &[u8]) {
        self.session
            .received(self.now_ns, bytes, &mut self.recorder);
    }

    fn text(&mut self, text: &str) {
        let frame = RawFrame::server(Opcode::Text, text.as_bytes()).to_vec();
        self.receive(&frame);
    }

    /// Time passes; every frame is written the moment it is due.
    fn run_until(&mut self, until_ns: u64) {
        while let Some(due) = self.session.next_due_ns().filter(|due| *due <= until_ns) {
            self.now_ns = self.now_ns.max(due);
            self.write_all();
        }
        self.now_ns = until_ns;
    }

    fn partial_text(oldest: u64, newest: u64, bend: impl FnOnce(&mut serde_json::Value)) -> String {
        let frames = newest - oldest + 1;
        let pcm = Synthetic::new().batch(0, oldest, frames);
        let answer = compute(&pcm, 4).unwrap();
        let mut partial = serde_json::json!({
            "type": "partial", "oldest_frame_seq": oldest, "newest_frame_seq": newest, "frames": frames,
            "rms": answer.rms, "zero_crossings": answer.zero_crossings, "checksum": answer.checksum,
            "samples": answer.samples, "transcript": answer.transcript, "audio_bytes": answer.audio_bytes,
            "cpu_passes": 4, "flush_lateness_ms": 0.2,
        });
        bend(&mut partial);
        partial.to_string()
    }

    fn partial(&mut self, oldest: u64, newest: u64) {
        self.text(&Self::partial_text(oldest, newest, |_| {}));
    }

    /// What the audit says of the claims as another process would send them.
    fn audited(&self) -> Audit {
        let told = serde_json::to_string(&self.recorder.claims).unwrap();
        let claims: Vec<Claim> = serde_json::from_str(&told).unwrap();
        let audit = self.stt.audit(&claims);
        assert_eq!(audit, self.stt.audit(&self.recorder.claims));
        audit
    }
}

#[test]
fn it_says_start_then_a_frame_every_20_ms() {
    let mut rig = Rig::streaming();
    let mut writes = rig.write_all();
    let (header, start) = writes[0].split_at_mut(6);
    assert_eq!(header[..2], [0x81, 0x80 | 16]);
    mask_in_place(start, header[2..].try_into().unwrap(), 0);
    assert_eq!(start, START.as_bytes());
    assert_eq!(writes[1].len(), 648);
    assert_eq!(writes.len(), 2, "frame 1 is due at once, frame 2 is not");
    rig.now_ns = 19_999_999;
    assert!(rig.write_all().is_empty());
    rig.now_ns = 20 * MS;
    assert_eq!(rig.write_all().len(), 1);
    assert_eq!(rig.session.next_due_ns(), Some(40 * MS));
}

#[test]
fn latency_is_from_the_schedule_and_from_the_write() {
    let mut rig = Rig::streaming();
    rig.run_until(1_480 * MS);
    // Frame 76 is due at 1500 ms; the client writes it 30 ms late, the answer comes at 1600 ms.
    rig.now_ns = 1_530 * MS;
    rig.write_all();
    rig.now_ns = 1_600 * MS;
    rig.partial(1, 76);
    let max_us = |series| rig.recorder.interval.histogram(series).max();
    assert!((100_000..=100_100).contains(&max_us(Series::NewestFromSchedule)));
    assert!((70_000..=70_100).contains(&max_us(Series::NewestFromWrite)));
    // Frame 1 is not measured: no latency of the oldest frame.
    assert!(
        rig.recorder
            .interval
            .histogram(Series::OldestFromSchedule)
            .is_empty()
    );
}

#[test]
fn a_whole_trial_answered_in_full() {
    let mut rig = Rig::streaming();
    for second in 1..=3_u64 {
        rig.run_until(second * 1_000 * MS - 1);
        rig.partial((second - 1) * 50 + 1, second * 50);
    }
    assert!(rig.session.settled());
    rig.now_ns = 3_100 * MS;
    rig.session.finish(rig.now_ns, &mut rig.recorder);
    let ledger = &rig.recorder.ledger;
    assert_eq!(
        (
            ledger.frames_due,
            ledger.frames_answered,
            ledger.frames_lost
        ),
        (100, 100, 0)
    );
    assert_eq!(
        (ledger.partials, ledger.errors, ledger.protocol_faults),
        (2, 0, 0)
    );
    assert_eq!(ledger.sessions_started, 1);
    let audit = rig.audited();
    assert!(audit.checked >= 1);
    assert_eq!(audit.wrong, 0);
    let farewell = rig.write_all();
    assert_eq!(farewell.last().unwrap()[0], 0x88, "a close frame");
}

#[test]
fn unanswered_frames_are_lost_and_in_the_latencies() {
    let mut rig = Rig::streaming();
    rig.run_until(1_999 * MS);
    rig.partial(1, 100);
    rig.run_until(8_000 * MS);
    assert!(!rig.session.settled());
    rig.session.finish(rig.now_ns, &mut rig.recorder);
    assert_eq!(rig.recorder.ledger.frames_lost, 50);
    assert_eq!(rig.recorder.interval.censored(), 50);
    // Frame 101 was due at 2000 ms and waited for until 8000 ms.
    let oldest = rig.recorder.interval.histogram(Series::OldestFromSchedule);
    assert!((6_000_000..6_005_000).contains(&oldest.max()));
}

#[test]
fn an_error_names_its_frames_and_the_session_goes_on() {
    let mut rig = Rig::streaming();
    rig.run_until(2_999 * MS);
    let error = serde_json::json!({
        "type": "error", "stage": "inference_request", "kind": "timeout", "message": "m",
        "oldest_frame_seq": 1, "newest_frame_seq": 100, "frames": 100, "audio_bytes": 64_000,
        "oldest_age_ms": 7.5, "newest_age_ms": 1, "flush_lateness_ms": 0, "inference_elapsed_ms": null,
        "inflight_gateway_batches": 1, "gateway_buffer_frames": 0, "inference_status": null, "retryable": true,
    });
    rig.text(&error.to_string());
    rig.partial(101, 150);
    assert!(rig.session.settled());
    let ledger = &rig.recorder.ledger;
    assert_eq!(
        (ledger.frames_errored, ledger.frames_answered, ledger.errors),
        (50, 50, 1)
    );
    assert_eq!(ledger.error_rate(), Some(1.0));
}

#[test]
fn wrong_content_is_found_by_fields_or_by_recomputing() {
    let bends: [fn(&mut serde_json::Value); 5] = [
        |partial| partial["audio_bytes"] = 1.into(),
        |partial| partial["transcript"] = "zebra".into(),
        |partial| {
            // Checksum and word fit together, but not to the audio.
            let checksum = partial["checksum"].as_u64().unwrap() ^ 1;
            partial["checksum"] = checksum.into();
            let word = crate::reference::transcript(u32::try_from(checksum).unwrap());
            partial["transcript"] = word.into();
        },
        |partial| partial["rms"] = 2425.6.into(),
        |partial| partial["zero_crossings"] = 0.into(),
    ];
    for bend in bends {
        let mut rig = Rig::streaming();
        rig.run_until(1_999 * MS);
        rig.text(&Rig::partial_text(1, 100, bend));
        let wrong = rig.recorder.ledger.content_wrong + rig.audited().wrong;
        assert_eq!(wrong, 1);
    }
}

#[test]
fn breaking_the_contract_is_a_protocol_fault() {
    let bends: [fn(&mut serde_json::Value); 5] = [
        |partial| partial["extra"] = 1.into(),
        |partial| partial["frames"] = 99.into(),
        |partial| partial["flush_lateness_ms"] = (-1).into(),
        |partial| partial["cpu_passes"] = 3.into(),
        |partial| partial["type"] = "final".into(),
    ];
    for bend in bends {
        let mut rig = Rig::streaming();
        rig.run_until(1_999 * MS);
        rig.text(&Rig::partial_text(1, 100, bend));
        assert_eq!(rig.recorder.ledger.protocol_faults, 1);
    }
    let mut rig = Rig::streaming();
    rig.text("{");
    rig.receive(&RawFrame::server(Opcode::Binary, b"x").to_vec());
    rig.text(&Rig::partial_text(500, 501, |_| {}));
    assert_eq!(rig.recorder.ledger.protocol_faults, 3);
}

#[test]
fn a_session_that_dies_still_owes_its_frames() {
    let mut rig = Rig::streaming();
    rig.run_until(1_499 * MS);
    rig.session
        .disconnected(rig.now_ns, Disconnect::Reset, &mut rig.recorder);
    assert_eq!(rig.session.phase(), Phase::Ended);
    assert!(rig.session.transmit(rig.now_ns).is_none());
    rig.session.finish(3_500 * MS, &mut rig.recorder);
    let ledger = &rig.recorder.ledger;
    assert_eq!(
        (ledger.sessions_died, ledger.frames_due, ledger.frames_lost),
        (1, 100, 100)
    );
    assert_eq!(ledger.frames_sent, 25);
}

#[test]
fn a_refused_session_failed() {
    let mut rig = Rig::streaming();
    rig.session = rig.stt.session(&session_plan(0, 1, &Profile::quick(), 1));
    rig.recorder = Recorder::default();
    rig.write_all();
    rig.receive(b"HTTP/1.1 503 Busy\r\nRetry-After: 1\r\n\r\n");
    assert_eq!(rig.recorder.ledger.sessions_failed, 1);
    assert_eq!(
        rig.recorder.ledger.reasons["upgrade refused with status 503"],
        1
    );
    rig.session.finish(9_000 * MS, &mut rig.recorder);
    assert_eq!(rig.recorder.ledger.sessions_failed, 1, "counted once");
}

#[test]
fn a_frame_half_written_is_finished_before_anything_else() {
    let mut rig = Rig::streaming();
    rig.write_all();
    rig.now_ns = 20 * MS;
    let before = {
        let transmit = rig.session.transmit(rig.now_ns).unwrap();
        [transmit.head, transmit.body].concat()
    };
    // A ping comes while the frame is only half in the socket.
    rig.receive(&RawFrame::server(Opcode::Ping, b"hi").to_vec());
    let again = rig.session.transmit(rig.now_ns).unwrap();
    assert_eq!([again.head, again.body].concat(), before);
    rig.session.sent(rig.now_ns, &mut rig.recorder);
    let pong = rig.session.transmit(rig.now_ns).unwrap();
    assert_eq!(pong.head[0], 0x8A);
}

/// As the engine does it: the frame is on its way when the trial ends, and its rest is written before the farewell.
#[test]
fn a_frame_half_written_at_the_end_is_finished_after_the_session() {
    let mut rig = Rig::streaming();
    rig.now_ns = 500 * MS;
    rig.write_all();
    rig.now_ns = rig.session.next_due_ns().expect("a frame is due");
    assert!(rig.session.transmit(rig.now_ns).is_some());
    rig.session.finish(rig.now_ns, &mut rig.recorder);
    assert!(rig.session.transmit(rig.now_ns).is_some(), "its rest");
    rig.session.sent(rig.now_ns, &mut rig.recorder);
    assert_eq!(rig.session.next_due_ns(), None);
    assert!(rig.session.transmit(rig.now_ns).is_some(), "the farewell");
}
