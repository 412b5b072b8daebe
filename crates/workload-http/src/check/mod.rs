//! The cases of the contract, for `plimsoll check`.
