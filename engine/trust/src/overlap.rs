//! Several waits at once, with a bound on how many.

use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::task::Poll;

/// Something that is waited for.
pub(crate) type Job<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// Runs the jobs, at most `at_once` of them side by side, and returns what came of them in the
/// order of the jobs.
///
/// They run within the caller's task, so that dropping the result ends all of them and they may
/// borrow.
pub(crate) async fn overlapped<T: Send>(jobs: Vec<Job<'_, T>>, at_once: usize) -> Vec<T> {
    let mut results: Vec<Option<T>> = jobs.iter().map(|_| None).collect();
    let mut waiting = results.iter_mut().zip(jobs);
    let mut running = Vec::new();
    poll_fn(|context| {
        loop {
            while running.len() < at_once.max(1) {
                let Some(job) = waiting.next() else { break };
                running.push(job);
            }
            let before = running.len();
            running.retain_mut(|(result, job)| match job.as_mut().poll(context) {
                Poll::Ready(value) => {
                    **result = Some(value);
                    false
                }
                Poll::Pending => true,
            });
            if running.is_empty() && waiting.len() == 0 {
                return Poll::Ready(());
            }
            if running.len() == before {
                return Poll::Pending;
            }
        }
    })
    .await;
    drop((running, waiting));
    results.into_iter().flatten().collect()
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    #[tokio::test]
    async fn order_is_that_of_the_jobs_and_no_more_run_than_allowed() {
        let (now, most) = (AtomicUsize::new(0), AtomicUsize::new(0));
        let jobs: Vec<Job<'_, usize>> = (0..20_usize)
            .map(|number| {
                let (now, most) = (&now, &most);
                let job: Job<'_, usize> = Box::pin(async move {
                    most.fetch_max(now.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                    for _ in 0..(20 - number) {
                        tokio::task::yield_now().await;
                    }
                    now.fetch_sub(1, Ordering::SeqCst);
                    number
                });
                job
            })
            .collect();
        assert_eq!(overlapped(jobs, 3).await, (0..20).collect::<Vec<_>>());
        assert_eq!(most.load(Ordering::SeqCst), 3);
        assert!(overlapped(Vec::<Job<'_, ()>>::new(), 8).await.is_empty());
    }
}
