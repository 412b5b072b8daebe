//! Whole numbers in decimal digits, as text protocols write them.

/// Appends the digits of `number`.
pub(crate) fn write(out: &mut Vec<u8>, mut number: u64) {
    let mut digits = [0; 20];
    let mut at = digits.len();
    loop {
        at -= 1;
        digits[at] = b'0' + (number % 10) as u8;
        number /= 10;
        if number == 0 {
            break;
        }
    }
    out.extend_from_slice(&digits[at..]);
}

/// How many digits `number` has.
pub(crate) fn digits(number: u64) -> u64 {
    number
        .checked_ilog10()
        .map_or(1, |power| u64::from(power) + 1)
}

/// The number that these digits are. `None` for anything else, and for a number above `u64::MAX`.
pub(crate) fn read(digits: &[u8]) -> Option<u64> {
    if digits.is_empty() {
        return None;
    }
    digits.iter().try_fold(0u64, |number, digit| {
        if !digit.is_ascii_digit() {
            return None;
        }
        number.checked_mul(10)?.checked_add(u64::from(digit - b'0'))
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn numbers_come_back(number in any::<u64>()) {
            let mut out = Vec::new();
            write(&mut out, number);
            prop_assert_eq!(read(&out), Some(number));
            prop_assert_eq!(digits(number), out.len() as u64);
        }
    }

    #[test]
    fn what_is_no_plain_number_is_refused() {
        for text in ["", "+5", "-1", " 5", "5 ", "0x5", "18446744073709551616"] {
            assert_eq!(read(text.as_bytes()), None, "{text}");
        }
        assert_eq!(read(b"18446744073709551615"), Some(u64::MAX));
        assert_eq!(read(b"007"), Some(7));
        assert_eq!((digits(0), digits(9), digits(10)), (1, 1, 2));
    }
}
