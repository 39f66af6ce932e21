//! Runs components under wasmtime with exactly what a decision admitted.
