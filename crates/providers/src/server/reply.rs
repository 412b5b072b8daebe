//! A reply: audio block by block, as fast as it is played.

use std::io::Write as _;
use std::time::Duration;

use plimsoll_workload_voice::marks::{BLOCK_MS, REPLY_BLOCK_BYTES, ReplyMark};
use tokio::time::Instant;

use super::Shared;
use super::outage::{Cut, Wait};
use crate::profile::Provider;
use plimsoll_mock_server::http::{Connection, Gone, begin, header};

const BLOCK: Duration = Duration::from_millis(BLOCK_MS);

/// The most blocks in a chunk, where they are late or need no pace.
const CHUNK_BLOCKS_MAX: u32 = 16;

/// What the provider says that it took, for gateways that tell it on.
const PROVIDER_MS: &str = "x-mock-provider-ms";

/// A reply that is being spoken.
pub(super) struct Reply<'a> {
    pub(super) shared: &'a Shared,
    pub(super) provider: Provider,
    /// Of the next block; `handed_ns` is set when it is handed over.
    pub(super) mark: ReplyMark,
    /// Blocks after which it is cut off, if it is.
    pub(super) cut_after: Option<u32>,
    pub(super) keep_alive: bool,
    /// When the first block is due.
    pub(super) first: Instant,
    /// When the socket last had room again after it was full: until then, a late block is the gateway's doing.
    pub(super) free_at: Instant,
}

impl Reply<'_> {
    /// Speaks until the end, or the cut. Its first block is due now.
    pub(super) async fn speak(&mut self, wait: &mut Wait<'_>) -> Result<(), Cut> {
        let last = self.cut_after.unwrap_or(self.mark.blocks);
        while self.mark.block <= last {
            let hung = wait.until(self.due(self.mark.block)).await?;
            self.first += hung;
            let (began, audio) = self.put(last, &mut wait.connection.out);
            let sent = self.send(wait.connection, began, audio).await;
            sent.map_err(|Gone| Cut::Gone)?;
        }
        Ok(())
    }

    /// When a block is due.
    fn due(&self, block: u32) -> Instant {
        if self.shared.config.paced {
            self.first + BLOCK * (block - 1)
        } else {
            self.first
        }
    }

    /// Puts the blocks that are due now into one chunk; returns where their audio begins and its length.
    fn put(&mut self, last: u32, out: &mut Vec<u8>) -> (usize, usize) {
        let (now, handed_ns) = (Instant::now(), Shared::now_ns());
        let from = self.mark.block;
        let most = last.min(from.saturating_add(CHUNK_BLOCKS_MAX - 1));
        // A chunk of more than one block takes along what is not due yet.
        let along = now + Duration::from_millis(self.shared.config.chunk_ms) - BLOCK;
        let to = (from + 1..=most)
            .take_while(|block| self.due(*block) <= along)
            .last()
            .unwrap_or(from);
        out.clear();
        if from == 1 {
            self.begin(handed_ns, out);
        }
        let bytes = REPLY_BLOCK_BYTES * (to - from + 1) as usize;
        // Writing into a vector cannot fail.
        let _ = write!(out, "{bytes:x}\r\n");
        let began = out.len();
        let mut book = self.shared.book();
        for block in from..=to {
            self.mark.block = block;
            self.mark.handed_ns = handed_ns;
            self.mark.append_block(out);
            book.stats
                .late(now.saturating_duration_since(self.due(block).max(self.free_at)));
        }
        book.stats.spoke(self.provider, bytes);
        if from == 1 {
            book.stats
                .answered(self.provider, handed_ns - self.mark.read_ns);
        }
        out.extend_from_slice(b"\r\n");
        if to == self.mark.blocks {
            out.extend_from_slice(b"0\r\n\r\n");
        }
        self.mark.block = to + 1;
        (began, bytes)
    }

    /// Chunked, as providers send audio whose length they do not know yet. The head comes with the first block, as with those who
    /// make the audio first.
    fn begin(&self, handed_ns: u64, out: &mut Vec<u8>) {
        let took_ns = handed_ns - self.mark.read_ns;
        begin(out, "200 OK", "audio/pcm", self.keep_alive);
        let took_ms = format_args!("{}.{:06}", took_ns / 1_000_000, took_ns % 1_000_000);
        header(out, PROVIDER_MS, took_ms);
        out.extend_from_slice(b"transfer-encoding: chunked\r\n\r\n");
    }

    async fn send(
        &mut self,
        connection: &mut Connection,
        began: usize,
        bytes: usize,
    ) -> Result<(), Gone> {
        let mut sent = 0;
        let result = connection.send(&mut sent).await;
        let accepted = sent.saturating_sub(began).min(bytes);
        self.shared.book().stats.accepted(self.provider, accepted);
        if result? {
            self.free_at = Instant::now();
        }
        Ok(())
    }
}
