//! What is remembered about one registry: how many calls run, how it answered lately, and how many
//! retries it may still cost.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::Semaphore;

use super::time::Timer;

/// When a registry that doesn't answer is left alone.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct BreakerOptions {
    /// Calls in a row without an answer after which no more are made.
    pub failures: u32,
    /// How long none is made. Then one is tried, and its outcome decides.
    pub pause: Duration,
}

impl Default for BreakerOptions {
    fn default() -> Self {
        Self { failures: 5, pause: Duration::from_secs(30) }
    }
}

/// How often a read is tried.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct RetryOptions {
    /// Tries of one read, the first included.
    pub tries: u32,
    /// The pause before the second try, twice that before the third, and so on; chance takes up to
    /// half of it away.
    pub pause: Duration,
    /// Retries that one registry may cost in a row; ten reads that worked earn one back.
    pub budget: u32,
}

impl Default for RetryOptions {
    fn default() -> Self {
        Self { tries: 3, pause: Duration::from_millis(200), budget: 20 }
    }
}

/// What a retry costs and a read that worked earns, in tenths.
const RETRY: u32 = 10;

pub(super) struct Registry {
    pub(super) calls: Arc<Semaphore>,
    breaker: BreakerOptions,
    retries: RetryOptions,
    state: Mutex<State>,
}

struct State {
    circuit: Circuit,
    budget: u32,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Circuit {
    Closed { failures: u32 },
    Open { until: Duration },
    Probing,
}

/// How a call ended, for the breaker.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Outcome {
    Answered,
    Silent,
}

impl Registry {
    pub(super) fn new(concurrency: usize, breaker: BreakerOptions, retries: RetryOptions) -> Self {
        let calls = Arc::new(Semaphore::new(concurrency.clamp(1, Semaphore::MAX_PERMITS)));
        let budget = retries.budget.saturating_mul(RETRY);
        let state = Mutex::new(State { circuit: Circuit::Closed { failures: 0 }, budget });
        Self { calls, breaker, retries, state }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether nothing here is worth keeping.
    pub(super) fn is_idle(&self) -> bool {
        let state = self.state();
        state.circuit == Circuit::Closed { failures: 0 }
    }

    /// Lets a call through, or says how long none will be.
    pub(super) fn admit<'a>(&'a self, timer: &'a dyn Timer) -> Result<Pass<'a>, Duration> {
        let mut state = self.state();
        match state.circuit {
            Circuit::Closed { .. } => Ok(Pass { registry: self, timer, probe: false, told: false }),
            Circuit::Open { until } => match until.checked_sub(timer.elapsed()) {
                Some(rest) if !rest.is_zero() => Err(rest),
                _ => {
                    state.circuit = Circuit::Probing;
                    Ok(Pass { registry: self, timer, probe: true, told: false })
                }
            },
            Circuit::Probing => Err(Duration::ZERO),
        }
    }

    /// Takes one retry out of the budget, if there is one.
    pub(super) fn spend(&self) -> bool {
        let mut state = self.state();
        match state.budget.checked_sub(RETRY) {
            Some(rest) => {
                state.budget = rest;
                true
            }
            None => false,
        }
    }

    pub(super) fn earn(&self) {
        let most = self.retries.budget.saturating_mul(RETRY);
        let mut state = self.state();
        state.budget = state.budget.saturating_add(1).min(most);
    }
}

/// One call that was let through. Dropped without a word, as when its caller gave up, it counts
/// for nothing, and a probe leaves room for the next.
pub(super) struct Pass<'a> {
    registry: &'a Registry,
    timer: &'a dyn Timer,
    probe: bool,
    told: bool,
}

impl Pass<'_> {
    pub(super) fn tell(mut self, outcome: Outcome) {
        self.told = true;
        let now = self.timer.elapsed();
        let options = self.registry.breaker;
        let mut state = self.registry.state();
        state.circuit = match (outcome, state.circuit) {
            (Outcome::Answered, _) => Circuit::Closed { failures: 0 },
            (Outcome::Silent, Circuit::Probing) => {
                Circuit::Open { until: now.saturating_add(options.pause) }
            }
            (Outcome::Silent, open @ Circuit::Open { .. }) => open,
            (Outcome::Silent, Circuit::Closed { failures }) => {
                let failures = failures.saturating_add(1);
                if failures >= options.failures.max(1) {
                    Circuit::Open { until: now.saturating_add(options.pause) }
                } else {
                    Circuit::Closed { failures }
                }
            }
        };
    }
}

impl Drop for Pass<'_> {
    fn drop(&mut self) {
        if self.probe && !self.told {
            let mut state = self.registry.state();
            if state.circuit == Circuit::Probing {
                state.circuit = Circuit::Open { until: self.timer.elapsed() };
            }
        }
    }
}
