//! The work that a probe of the machine times. It is here, and not where the clock is, because this crate is optimised in
//! every build.

use std::hint::black_box;

/// The index of the next cell in each of so many. They form one circle (Sattolo's shuffle), always the same.
#[must_use]
pub fn circle(cells: u32) -> Vec<u32> {
    let mut next: Vec<u32> = (0..cells).collect();
    let mut random = 1u64;
    let mut last = next.len();
    while last > 1 {
        last -= 1;
        // Knuth's MMIX generator. Its high bits are good enough to scatter the cells.
        random = random
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        let other = (random >> 33) as usize % last;
        // Without calls, so that also a dev build reads several cells at once.
        (next[last], next[other]) = (next[other], next[last]);
    }
    next
}

/// Multiplies so many times, each time what came of the last one, and gives the product.
#[must_use]
pub fn multiplied(times: u32, factor: u64) -> u64 {
    let mut product = factor;
    for _ in 0..times {
        product = black_box(product.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
    }
    product
}

/// Goes so many steps through a [`circle`], from this cell on, and gives the cell where it ends.
///
/// # Panics
/// If the cell is outside it.
#[must_use]
pub fn walked(circle: &[u32], steps: u32, from: u32) -> u32 {
    let mut cell = from;
    for _ in 0..steps {
        cell = circle[cell as usize];
    }
    cell
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_goes_through_every_cell() {
        let circle = circle(2_000);
        let first_back = (1..=2_000).find(|steps| walked(&circle, *steps, 0) == 0);
        assert_eq!(first_back, Some(2_000));
    }
}
