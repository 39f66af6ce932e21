use std::convert::Infallible;

use tokio::sync::oneshot;

use super::*;

fn made(value: u32, keep: Keep) -> Result<Made<u32>, Infallible> {
    Ok(Made { value, keep, weight: 1 })
}

async fn broken() -> Result<Made<u32>, Infallible> {
    panic!("on purpose")
}

fn counted<K, V>(layer: &Layer<K, V>) -> (u64, u64)
where
    K: Clone + Eq + Hash + Send + Sync + 'static,
    V: Clone + Send + Sync + 'static,
{
    let counts = layer.counts();
    (counts.asked.load(Ordering::Relaxed), counts.begun.load(Ordering::Relaxed))
}

#[tokio::test]
async fn many_who_ask_at_once_share_one_answer() {
    let layer: Layer<&str, u32> = Layer::new(100);
    let (release, held) = oneshot::channel::<()>();
    let first = tokio::spawn({
        let layer = layer.clone();
        async move {
            let work = async move {
                held.await.unwrap();
                made(7, Keep::Forever)
            };
            layer.get("key", work).await
        }
    });
    while counted(&layer).1 == 0 {
        tokio::task::yield_now().await;
    }
    let others: Vec<_> = (0..20)
        .map(|_| {
            let layer = layer.clone();
            tokio::spawn(async move { layer.get("key", async { made(8, Keep::Forever) }).await })
        })
        .collect();
    while counted(&layer).0 < 21 {
        tokio::task::yield_now().await;
    }
    release.send(()).unwrap();
    assert_eq!(first.await.unwrap(), Ok(7));
    for other in others {
        assert_eq!(other.await.unwrap(), Ok(7));
    }
    assert_eq!(counted(&layer), (21, 1));
}

#[tokio::test]
async fn work_goes_on_when_nobody_waits_for_it() {
    let layer: Layer<&str, u32> = Layer::new(100);
    let (release, held) = oneshot::channel::<()>();
    let asked = tokio::spawn({
        let layer = layer.clone();
        async move {
            let work = async move {
                held.await.unwrap();
                made(7, Keep::Forever)
            };
            layer.get("key", work).await
        }
    });
    while counted(&layer).1 == 0 {
        tokio::task::yield_now().await;
    }
    asked.abort();
    assert!(asked.await.unwrap_err().is_cancelled());
    release.send(()).unwrap();
    assert_eq!(layer.get("key", async { made(8, Keep::Forever) }).await, Ok(7));
    assert_eq!(counted(&layer).1, 1);
}

#[tokio::test]
async fn failures_and_answers_for_no_time_are_asked_for_again() {
    let layer: Layer<&str, u32> = Layer::new(100);
    for _ in 0..2 {
        let failed = layer.get("bad", async { Err::<Made<u32>, _>("no answer") }).await;
        assert_eq!(failed, Err(Lost::Failed("no answer")));
    }
    assert_eq!(layer.get("bad", broken()).await, Err(Lost::Gone));
    assert_eq!(layer.get("bad", async { made(1, Keep::Forever) }).await, Ok(1));
    let now = Keep::For(Duration::ZERO);
    assert_eq!(layer.get("now", async move { made(2, now) }).await, Ok(2));
    assert_eq!(layer.get("now", async move { made(3, now) }).await, Ok(3));
    assert_eq!(layer.get("bad", async { made(4, Keep::Forever) }).await, Ok(1));
    assert_eq!(counted(&layer), (7, 6));
}

#[tokio::test]
async fn work_that_panics_is_lost_for_its_own_asker_only() {
    let layer: Layer<&str, u32> = Layer::new(100);
    let (release, held) = oneshot::channel::<()>();
    let first = tokio::spawn({
        let layer = layer.clone();
        async move {
            let work = async move {
                held.await.unwrap();
                broken().await
            };
            layer.get("key", work).await
        }
    });
    while counted(&layer).1 == 0 {
        tokio::task::yield_now().await;
    }
    let other = tokio::spawn({
        let layer = layer.clone();
        async move { layer.get("key", async { made(8, Keep::Forever) }).await }
    });
    while counted(&layer).0 < 2 {
        tokio::task::yield_now().await;
    }
    release.send(()).unwrap();
    assert_eq!(first.await.unwrap(), Err(Lost::Gone));
    assert_eq!(other.await.unwrap(), Ok(8));
}

#[tokio::test]
async fn different_keys_do_not_wait_for_each_other() {
    let layer: Layer<&str, u32> = Layer::new(100);
    let stuck = tokio::spawn({
        let layer = layer.clone();
        async move {
            let work = async {
                std::future::pending::<()>().await;
                made(7, Keep::Forever)
            };
            layer.get("stuck", work).await
        }
    });
    while counted(&layer).1 == 0 {
        tokio::task::yield_now().await;
    }
    let kept = Keep::For(Duration::from_secs(3600));
    assert_eq!(layer.get("other", async move { made(1, kept) }).await, Ok(1));
    assert_eq!(layer.get("other", async move { made(2, kept) }).await, Ok(1));
    assert!(!stuck.is_finished());
}
