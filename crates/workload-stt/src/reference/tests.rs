use proptest::prelude::*;

use super::*;
use crate::synthetic::Synthetic;

/// The contract's words, once more and as naively as they can be written.
fn by_the_letter(pcm: &[u8], passes: u32) -> Answer {
    let xs: Vec<i64> = pcm
        .chunks(2)
        .map(|b| i64::from(i16::from_le_bytes([b[0], b[1]])))
        .collect();
    let (mut checksum, mut crossings, mut count, mut squares) =
        (2_166_136_261_u64, 0, 0_u64, 0.0_f64);
    let mut last: Option<i64> = None;
    for pass in 0..i64::from(passes) {
        for &x in &xs {
            checksum ^= ((x + 32768 + pass) & 0xFFFF).cast_unsigned();
            checksum = checksum * 16_777_619 % (1 << 32);
            crossings += u64::from(last.is_some_and(|last| (last < 0) != (x < 0)));
            last = Some(x);
            count += 1;
            squares += (x * x) as f64;
        }
    }
    Answer {
        rms: if count == 0 {
            0.0
        } else {
            (squares / count as f64).sqrt()
        },
        zero_crossings: crossings,
        checksum: u32::try_from(checksum).expect("taken mod 2^32"),
        samples: count,
        transcript: WORDS[(checksum % 24) as usize].into(),
        audio_bytes: pcm.len() as u64,
    }
}

#[test]
fn the_golden_vector_of_the_contract() {
    let synthetic = Synthetic::new();
    let answer = compute(synthetic.frame(0, 1), 4).expect("640 bytes are even");
    assert_eq!(
        answer,
        Answer {
            rms: 2_425.502_319_108_353_3,
            zero_crossings: 7,
            checksum: 1_745_339_397,
            samples: 1280,
            transcript: "now".into(),
            audio_bytes: 640,
        }
    );
}

#[test]
fn an_odd_length_is_refused_by_both() {
    assert_eq!(compute(&[1, 2, 3], 4), Err(OddLength { bytes: 3 }));
    let answers = compute_interleaved(&[(&[1, 2, 3], 4), (&[1, 2], 4)], &mut Scratch::new());
    assert_eq!(answers, [Err(OddLength { bytes: 3 }), compute(&[1, 2], 4)]);
}

#[test]
fn no_passes_is_an_empty_computation() {
    assert_eq!(
        compute(&[1, 2], 0).expect("even"),
        by_the_letter(&[1, 2], 0)
    );
}

#[test]
fn a_pass_number_over_16_bits_wraps() {
    let pcm = [0, 1, 2, 3];
    assert_eq!(checksum(&pcm, 65_540), by_the_letter(&pcm, 65_540).checksum);
    assert_eq!(
        checksums_interleaved(&[(&pcm, 65_540), (&pcm, 3)], &mut Scratch::new()),
        [checksum(&pcm, 65_540), checksum(&pcm, 3)]
    );
}

#[test]
fn answers_survive_json_to_the_last_bit() {
    let synthetic = Synthetic::new();
    for session in 0..200 {
        let answer = compute(synthetic.frame(session, 7), 3).expect("even");
        let text = serde_json::to_vec(&answer).expect("an answer is plain data");
        assert_eq!(Answer::from_json(&text), Ok(answer));
    }
}

fn batch() -> impl Strategy<Value = (Vec<u8>, u32)> {
    let sample =
        prop_oneof![4 => any::<i16>(), 1 => Just(i16::MIN), 1 => Just(i16::MAX), 1 => -1_i16..=1];
    (prop::collection::vec(sample, 0..200), 0_u32..6).prop_map(|(samples, passes)| {
        (
            samples.iter().flat_map(|x| x.to_le_bytes()).collect(),
            passes,
        )
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn compute_is_the_contract_to_the_letter((pcm, passes) in batch()) {
        prop_assert_eq!(compute(&pcm, passes).expect("even"), by_the_letter(&pcm, passes));
    }

    #[test]
    fn interleaved_is_equal_to_one_by_one(
        rounds in prop::collection::vec(prop::collection::vec(batch(), 0..40), 1..3),
    ) {
        // One scratch for all rounds: what an earlier round left in it must not show.
        let mut scratch = Scratch::new();
        for batches in rounds {
            let borrowed: Vec<(&[u8], u32)> = batches.iter().map(|(pcm, passes)| (&pcm[..], *passes)).collect();
            let expected: Vec<_> = borrowed.iter().map(|&(pcm, passes)| compute(pcm, passes)).collect();
            prop_assert_eq!(compute_interleaved(&borrowed, &mut scratch), expected);
        }
    }
}

#[test]
fn sums_stay_exact_beyond_one_block() {
    // Longer than a block of the summing loop and full scale throughout, with a crossing at every step.
    let pcm: Vec<u8> = (0..5000)
        .flat_map(|n| (if n % 2 == 0 { i16::MIN } else { i16::MAX }).to_le_bytes())
        .collect();
    assert_eq!(compute(&pcm, 3).expect("even"), by_the_letter(&pcm, 3));
}
