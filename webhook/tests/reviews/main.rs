//! The webhook against what an API server sends, over its own HTTPS listener, with a registry on
//! loopback.
#![expect(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "helpers of tests may fail loudly"
)]

mod api_server;
mod bypass;
mod golden;
mod transport;
mod tree;
mod world;

use std::path::PathBuf;

/// Returns a path under the test data.
fn testdata(path: &str) -> PathBuf {
    PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../testdata")).join(path)
}
