//! Batches wait for company: a request's answer is due only at the end of its latency, so its computation can wait
//! until several requests are there and run side by side, which costs a fraction of one after the other
//! ([`plimsoll_workload_stt::reference`]). Pure: the clock is the caller's.

use bytes::Bytes;
use plimsoll_workload_stt::reference::{Answer, LANES, Scratch, compute_interleaved};

/// One request's audio, waiting to be computed.
#[derive(Debug)]
pub struct Job<Instant, Sink> {
    /// The batch, whole samples.
    pub pcm: Bytes,
    /// Passes over it.
    pub passes: u32,
    /// When the computation must start for the answer to be in time.
    pub start_by: Instant,
    /// Where the answer goes.
    pub sink: Sink,
}

/// What becomes of a job.
pub trait AnswerSink {
    /// Whether nobody waits for the answer any more; it is then not computed.
    fn is_abandoned(&self) -> bool;
    /// Takes the answer.
    fn accept(self, answer: Answer);
}

/// Jobs that wait for company.
#[derive(Debug)]
pub struct Batcher<Instant, Sink> {
    waiting: Vec<Job<Instant, Sink>>,
    scratch: Scratch,
}

impl<Instant: Copy + Ord, Sink: AnswerSink> Default for Batcher<Instant, Sink> {
    fn default() -> Self {
        Self {
            waiting: Vec::with_capacity(LANES),
            scratch: Scratch::new(),
        }
    }
}

impl<Instant: Copy + Ord, Sink: AnswerSink> Batcher<Instant, Sink> {
    /// Adds a job. As soon as there is one for every lane, all are computed, within this call.
    pub fn push(&mut self, job: Job<Instant, Sink>) {
        self.waiting.push(job);
        if self.waiting.len() >= LANES {
            self.run();
        }
    }

    /// When the waiting jobs must be computed at the latest; `None` when there are none.
    #[must_use]
    pub fn due(&self) -> Option<Instant> {
        self.waiting.iter().map(|job| job.start_by).min()
    }

    /// Computes the waiting jobs if one of them is due. The others come along: a lane that is left empty costs as
    /// much as one that is used.
    pub fn run_due(&mut self, now: Instant) {
        if self.due().is_some_and(|due| due <= now) {
            self.run();
        }
    }

    fn run(&mut self) {
        self.waiting.retain(|job| !job.sink.is_abandoned());
        let batches: Vec<(&[u8], u32)> = self
            .waiting
            .iter()
            .map(|job| (&job.pcm[..], job.passes))
            .collect();
        let answers = compute_interleaved(&batches, &mut self.scratch);
        for (job, answer) in self.waiting.drain(..).zip(answers) {
            // An odd length was refused before it came here; dropping the sink would tell its owner all the same.
            debug_assert!(answer.is_ok());
            if let Ok(answer) = answer {
                job.sink.accept(answer);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;
    use std::rc::Rc;

    use plimsoll_workload_stt::reference::compute;
    use plimsoll_workload_stt::synthetic::Synthetic;

    use super::*;

    struct Noted {
        id: u64,
        abandoned: bool,
        answers: Rc<RefCell<Vec<(u64, Answer)>>>,
    }

    impl AnswerSink for Noted {
        fn is_abandoned(&self) -> bool {
            self.abandoned
        }

        fn accept(self, answer: Answer) {
            self.answers.borrow_mut().push((self.id, answer));
        }
    }

    #[derive(Default)]
    struct Bench {
        batcher: Batcher<u64, Noted>,
        answers: Rc<RefCell<Vec<(u64, Answer)>>>,
    }

    impl Bench {
        fn push(&mut self, id: u64, start_by: u64, abandoned: bool) {
            let sink = Noted {
                id,
                abandoned,
                answers: self.answers.clone(),
            };
            self.batcher.push(Job {
                pcm: pcm(id).into(),
                passes: 2,
                start_by,
                sink,
            });
        }

        fn answered(&self) -> Vec<u64> {
            self.answers.borrow().iter().map(|(id, _)| *id).collect()
        }
    }

    fn pcm(id: u64) -> Vec<u8> {
        Synthetic::new().batch(id, 1, 1 + id % 3)
    }

    #[test]
    fn jobs_wait_until_the_first_is_due_and_go_together() {
        let mut bench = Bench::default();
        assert_eq!(bench.batcher.due(), None);
        bench.push(1, 70, false);
        bench.push(2, 50, false);
        bench.push(3, 60, false);
        assert_eq!(bench.batcher.due(), Some(50));
        bench.batcher.run_due(49);
        assert!(bench.answered().is_empty());
        bench.batcher.run_due(50);
        assert_eq!(bench.answered(), [1, 2, 3]);
        assert_eq!(bench.batcher.due(), None);
        for (id, answer) in bench.answers.borrow().iter() {
            assert_eq!(Ok(answer), compute(&pcm(*id), 2).as_ref());
        }
    }

    #[test]
    fn full_lanes_do_not_wait() {
        let mut bench = Bench::default();
        for id in 0..LANES as u64 + 1 {
            bench.push(id, 1000, false);
        }
        assert_eq!(bench.answered(), (0..LANES as u64).collect::<Vec<_>>());
        assert_eq!(bench.batcher.due(), Some(1000));
    }

    #[test]
    fn an_abandoned_job_is_not_computed() {
        let mut bench = Bench::default();
        bench.push(1, 10, true);
        bench.push(2, 10, false);
        bench.batcher.run_due(10);
        assert_eq!(bench.answered(), [2]);
        assert_eq!(bench.batcher.due(), None);
    }
}
