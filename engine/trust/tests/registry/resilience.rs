//! Retries, the breaker, and how many calls run at a time.

use std::sync::Arc;
use std::time::Duration;

use ambit_testing::registry::{Action, Fault, Nth, Options, Registry};
use ambit_trust::error::FetchError;
use ambit_trust::registry::{self, BreakerOptions, RetryOptions, Timer};
use ambit_trust::store::Store as _;

use crate::support::{FakeTimer, code, options, put, store_with, tag};

const MANIFESTS: &str = "/v2/team/app/manifests/*";

fn timed(timer: &Arc<FakeTimer>) -> registry::Options {
    registry::Options { timer: Arc::clone(timer) as Arc<dyn Timer>, ..options() }
}

fn retry_after(status: u16, value: &str) -> Action {
    Action::status_with(status, "retry-after", value)
}

#[tokio::test]
async fn short_trouble_is_waited_out() {
    let registry = Registry::start(Options::default()).await;
    put(&registry, "1");
    for action in [
        Action::status(429),
        Action::status(502),
        Action::status(503),
        Action::status(504),
        Action::Cut,
    ] {
        let timer = FakeTimer::new();
        registry.clear_faults();
        registry.clear_log();
        registry.fault(Fault::nth("GET", MANIFESTS, Nth::First(2), action.clone()));
        let found = store_with(&registry, timed(&timer)).manifest(&tag("1")).await;
        assert!(found.is_ok(), "{action:?}: {found:?}");
        assert_eq!(registry.log().len(), 3, "{action:?}");
        assert_eq!(timer.slept(), [200, 400].map(Duration::from_millis));
    }
}

#[tokio::test]
async fn three_tries_are_all() {
    let registry = Registry::start(Options::default()).await;
    put(&registry, "1");
    registry.fault(Fault::each("GET", MANIFESTS, Action::status(503)));
    let store = store_with(&registry, options());
    assert_eq!(code(store.manifest(&tag("1")).await), "registry-unavailable");
    assert_eq!(registry.log().len(), 3);
    registry.clear_faults();
    registry.clear_log();
    for status in [500, 403, 404, 400] {
        registry.clear_faults();
        registry.fault(Fault::each("GET", MANIFESTS, Action::status(status)));
        assert!(store.manifest(&tag("1")).await.is_err());
    }
    assert_eq!(registry.log().len(), 4, "what won't change isn't tried again");
}

#[tokio::test]
async fn registry_says_how_long_to_wait() {
    let registry = Registry::start(Options::default()).await;
    put(&registry, "1");
    for (value, waited) in [("3", 3), ("Fri, 02 Jan 2026 03:04:10 GMT", 5)] {
        let timer = FakeTimer::new();
        registry.clear_faults();
        registry.fault(Fault::nth("GET", MANIFESTS, Nth::First(1), retry_after(429, value)));
        let found = store_with(&registry, timed(&timer)).manifest(&tag("1")).await;
        assert!(found.is_ok(), "{value}: {found:?}");
        assert_eq!(timer.slept(), [Duration::from_secs(waited)], "{value}");
    }
}

#[tokio::test]
async fn wait_beyond_the_time_of_the_call_is_not_begun() {
    let registry = Registry::start(Options::default()).await;
    let timer = FakeTimer::new();
    registry.fault(Fault::each("GET", MANIFESTS, retry_after(429, "3600")));
    let store = store_with(&registry, timed(&timer));
    let error = store.manifest(&tag("1")).await.expect_err("too many requests");
    let FetchError::RateLimited { retry_after: asked, .. } = &error else { panic!("{error:?}") };
    assert_eq!(*asked, Some(Duration::from_secs(3600)));
    assert_eq!((registry.log().len(), timer.slept().len()), (1, 0));
    // Waits add up: after two of four seconds a third would end after the call.
    registry.clear_faults();
    registry.clear_log();
    registry.fault(Fault::each("GET", MANIFESTS, retry_after(503, "6")));
    assert_eq!(code(store.manifest(&tag("1")).await), "registry-unavailable");
    assert_eq!((registry.log().len(), timer.slept().len()), (2, 1));
}

#[tokio::test]
async fn retries_have_a_budget() {
    let registry = Registry::start(Options::default()).await;
    registry.fault(Fault::each("GET", MANIFESTS, Action::status(429)));
    let retries = RetryOptions { budget: 3, ..RetryOptions::default() };
    let store = store_with(&registry, registry::Options { retries, ..options() });
    for _ in 0..5 {
        assert_eq!(code(store.manifest(&tag("1")).await), "registry-rate-limited");
    }
    assert_eq!(registry.log().len(), 5 + 3);
}

#[tokio::test]
async fn registry_without_answers_is_left_alone_for_a_while() {
    let registry = Registry::start(Options::default()).await;
    put(&registry, "1");
    let timer = FakeTimer::new();
    let options = registry::Options {
        retries: RetryOptions { tries: 1, ..RetryOptions::default() },
        breaker: BreakerOptions { failures: 3, pause: Duration::from_secs(30) },
        ..timed(&timer)
    };
    let store = store_with(&registry, options);
    registry.fault(Fault::each("GET", MANIFESTS, Action::status(500)));
    let read = async || code(store.manifest(&tag("1")).await);
    for calls in [1, 2, 3, 3, 3] {
        assert_eq!(read().await, "registry-unavailable");
        assert_eq!(registry.log().len(), calls);
    }
    timer.advance(Duration::from_secs(29));
    assert_eq!(read().await, "registry-unavailable");
    assert_eq!(registry.log().len(), 3);

    timer.advance(Duration::from_secs(1));
    assert_eq!(read().await, "registry-unavailable");
    assert_eq!(registry.log().len(), 4, "one call is tried, and closes it again");
    assert_eq!(read().await, "registry-unavailable");
    assert_eq!(registry.log().len(), 4);

    registry.clear_faults();
    timer.advance(Duration::from_secs(30));
    assert!(store.manifest(&tag("1")).await.is_ok());
    assert!(store.manifest(&tag("1")).await.is_ok());
}

#[tokio::test]
async fn refusals_do_not_open_the_breaker() {
    let registry = Registry::start(Options::default()).await;
    let breaker = BreakerOptions { failures: 2, ..BreakerOptions::default() };
    let store = store_with(&registry, registry::Options { breaker, ..options() });
    for _ in 0..5 {
        assert_eq!(code(store.manifest(&tag("1")).await), "registry-not-found");
    }
    assert_eq!(registry.log().len(), 5);
}

#[tokio::test]
async fn call_that_is_given_up_leaves_room_for_the_next_try() {
    let registry = Registry::start(Options::default()).await;
    put(&registry, "1");
    let timer = FakeTimer::new();
    let options = registry::Options {
        breaker: BreakerOptions { failures: 1, pause: Duration::from_secs(30) },
        ..timed(&timer)
    };
    let store = store_with(&registry, options);
    registry.fault(Fault::nth("GET", MANIFESTS, Nth::Only(1), Action::status(500)));
    registry.fault(Fault::nth("GET", MANIFESTS, Nth::Only(1), Action::Hold));
    assert_eq!(code(store.manifest(&tag("1")).await), "registry-unavailable");
    timer.advance(Duration::from_secs(30));
    let name = tag("1");
    {
        let probe = store.manifest(&name);
        tokio::select! {
            biased;
            found = probe => panic!("{found:?}"),
            () = async { while registry.held() == 0 { tokio::task::yield_now().await } } => {}
        }
    }
    assert!(store.manifest(&name).await.is_ok());
}

#[tokio::test]
async fn calls_to_one_registry_are_few_at_a_time() {
    let registry = Registry::start(Options::default()).await;
    put(&registry, "1");
    registry.fault(Fault::each("GET", MANIFESTS, Action::Hold));
    let store = store_with(&registry, registry::Options { concurrency: 3, ..options() });
    let mut calls = tokio::task::JoinSet::new();
    for _ in 0..10 {
        let store = store.clone();
        calls.spawn(async move { store.manifest(&tag("1")).await.is_ok() });
    }
    while registry.held() < 3 {
        tokio::task::yield_now().await;
    }
    for _ in 0..1000 {
        tokio::task::yield_now().await;
    }
    assert_eq!((registry.held(), registry.log().len()), (3, 3));
    registry.release();
    let done = calls.join_all().await;
    assert_eq!((done.len(), done.iter().all(|ok| *ok)), (10, true));
}
