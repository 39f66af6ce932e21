//! The registry client against a registry that can misbehave.
#![expect(
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects,
    reason = "helpers of tests may fail loudly"
)]

#[path = "registry/addresses.rs"]
mod addresses;
#[path = "registry/login.rs"]
mod login;
#[path = "registry/push.rs"]
mod push;
#[path = "registry/reads.rs"]
mod reads;
#[path = "registry/real.rs"]
mod real;
#[path = "registry/redirects.rs"]
mod redirects;
#[path = "registry/referrers.rs"]
mod referrers;
#[path = "registry/resilience.rs"]
mod resilience;
#[path = "registry/secrets.rs"]
mod secrets;
#[path = "registry/support.rs"]
mod support;
#[path = "registry/tls.rs"]
mod tls;
