//! (search)
