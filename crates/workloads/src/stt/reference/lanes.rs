//! Several checksum chains side by side; the arithmetic is explained in the parent module.

use wide::u16x8;

use super::{FNV_OFFSET, FNV_PRIME, biased, checksum, samples};

/// Batches that [`checksums_interleaved`] takes through one round: hand it this many at a time for the best speed.
pub const LANES: usize = 16;

/// Lanes of one vector, and of the smaller round for a handful of batches.
const VECTOR_LANES: usize = 8;

/// Sample `i` of every batch of a round of `V` vectors.
type Row<const V: usize> = [u16x8; V];

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
    wide: Vec<Row<2>>,
    narrow: Vec<Row<1>>,
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
        } else if round.len() <= VECTOR_LANES {
            Round::<1>::run(round, &mut scratch.narrow, &mut checksums);
        } else {
            Round::<2>::run(round, &mut scratch.wide, &mut checksums);
        }
    }
    checksums
}

/// The state of `V` vectors of chains, split in halves so that 16-bit multiplies carry it.
struct Round<const V: usize> {
    low: [u16x8; V],
    high: [u16x8; V],
}

impl<const V: usize> Round<V> {
    /// Appends the checksums of one round.
    fn run(batches: &[(&[u8], u32)], rows: &mut Vec<Row<V>>, checksums: &mut Vec<u32>) {
        debug_assert!((1..=V * VECTOR_LANES).contains(&batches.len()));
        transpose(batches, rows);
        // Lanes without a batch never hold the others back: their state is not read.
        let (first_pcm, first_passes) = batches[0];
        let mut lengths = [[first_pcm.len() / 2; VECTOR_LANES]; V];
        let mut passes = [[first_passes; VECTOR_LANES]; V];
        for (lane, &(pcm, lane_passes)) in batches.iter().enumerate() {
            lengths.as_flattened_mut()[lane] = pcm.len() / 2;
            passes.as_flattened_mut()[lane] = lane_passes;
        }
        let mut round = Self {
            low: [u16x8::splat((FNV_OFFSET & 0xFFFF) as u16); V],
            high: [u16x8::splat((FNV_OFFSET >> 16) as u16); V],
        };
        for pass in 0..passes.as_flattened().iter().copied().max().unwrap_or(0) {
            let mut active = lengths;
            for (length, &lane_passes) in active
                .as_flattened_mut()
                .iter_mut()
                .zip(passes.as_flattened())
            {
                *length = if pass < lane_passes { *length } else { 0 };
            }
            round.pass(rows, &active, pass as u16);
        }
        let (low, high) = (
            round.low.map(u16x8::to_array),
            round.high.map(u16x8::to_array),
        );
        let halves = low.as_flattened().iter().zip(high.as_flattened());
        checksums.extend(
            halves
                .take(batches.len())
                .map(|(&low, &high)| (u32::from(high) << 16) | u32::from(low)),
        );
    }

    /// One pass: rows that every lane has go without a mask, then the rows of the longer lanes.
    fn pass(&mut self, rows: &[Row<V>], lengths: &[[usize; VECTOR_LANES]; V], pass: u16) {
        let mut ends = *lengths;
        let ends = ends.as_flattened_mut();
        ends.sort_unstable();
        self.steps(&rows[..ends[0]], pass);
        for pair in ends.windows(2) {
            let (start, end) = (pair[0], pair[1]);
            if start < end {
                let mask = lengths.map(|lengths| {
                    u16x8::new(lengths.map(|length| if length >= end { 0xFFFF } else { 0 }))
                });
                self.steps_masked(&rows[start..end], pass, &mask);
            }
        }
    }

    fn steps(&mut self, rows: &[Row<V>], pass: u16) {
        let (mut low, mut high) = (self.low, self.high);
        let pass = u16x8::splat(pass);
        for row in rows {
            for v in 0..V {
                (low[v], high[v]) = step(low[v], high[v], row[v] + pass);
            }
        }
        (self.low, self.high) = (low, high);
    }

    fn steps_masked(&mut self, rows: &[Row<V>], pass: u16, mask: &[u16x8; V]) {
        let (mut low, mut high) = (self.low, self.high);
        let pass = u16x8::splat(pass);
        for row in rows {
            for v in 0..V {
                let (next_low, next_high) = step(low[v], high[v], row[v] + pass);
                low[v] = mask[v].blend(next_low, low[v]);
                high[v] = mask[v].blend(next_high, high[v]);
            }
        }
        (self.low, self.high) = (low, high);
    }
}

/// One step of eight chains.
#[inline(always)]
fn step(low: u16x8, high: u16x8, operand: u16x8) -> (u16x8, u16x8) {
    let prime = u16x8::splat(PRIME_LOW);
    let mixed = low ^ operand;
    (
        mixed * prime,
        high * prime + mixed.mul_keep_high(prime) + (mixed << 8),
    )
}

/// Turns the batches so that row `i` holds sample `i` of every batch, biased to 0..65536. Done once for all passes.
fn transpose<const V: usize>(batches: &[(&[u8], u32)], rows: &mut Vec<Row<V>>) {
    let longest = batches
        .iter()
        .map(|(pcm, _)| pcm.len() / 2)
        .max()
        .unwrap_or(0);
    if rows.len() < longest {
        rows.resize(longest, [u16x8::ZERO; V]);
    }
    for (tile_index, tile) in rows[..longest].chunks_mut(ROWS_PER_TILE).enumerate() {
        let start = tile_index * ROWS_PER_TILE * 2;
        for (lane, &(pcm, _)) in batches.iter().enumerate() {
            let (vector, lane) = (lane / VECTOR_LANES, lane % VECTOR_LANES);
            for (row, sample) in tile
                .iter_mut()
                .zip(samples(pcm.get(start..).unwrap_or_default()))
            {
                row[vector].as_array_mut()[lane] = biased(sample);
            }
        }
    }
}
