//! The admission webhook of `ambit`: the decision of the command line, taken for an API server.
//!
//! [`wire`] reads reviews and writes answers, [`scope`] and [`unchanged`] say what has to be judged,
//! [`answer`] words a decision, and [`layer`] keeps what is known of images.

pub mod answer;
pub mod layer;
pub mod scope;
pub mod unchanged;
pub mod wire;
