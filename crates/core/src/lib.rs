//! The pure heart of Plimsoll: schedule, ledger, latency, SLO, search, records. No I/O, no clock of its own.
