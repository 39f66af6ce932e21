//! What a WebAssembly component can reach, and whether policy allows it.
//!
//! Everything here is a pure function over bytes and values: no files, sockets, clock, environment
//! or logging. The one exception is policy evaluation, which runs on a scoped thread with a known
//! stack size, since a policy engine must not be able to overflow its caller's.

pub mod admitted;
pub mod capability;
pub mod catalogue;
mod ceiling;
pub mod component;
pub mod config;
pub mod decision;
pub mod digest;
pub mod document;
pub mod evidence;
pub mod grant;
pub mod input;
pub mod interface;
pub mod limits;
pub mod policy;
pub mod reach;
pub mod reference;
pub mod report;
pub mod review;
pub mod workload;
