//! Several checksum chains side by side; the arithmetic is explained in the parent module.

use super::{FNV_OFFSET, FNV_PRIME, biased, checksum, samples};

/// Batches that [`checksums_interleaved`] takes through one round: hand it this many at a time for the best speed.
pub const LANES: usize = 16;

/// Lanes of the smaller round, for a handful of batches.
const FEW_LANES: usize = 8;

/// Below this many batches the plain chain is the faster one: a vector step waits longer than a scalar step.
const MIN_BATCHES: usize = 2;

/// Rows turned at a time: small enough that they stay in the first-level cache until every lane has written them.
const ROWS_PER_TILE: usize = 64;

/// The low half of [`FNV_PRIME`]; the rest of it is the single bit `2^24`.
const PRIME_LOW: u16 = 0x0193;
const _: () = assert!(FNV_PRIME == (1 << 24) + PRIME_LOW as u32);

/// Working memory of [`checksums_interleaved`]. It grows to the longest batches seen and stays.
#[derive(Debug, Default)]
pub struct Scratch {
    wide: Vec<[u16; LANES]>,
    narrow: Vec<[u16; FEW_LANES]>,
}

impl Scratch {
    /// Empty working memory.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }
}

/// The checksums of several batches, each with its number of passes, in their order. Lengths and passes may differ;
/// a round costs what its longest batch costs, so batches of like length go best together. A last odd byte of a
/// batch is not a sample and is left out.
pub fn checksums_interleaved(batches: &[(&[u8], u32)], scratch: &mut Scratch) -> Vec<u32> {
    let mut checksums = Vec::with_capacity(batches.len());
    for round in batches.chunks(LANES) {
        if round.len() < MIN_BATCHES {
            checksums.extend(round.iter().map(|&(pcm, passes)| checksum(pcm, passes)));
        } else if round.len() <= FEW_LANES {
            checksums.extend_from_slice(
                &Round::<FEW_LANES>::run(round, &mut scratch.narrow)[..round.len()],
            );
        } else {
            checksums
                .extend_from_slice(&Round::<LANES>::run(round, &mut scratch.wide)[..round.len()]);
        }
    }
    checksums
}

/// The state of `N` chains, split in halves so that 16-bit vector multiplies carry it.
struct Round<const N: usize> {
    low: [u16; N],
    high: [u16; N],
}

impl<const N: usize> Round<N> {
    fn run(batches: &[(&[u8], u32)], rows: &mut Vec<[u16; N]>) -> [u32; N] {
        debug_assert!(batches.len() <= N);
        transpose(batches, rows);
        let mut lengths = [0_usize; N];
        let mut passes = [0_u32; N];
        for (lane, &(pcm, lane_passes)) in batches.iter().enumerate() {
            lengths[lane] = pcm.len() / 2;
            passes[lane] = lane_passes;
        }
        // Lanes without a batch never hold the others back: their state is not read.
        for lane in batches.len()..N {
            lengths[lane] = lengths[0];
            passes[lane] = passes[0];
        }
        let mut round = Self {
            low: [(FNV_OFFSET & 0xFFFF) as u16; N],
            high: [(FNV_OFFSET >> 16) as u16; N],
        };
        for pass in 0..passes.iter().copied().max().unwrap_or(0) {
            let active: [usize; N] = std::array::from_fn(|lane| {
                if pass < passes[lane] {
                    lengths[lane]
                } else {
                    0
                }
            });
            round.pass(rows, &active, pass as u16);
        }
        std::array::from_fn(|lane| u32::from(round.high[lane]) << 16 | u32::from(round.low[lane]))
    }

    /// One pass: rows that every lane has go without a mask, then the rows of the longer lanes.
    fn pass(&mut self, rows: &[[u16; N]], lengths: &[usize; N], pass: u16) {
        let mut ends = *lengths;
        ends.sort_unstable();
        self.steps(&rows[..ends[0]], pass);
        for pair in ends.windows(2) {
            let (start, end) = (pair[0], pair[1]);
            if start < end {
                let mask =
                    std::array::from_fn(|lane| if lengths[lane] >= end { 0xFFFF } else { 0 });
                self.steps_masked(&rows[start..end], pass, &mask);
            }
        }
    }

    fn steps(&mut self, rows: &[[u16; N]], pass: u16) {
        let (mut low, mut high) = (self.low, self.high);
        for row in rows {
            (low, high) = step(&low, &high, row, pass);
        }
        (self.low, self.high) = (low, high);
    }

    fn steps_masked(&mut self, rows: &[[u16; N]], pass: u16, mask: &[u16; N]) {
        let (mut low, mut high) = (self.low, self.high);
        for row in rows {
            let (next_low, next_high) = step(&low, &high, row, pass);
            for lane in 0..N {
                low[lane] = next_low[lane] & mask[lane] | low[lane] & !mask[lane];
                high[lane] = next_high[lane] & mask[lane] | high[lane] & !mask[lane];
            }
        }
        (self.low, self.high) = (low, high);
    }
}

/// One step of `N` chains. Plain loops over arrays: the compiler makes vector instructions of them.
#[inline(always)]
fn step<const N: usize>(
    low: &[u16; N],
    high: &[u16; N],
    row: &[u16; N],
    pass: u16,
) -> ([u16; N], [u16; N]) {
    let mut next_low = [0; N];
    let mut next_high = [0; N];
    for lane in 0..N {
        let mixed = low[lane] ^ row[lane].wrapping_add(pass);
        let carry = ((u32::from(mixed) * u32::from(PRIME_LOW)) >> 16) as u16;
        next_low[lane] = mixed.wrapping_mul(PRIME_LOW);
        next_high[lane] = high[lane]
            .wrapping_mul(PRIME_LOW)
            .wrapping_add(carry)
            .wrapping_add(mixed << 8);
    }
    (next_low, next_high)
}

/// Turns the batches so that row `i` holds sample `i` of every batch, biased to 0..65536. Done once for all passes.
fn transpose<const N: usize>(batches: &[(&[u8], u32)], rows: &mut Vec<[u16; N]>) {
    let longest = batches
        .iter()
        .map(|(pcm, _)| pcm.len() / 2)
        .max()
        .unwrap_or(0);
    if rows.len() < longest {
        rows.resize(longest, [0; N]);
    }
    for (tile_index, tile) in rows[..longest].chunks_mut(ROWS_PER_TILE).enumerate() {
        let start = tile_index * ROWS_PER_TILE * 2;
        for (lane, &(pcm, _)) in batches.iter().enumerate() {
            for (row, sample) in tile
                .iter_mut()
                .zip(samples(pcm.get(start..).unwrap_or_default()))
            {
                row[lane] = biased(sample);
            }
        }
    }
}
