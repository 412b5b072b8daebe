//! Lies about results.

use super::{Lie, Lies};
use crate::messages::{self, SttResult};

/// What goes out for a result: nothing, or texts.
#[must_use]
pub fn texts(lies: &Lies, result: &SttResult) -> Vec<String> {
    let claimed = SttResult { provider_ms: lies.claimed_ms(result.provider_ms), ..result.clone() };
    let text = messages::stt_result(&claimed);
    // A turn has one result that ends it.
    let of_results = [Lie::SkipResult, Lie::DoubleResult, Lie::BareResult];
    let struck = result.is_speech_final && of_results.into_iter().any(|lie| lies.strikes(lie));
    match lies.plan.lie {
        Lie::SkipResult if struck => Vec::new(),
        Lie::DoubleResult if struck => vec![text.clone(), text],
        Lie::BareResult if struck => vec![r#"{"type":"stt_result","is_final":true,"is_speech_final":true}"#.to_owned()],
        _ => vec![text],
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lies::Plan;

    fn counts(lie: Lie) -> Vec<usize> {
        let mut plan = Plan::of(lie);
        plan.numbers.every = plan.numbers.every.map(|_| 2);
        let lies = Lies::new(plan);
        let result = |last| SttResult {
            transcript: "hello".to_owned(),
            is_final: last,
            is_speech_final: last,
            confidence: 0.9,
            provider_ms: 5.0,
        };
        [false, true, false, true].map(|last| texts(&lies, &result(last)).len()).to_vec()
    }

    #[test]
    fn every_second_final_result_is_struck() {
        assert_eq!(counts(Lie::None), [1, 1, 1, 1]);
        assert_eq!(counts(Lie::SkipResult), [1, 1, 1, 0]);
        assert_eq!(counts(Lie::DoubleResult), [1, 1, 1, 2]);
        assert_eq!(counts(Lie::BareResult), [1, 1, 1, 1]);
    }
}
