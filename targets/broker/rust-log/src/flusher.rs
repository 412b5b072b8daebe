//! The thread that waits for the disk, so that the event loop does not.

use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;

use rustix::event::{EventfdFlags, eventfd};

use crate::segment::{Disk, Flush};

/// The event loop's side.
#[derive(Debug)]
pub struct Flusher<D: Disk> {
    jobs: Sender<Flush<D>>,
    results: Receiver<io::Result<u64>>,
    /// Becomes readable when a flush has ended.
    pub bell: Arc<OwnedFd>,
    is_busy: bool,
}

impl<D: Disk + 'static> Flusher<D> {
    /// Starts the thread.
    ///
    /// # Errors
    /// When the kernel has no descriptors or threads left.
    pub fn start() -> io::Result<Self> {
        let bell = Arc::new(eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?);
        let (jobs, received) = channel::<Flush<D>>();
        let (sender, results) = channel();
        let rung = Arc::clone(&bell);
        thread::Builder::new().name("flusher".to_owned()).spawn(move || {
            // Ends with the other side.
            for job in received {
                if sender.send(job.run()).is_err() {
                    return;
                }
                // Fails only if it rings already.
                let _ = rustix::io::write(&*rung, &1_u64.to_ne_bytes());
            }
        })?;
        Ok(Self { jobs, results, bell, is_busy: false })
    }

    /// Whether a flush is running.
    pub fn is_busy(&self) -> bool {
        self.is_busy
    }

    /// Begins a flush; none must be running.
    pub fn begin(&mut self, flush: Flush<D>) {
        // The thread lives as long as this.
        self.is_busy = self.jobs.send(flush).is_ok();
    }

    /// What the flush came to that has ended, if one has.
    pub fn ended(&mut self) -> Option<io::Result<u64>> {
        let result = self.results.try_recv().ok()?;
        self.is_busy = false;
        // Only empties it.
        let _ = rustix::io::read(&*self.bell, &mut [0; 8]);
        Some(result)
    }

    /// Waits for the flush that is running, if one is.
    pub fn wait(&mut self) -> Option<io::Result<u64>> {
        if !std::mem::take(&mut self.is_busy) {
            return None;
        }
        self.results.recv().ok()
    }
}
