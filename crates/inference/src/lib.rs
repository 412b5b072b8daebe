//! The inference simulator: the back end of the streaming speech-to-text workload.
