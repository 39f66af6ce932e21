//! Progress of fetches: a line on a terminal, for work past one second.

use std::future::Future;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::output::Output;

/// How long nothing is shown.
const QUIET: Duration = Duration::from_secs(1);

/// Whether and how progress is shown.
#[derive(Clone, Copy, Debug)]
pub(super) struct Progress {
    shown: bool,
}

impl Progress {
    pub(super) fn new(output: &Output, off: bool) -> Self {
        Self { shown: !off && output.shows_progress() }
    }

    /// Waits for all of them, at most `at_once` at a time, and keeps their order.
    pub(super) async fn all<F: Future>(
        self,
        verb: &'static str,
        jobs: impl ExactSizeIterator<Item = F>,
        at_once: usize,
    ) -> Vec<F::Output> {
        use futures_util::stream::{self, StreamExt as _};

        let count = u64::try_from(jobs.len()).unwrap_or(u64::MAX);
        let bar = ProgressBar::with_draw_target(Some(count), ProgressDrawTarget::hidden());
        bar.set_message(verb);
        if let Ok(style) = ProgressStyle::with_template("{spinner} {msg} {pos}/{len}  {elapsed}") {
            bar.set_style(style);
        }
        let mut results = stream::iter(jobs).buffered(at_once.max(1));
        let mut found = Vec::new();
        let late = tokio::time::sleep(QUIET);
        tokio::pin!(late);
        let mut waiting = self.shown;
        loop {
            tokio::select! {
                next = results.next() => match next {
                    Some(result) => {
                        found.push(result);
                        bar.inc(1);
                    }
                    None => break,
                },
                () = &mut late, if waiting => {
                    waiting = false;
                    bar.set_draw_target(ProgressDrawTarget::stderr());
                    bar.enable_steady_tick(Duration::from_millis(120));
                }
            }
        }
        bar.finish_and_clear();
        found
    }
}
