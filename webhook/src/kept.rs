//! What is read from files that somebody else keeps up to date.
//!
//! # Invariants
//!
//! - What can't be read never replaces what could.
//! - Contents decide what changed, not times: a mounted ConfigMap or Secret changes by a link that
//!   leads elsewhere.

use std::sync::{Arc, PoisonError, RwLock};

use ambit_setup::{Failure, Files};

/// What counts now, with what it was read from.
#[derive(Debug)]
pub struct Kept<T> {
    state: RwLock<State<T>>,
}

#[derive(Debug)]
struct State<T> {
    current: Option<Arc<T>>,
    /// What the last attempt looked at; `None` before the first.
    looked_at: Option<Files>,
    problem: Option<Failure>,
    count: u64,
}

impl<T> Default for Kept<T> {
    fn default() -> Self {
        let state = State { current: None, looked_at: None, problem: None, count: 0 };
        Self { state: RwLock::new(state) }
    }
}

/// What came of looking whether something changed.
#[derive(Debug)]
pub enum Turn<T> {
    /// Nothing did.
    Same,
    /// There is a new one.
    New(Arc<T>),
    /// What is there now can't be used; the old one stays.
    Bad(Failure),
}

impl<T> Kept<T> {
    /// Returns what counts now, if there is something.
    #[must_use]
    pub fn current(&self) -> Option<Arc<T>> {
        self.state.read().unwrap_or_else(PoisonError::into_inner).current.clone()
    }

    /// Returns why what is there now can't be used, if so.
    #[must_use]
    pub fn problem(&self) -> Option<Failure> {
        self.state.read().unwrap_or_else(PoisonError::into_inner).problem.clone()
    }

    /// Returns how many there were.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.state.read().unwrap_or_else(PoisonError::into_inner).count
    }

    /// Looks whether a file changed, and reads anew by `read` if so. `read` remembers what it looks
    /// at in [`Files`], also where it fails.
    pub fn turn(&self, read: impl FnOnce(&mut Files) -> Result<T, Failure>) -> Turn<T> {
        let looked_at = {
            let state = self.state.read().unwrap_or_else(PoisonError::into_inner);
            state.looked_at.clone()
        };
        if looked_at.is_some_and(|files| !files.changed()) {
            return Turn::Same;
        }
        let mut files = Files::default();
        let read = read(&mut files);
        let mut state = self.state.write().unwrap_or_else(PoisonError::into_inner);
        state.looked_at = Some(files);
        match read {
            Ok(new) => {
                let new = Arc::new(new);
                state.current = Some(Arc::clone(&new));
                state.problem = None;
                state.count = state.count.saturating_add(1);
                Turn::New(new)
            }
            Err(failure) => {
                state.problem = Some(failure.clone());
                Turn::Bad(failure)
            }
        }
    }
}
