//! A message broker that is honest until `FAULT` names a fault; then it has that one and no other.

pub mod faults;
