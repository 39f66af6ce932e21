//! The admission webhook of `ambit`: the decision of the command line, taken for an API server.
//!
//! [`wire`] reads reviews and writes answers, [`scope`] and [`unchanged`] say what has to be judged,
//! [`supply`] finds out about images in the time that there is, [`review`] decides through the
//! engine, [`mutate`] pins tags, [`answer`] words it. [`service`] is all of that without a socket;
//! [`server`] and [`tls`] put it on one.
//!
//! Left out on purpose: any knowledge about components and rules, which is the engine's, and running
//! anything.

pub mod answer;
pub mod kept;
pub mod layer;
pub mod log;
pub mod metrics;
pub mod mutate;
pub mod review;
pub mod scope;
pub mod server;
pub mod service;
pub mod settings;
pub mod supply;
pub mod tls;
pub mod unchanged;
pub mod wire;
