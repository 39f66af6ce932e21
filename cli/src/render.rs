//! Documents into text: for people, for code scanning, for test reports and for pull requests.

pub(crate) mod github;
pub(crate) mod human;
pub(crate) mod inspect;
pub(crate) mod junit;
pub(crate) mod markdown;
pub(crate) mod reach;
pub(crate) mod record;
pub(crate) mod sarif;
pub(crate) mod snippet;
pub(crate) mod style;
pub(crate) mod verify;
