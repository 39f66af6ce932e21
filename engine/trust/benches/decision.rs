//! A decision when everything is at hand, and what a cold one waits for:
//! `cargo bench -p ambit-trust --bench decision`.
//!
//! The first part reviews a workload of ten components whose analysis and evidence are known: facts,
//! reach, the baseline pack and findings. The second fetches and verifies five components from a
//! registry on loopback that answers each request after a pause, one at a time and all at once.
#![expect(
    clippy::expect_used,
    clippy::unwrap_used,
    reason = "a bench that can't read its input has to fail loudly"
)]

use std::path::Path;
use std::time::{Duration, Instant};

use ambit_engine::capability::CapabilitySet;
use ambit_engine::catalogue::Catalogue;
use ambit_engine::component::Component;
use ambit_engine::config::Config;
use ambit_engine::document::{DocumentLimits, Format};
use ambit_engine::evidence::{Checked, Evidence, Supply};
use ambit_engine::input::{Request, Signature, TrustOutcome};
use ambit_engine::policy::{PolicyLimits, PolicySet, Profile, embedded};
use ambit_engine::reach::{Analysis, Bytes};
use ambit_engine::review::{Mode, Subject, Terms, review};
use ambit_engine::workload;
use ambit_testing::registry::{Action, Fault, Options as RegistryOptions, Registry};
use ambit_trust::attach::push_component;
use ambit_trust::gather::{self, About};
use ambit_trust::oci::ManifestName;
use ambit_trust::registry::{Client, Loopback, Options};
use ambit_trust::resolve::Claims;
use ambit_trust::stores::{Origin, Stores};
use ambit_trust::verify::Roots;
use jiff::Timestamp;

const ROUNDS: usize = 200;
const PAUSE: Duration = Duration::from_millis(50);

fn wasm() -> Vec<u8> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"));
    std::fs::read(path.join("../../testdata/components/http-client.wasm")).expect("test data")
}

fn workload_text(count: usize) -> String {
    let mut text = String::from(
        "apiVersion: runtime.wasmcloud.dev/v1alpha1\nkind: Workload\nmetadata: {name: many}\nspec:\n  components:\n",
    );
    for number in 0..count {
        text.push_str(&format!(
            "  - name: c{number}\n    image: registry.example/team/c{number}:1@sha256:{}\n    localResources: {{allowedHosts: [\"https://api{number}.example.com\"]}}\n",
            "0".repeat(64)
        ));
    }
    text
}

fn warm(out: &mut impl std::io::Write) -> std::io::Result<()> {
    let catalogue = Catalogue::builtin().expect("the catalogue");
    let limits = PolicyLimits::default();
    let config = Config::default();
    let policies =
        PolicySet::prepare(embedded(&limits).expect("packs"), &config.parameters, limits)
            .expect("packs");
    let found = workload::read(
        workload_text(10).as_bytes(),
        Format::Yaml,
        None,
        &DocumentLimits::default(),
    )
    .expect("a workload");
    let component = Component::read(&wasm(), &ambit_engine::limits::Limits::default()).unwrap();
    let capabilities = CapabilitySet::of(&component, &catalogue);
    let bytes =
        vec![Bytes::Present(Analysis { component: &component, capabilities: &capabilities }); 10];
    let checked = Checked {
        trust: vec![TrustOutcome {
            policy: "release".to_owned(),
            origin: "trust.yaml:1".to_owned(),
            mode: "enforce".to_owned(),
            satisfied: true,
            reasons: Vec::new(),
        }],
        signatures: vec![Signature {
            verified: true,
            kind: "key".to_owned(),
            key_id: Some(format!("sha256:{}", "1".repeat(64))),
            ..Signature::default()
        }],
        attestations: Vec::new(),
    };
    let supply = Supply { evidence: Evidence::Checked(Box::new(checked)), ..Supply::default() };
    let supplies = vec![supply; 10];
    let terms = Terms {
        mode: Mode::Ci,
        now: "2026-12-01T00:00:00Z",
        target: None,
        profile: Profile::Baseline,
        config: &config,
        policies: &policies,
        catalogue: &catalogue,
        request: Request { operation: "CI".to_owned(), ..Request::default() },
        previous: None,
    };
    let workload = found.workloads.first().expect("a workload");
    let subject = Subject { workload, bytes: &bytes, supplies: &supplies, file: "w.yaml" };
    let mut times: Vec<Duration> = (0..ROUNDS)
        .map(|_| {
            let start = Instant::now();
            std::hint::black_box(review(subject, &terms));
            start.elapsed()
        })
        .collect();
    times.sort_unstable();
    let at = |percent: usize| {
        times.get(ROUNDS.saturating_mul(percent) / 100).map_or(0, Duration::as_micros)
    };
    writeln!(out, "warm decision, ten components      p50 {:>6} us   p95 {:>6} us", at(50), at(95))
}

fn cold(out: &mut impl std::io::Write) -> std::io::Result<()> {
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    let registry = Registry::start_blocking(RegistryOptions::default());
    let now: Timestamp = "2026-12-01T00:00:00Z".parse().expect("a time");
    let stores = || {
        let options = Options { loopback: Loopback::Allowed, ..Options::default() };
        Stores::online(Client::new(options).expect("a client"), None)
    };
    let names: Vec<String> = (0..5).map(|n| format!("{}/team/c{n}:1", registry.host())).collect();
    let origin = |stores: &Stores, name: &String| -> Origin {
        stores.reference(&name.parse().expect("a reference")).expect("an origin")
    };
    for name in &names {
        let origin = origin(&stores(), name);
        let ManifestName::Tag(tag) = &origin.name else { continue };
        runtime
            .block_on(push_component(
                origin.store.as_ref(),
                tag,
                &wasm(),
                &Claims::default(),
                &std::collections::BTreeMap::new(),
                now,
            ))
            .expect("a push");
    }
    registry.fault(Fault::each("GET", "*", Action::Late(PAUSE)));
    let roots = Roots::builtin().expect("roots");
    let one = async |stores: &Stores, name: &String| {
        let origin = origin(stores, name);
        let fetched = gather::component(&origin, 1 << 26).await.expect("a component");
        let about = About::component(&fetched.resolved);
        let terms = gather::Terms { policies: &[], roots: &roots, now };
        gather::evidence(stores, &origin, &about, terms).await
    };
    let start = Instant::now();
    runtime.block_on(async {
        let stores = stores();
        for name in &names {
            one(&stores, name).await;
        }
    });
    let alone = start.elapsed();
    let start = Instant::now();
    runtime.block_on(async {
        let stores = stores();
        let jobs = names.iter().map(|name| one(&stores, name));
        futures_util::future::join_all(jobs).await;
    });
    let together = start.elapsed();
    registry.clear_log();
    writeln!(
        out,
        "cold, five components, {} ms a request: one after another {} ms, at once {} ms",
        PAUSE.as_millis(),
        alone.as_millis(),
        together.as_millis()
    )
}

fn main() -> std::io::Result<()> {
    let mut out = std::io::stdout().lock();
    warm(&mut out)?;
    cold(&mut out)
}
