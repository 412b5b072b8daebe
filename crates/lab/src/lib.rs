//! The laboratory: targets, isolation, resource sampling, trials.
