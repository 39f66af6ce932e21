//! The commands: arguments in, engine asked, answer printed.

pub(crate) mod artifact;
pub(crate) mod check;
pub(crate) mod explain;
pub(crate) mod inspect;
pub(crate) mod keygen;
pub(crate) mod pin;
pub(crate) mod policy;
pub(crate) mod reach;
pub(crate) mod record;
pub(crate) mod run;
pub(crate) mod shell;
pub(crate) mod sign;
pub(crate) mod verify;
