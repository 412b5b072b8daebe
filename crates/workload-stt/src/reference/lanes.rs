//! Several checksum chains side by side; the arithmetic is explained in the parent module.

use super::{FNV_OFFSET, FNV_PRIME, biased, checksum, samples};

/// Batches that [`checksums_interleaved`] takes through one round: hand it this many at a time for the best speed.
/// Thirty-two are a fifth cheaper by themselves, but the simulator that collects so many pays more for its memory.
pub const LANES: usize = 16;

/// The lanes of smaller rounds.
const FEW_LANES: usize = 8;

/// Sample `i` of every batch of a round.
type Row<const N: usize> = [u16; N];

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
    wide: Vec<Row<LANES>>,
    narrow: Vec<Row<FEW_LANES>>,
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
            Round::run(round, &mut scratch.narrow, &mut checksums);
        } else {
            Round::run(round, &mut scratch.wide, &mut checksums);
        }
    }
    checksums
}

/// The state of `N` chains, split in halves so that 16-bit multiplies carry it. The loops over lanes are of a fixed
/// length and without branches, so the compiler makes vector instructions of them.
struct Round<const N: usize> {
    low: [u16; N],
    high: [u16; N],
}

impl<const N: usize> Round<N> {
    /// Appends the checksums of one round.
    fn run(batches: &[(&[u8], u32)], rows: &mut Vec<Row<N>>, checksums: &mut Vec<u32>) {
        debug_assert!((1..=N).contains(&batches.len()));
        transpose(batches, rows);
        // Lanes without a batch never hold the others back: their state is not read.
        let (first_pcm, first_passes) = batches[0];
        let mut lengths = [first_pcm.len() / 2; N];
        let mut passes = [first_passes; N];
        for (lane, &(pcm, lane_passes)) in batches.iter().enumerate() {
            lengths[lane] = pcm.len() / 2;
            passes[lane] = lane_passes;
        }
        let mut round = Self {
            low: [(FNV_OFFSET & 0xFFFF) as u16; N],
            high: [(FNV_OFFSET >> 16) as u16; N],
        };
        for pass in 0..passes.iter().copied().max().unwrap_or(0) {
            let mut active = lengths;
            for (length, &lane_passes) in active.iter_mut().zip(&passes) {
                *length = if pass < lane_passes { *length } else { 0 };
            }
            round.pass(rows, &active, pass as u16);
        }
        let halves = round.low.iter().zip(&round.high);
        checksums.extend(
            halves
                .take(batches.len())
                .map(|(&low, &high)| (u32::from(high) << 16) | u32::from(low)),
        );
    }

    /// One pass: rows that every lane has go without a mask, then the rows of the longer lanes.
    fn pass(&mut self, rows: &[Row<N>], lengths: &[usize; N], pass: u16) {
        let mut ends = *lengths;
        ends.sort_unstable();
        self.steps(&rows[..ends[0]], pass);
        for pair in ends.windows(2) {
            let (start, end) = (pair[0], pair[1]);
            if start < end {
                let mask = lengths.map(|length| if length >= end { 0xFFFF } else { 0 });
                self.steps_masked(&rows[start..end], pass, &mask);
            }
        }
    }

    fn steps(&mut self, rows: &[Row<N>], pass: u16) {
        let (mut low, mut high) = (self.low, self.high);
        for row in rows {
            for lane in 0..N {
                let operand = row[lane].wrapping_add(pass);
                (low[lane], high[lane]) = step(low[lane], high[lane], operand);
            }
        }
        (self.low, self.high) = (low, high);
    }

    fn steps_masked(&mut self, rows: &[Row<N>], pass: u16, mask: &[u16; N]) {
        let (mut low, mut high) = (self.low, self.high);
        for row in rows {
            for lane in 0..N {
                let operand = row[lane].wrapping_add(pass);
                let (next_low, next_high) = step(low[lane], high[lane], operand);
                let mask = mask[lane];
                low[lane] = (next_low & mask) | (low[lane] & !mask);
                high[lane] = (next_high & mask) | (high[lane] & !mask);
            }
        }
        (self.low, self.high) = (low, high);
    }
}

/// One step of a chain.
#[inline(always)]
fn step(low: u16, high: u16, operand: u16) -> (u16, u16) {
    let mixed = low ^ operand;
    let product = u32::from(mixed) * u32::from(PRIME_LOW);
    let carried = ((product >> 16) as u16).wrapping_add(mixed << 8);
    (
        product as u16,
        high.wrapping_mul(PRIME_LOW).wrapping_add(carried),
    )
}

/// Turns the batches so that row `i` holds sample `i` of every batch, biased to 0..65536. Done once for all passes.
fn transpose<const N: usize>(batches: &[(&[u8], u32)], rows: &mut Vec<Row<N>>) {
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
