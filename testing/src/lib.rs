//! What the tests of several crates share. Nothing shipped depends on it.

pub mod mint;
pub mod registry;
