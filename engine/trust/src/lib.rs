//! Evidence about a component: where its bytes come from, who signed them, what was attested.
//!
//! This crate reads OCI registries and layouts, finds signatures and attestations, verifies them,
//! and makes them. It never decides: it hands [`ambit_engine`] what it found, each candidate with
//! a code. Registry and disk are asynchronous; [`verify`] and [`policy`] are pure functions that
//! take the time as an argument.
//!
//! Invariants: a tag is resolved once, by hashing the bytes that came; everything after names a
//! digest. An outage is an error and never reads as "unsigned". Only [`verify`] makes a
//! [`verify::Verified`].

pub mod attach;
pub mod cache;
pub mod candidate;
pub mod discover;
mod disk;
pub mod error;
pub mod gather;
pub mod keys;
pub mod layout;
pub mod manifest;
pub mod oci;
mod overlap;
pub mod policy;
pub mod registry;
pub mod resolve;
pub mod sign;
pub mod store;
pub mod stores;
pub mod tuf;
pub mod verify;
