//! A process of its own for each workload.
//!
//! The parent keeps what matters beyond one workload: the record, the secrets that leave in
//! headers, the network, the terminal. The worker gets the compiled components with what their
//! workload is granted, gives up everything else before it looks at them ([`Confined`] says how far
//! the kernel lets it), and asks the parent over a channel. A worker that dies ends its workload
//! and no other.
//!
//! What a worker says is hostile: messages are bounded, name components of its workload only, and
//! each request that it wants sent is decided on again.

mod channel;
mod confine;
mod message;
mod parent;
mod pool;
mod relay;
mod remote;
#[cfg(all(test, target_os = "linux"))]
#[expect(
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "the parts that other processes play may fail loudly"
)]
mod tests;
mod worker;

pub use confine::{Confined, Wall};
pub use message::Entry;
pub use parent::{Ground, Isolated, Launch};
pub use worker::work;
