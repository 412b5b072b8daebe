//! A way through all cells of a table that no prefetcher can foresee: the probe of a machine's memory walks it.

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_goes_through_every_cell() {
        let circle = circle(10_000);
        let (mut cell, mut steps) = (0, 0);
        loop {
            cell = circle[cell as usize];
            steps += 1;
            if cell == 0 {
                break;
            }
        }
        assert_eq!(steps, circle.len());
    }
}
