//! What the tests of several crates share. Nothing shipped depends on it.

pub mod admit;
pub mod mint;
pub mod registry;
