//! Sockets and look-ups under the grants, judged as the guest's calls are.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::{Duration, Instant};

use ambit_engine::grant::{Dialect, HostGrants, HostPattern, RangePolicy, Target};
use ambit_engine::workload::Private;
use http::header::{AUTHORIZATION, HeaderMap, HeaderValue, LOCATION};
use wasmtime_wasi::sockets::SocketAddrUse;

use super::secret::{BoundSecret, conceal, reveal};
use super::sockets::Judge;
use super::{Body, BoxFuture, Call, Egress, EgressError, Sent};
use crate::cpu::Cpu;
use crate::limits::TripCell;
use crate::record::{Kept, Memory};
use crate::services::{Backing, Values};
use crate::state::Instance;
use crate::stdio::Stdio;
use crate::workload::{Code, Source, Workload};
use crate::{Allocation, Host, HostOptions, Limits, PrivateNetwork, Scope, Setup, invoke};

/// Answers each look-up with the same addresses, and sends nothing.
#[derive(Default)]
struct Answers {
    addresses: Vec<IpAddr>,
    ranges: RangePolicy,
}

impl Egress for Answers {
    fn send(&self, _: Call, _: http::Request<Body>) -> BoxFuture<Result<Sent, EgressError>> {
        Box::pin(std::future::ready(Err(EgressError::Closed)))
    }

    fn ranges(&self) -> &RangePolicy {
        &self.ranges
    }

    fn resolve(&self, _name: &str) -> BoxFuture<std::io::Result<Vec<IpAddr>>> {
        Box::pin(std::future::ready(Ok(self.addresses.clone())))
    }
}

fn sample(name: &str) -> Vec<u8> {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR"));
    std::fs::read(path.join("../../testdata/components").join(name)).expect("a sample")
}

/// Loads a sample with lines of `localResources`.
fn load(file: &str, resources: &str, addresses: &[&str], limits: Limits) -> (Workload, Memory) {
    let bytes = sample(file);
    let text = format!(
        "apiVersion: runtime.wasmcloud.dev/v1alpha1
kind: Workload
metadata: {{name: test, namespace: team}}
spec:
  components:
  - name: one
    image: registry.example/one@sha256:{}
    localResources: {{{resources}}}
",
        "0".repeat(64)
    );
    let reviewed = ambit_testing::admit::manifest(&text, &[("one", &bytes)]);
    let admitted = reviewed.admitted.unwrap_or_else(|error| panic!("{error}"));
    let record = Memory::default();
    let addresses = addresses.iter().map(|address| address.parse().expect("an address")).collect();
    let setup = Setup {
        limits: limits.clone(),
        recorder: Arc::new(record.clone()),
        egress: Arc::new(Answers { addresses, ..Answers::default() }),
        loopback: Vec::new(),
        private_network: PrivateNetwork::Closed,
        values: Arc::new(Values::default()),
        secrets: Vec::new(),
        services: Backing::default(),
        state_dir: None,
    };
    let options = HostOptions { allocation: Allocation::OnDemand, limits };
    let host = Host::new(&options).expect("the engine starts");
    let source = Source {
        admitted: &admitted,
        bytes: &[&bytes],
        temporary: &std::env::temp_dir(),
        code: Code::Compile,
        progress: &|_, _| {},
        arguments: &[],
    };
    (Workload::load(&host, &source, &setup).expect("it loads"), record)
}

fn scope(workload: &Workload) -> Arc<Scope> {
    Arc::clone(workload.programs().first().expect("a component").scope())
}

fn instance() -> Instance {
    let now = Instant::now();
    let deadline = now.checked_add(Duration::from_secs(600)).expect("a time");
    let (trip, cpu, uses) = (TripCell::default(), Cpu::default(), Arc::default());
    Instance { number: 1, deadline, trip, cpu, uses }
}

fn judge(workload: &Workload) -> Judge {
    Judge::new(&scope(workload), &instance())
}

fn address(text: &str) -> SocketAddr {
    text.parse().expect("an address")
}

fn lines(record: &Memory) -> Vec<(String, String)> {
    let of = |e: Kept| (e.subject, e.denied.or(e.result).unwrap_or_default());
    record.effects().into_iter().map(of).collect()
}

const SOCKETS: &str = "socket-client.wasm";

#[tokio::test]
async fn a_connection_needs_its_address_and_port() {
    let resources = "allowedHosts: ['tcp://8.8.4.9:5432', '!8.8.4.66']";
    let (workload, record) = load(SOCKETS, resources, &[], Limits::default());
    let judge = judge(&workload);
    let connect = |text: &str| judge.may_use(address(text), SocketAddrUse::TcpConnect);
    assert!(connect("8.8.4.9:5432"));
    assert!(connect("[::ffff:8.8.4.9]:5432"), "one address has one form");
    assert!(!connect("8.8.4.9:5433"));
    assert!(!connect("8.8.4.10:5432"));
    assert!(!connect("8.8.4.66:5432"));
    for usage in [SocketAddrUse::TcpListen, SocketAddrUse::TcpBind, SocketAddrUse::UdpBind] {
        assert!(!judge.may_use(address("127.0.0.1:80"), usage));
    }
    assert!(judge.may_use(address("0.0.0.0:0"), SocketAddrUse::TcpBind), "it opens nothing");
    let lines = lines(&record);
    let codes: Vec<&str> = lines.iter().map(|(_, code)| code.as_str()).collect();
    assert_eq!(codes[..2], ["ok", "ok"]);
    assert_eq!(lines.len(), 8, "each is on record: {lines:?}");
    assert!(codes[2..].iter().all(|code| code.starts_with("host-")), "{lines:?}");
}

#[tokio::test]
async fn a_granted_name_covers_the_addresses_that_it_led_to_and_no_others() {
    let resources = "allowedHosts: ['tcp://db.example:5432', '!8.8.4.66'], \
                     allowedIpNameLookups: ['*.example']";
    let (workload, record) = load(SOCKETS, resources, &[], Limits::default());
    let scope = scope(&workload);
    let own = instance();
    let judge = Judge::new(&scope, &own);
    let connect = |text: &str| judge.may_use(address(text), SocketAddrUse::TcpConnect);
    assert!(!connect("8.8.4.9:5432"), "nobody has looked it up");
    let found: Vec<IpAddr> = ["8.8.4.9", "10.0.0.9", "8.8.4.66"]
        .iter()
        .map(|text| text.parse().expect("an address"))
        .collect();
    own.uses.looked_up("db.example", &found);
    own.uses.looked_up("other.example", &["8.8.4.10".parse().expect("an address")]);
    assert!(connect("8.8.4.9:5432"));
    assert!(!connect("8.8.4.9:22"), "another port");
    assert!(!connect("8.8.4.10:5432"), "a name that is granted no connection");
    assert!(!connect("10.0.0.9:5432"), "a private address that nobody consents to");
    assert!(!connect("8.8.4.66:5432"), "an address that an entry denies");
    let another = Judge::new(&scope, &instance());
    let usage = SocketAddrUse::TcpConnect;
    assert!(!another.may_use(address("8.8.4.9:5432"), usage), "of another instance");
    let lines = lines(&record);
    let granted = lines.iter().find(|(_, code)| code == "ok").expect("a connection");
    assert_eq!(granted.0, "tcp://db.example:5432 at 8.8.4.9");
}

#[tokio::test]
async fn datagrams_are_on_record_once_for_each_address() {
    let resources = "allowedHosts: ['udp://8.8.4.9:53']";
    let (workload, record) = load(SOCKETS, resources, &[], Limits::default());
    // The sample imports no UDP, so the plan grants none: everything is refused.
    let judge = judge(&workload);
    for _ in 0..1000 {
        assert!(!judge.may_use(address("8.8.4.9:53"), SocketAddrUse::UdpSend));
        assert!(!judge.may_use(address("8.8.4.77:53"), SocketAddrUse::UdpReceive));
    }
    assert_eq!(lines(&record).len(), 1, "{:?}", lines(&record));
}

#[tokio::test]
async fn a_flood_of_refused_uses_ends_the_instance_and_not_the_record() {
    let limits = Limits { requests: 10, ..Limits::default() };
    let (workload, record) = load(SOCKETS, "allowedHosts: []", &[], limits);
    let own = instance();
    let judge = Judge::new(&scope(&workload), &own);
    for port in 1..500 {
        let address = SocketAddr::new("8.8.4.9".parse().expect("an address"), port);
        assert!(!judge.may_use(address, SocketAddrUse::TcpConnect));
    }
    assert_eq!(lines(&record).len(), 10);
    assert_eq!(own.trip.get().map(crate::Trip::code), Some("limit-requests"));
}

#[tokio::test]
async fn a_look_up_goes_through_our_resolver_under_its_own_grant() {
    let granted = "allowedIpNameLookups: ['lookup.example.org']";
    let addresses = ["8.8.4.9", "169.254.169.254", "127.0.0.1"];
    let (workload, record) = load("dns-only.wasm", granted, &addresses, Limits::default());
    let program = workload.programs().first().expect("a component");
    let answer = invoke::call(program, &Stdio::default(), "run()").await.expect("it runs");
    assert_eq!(answer, "true");
    let asked = || record.effects().into_iter().find(|e| e.subject == "lookup.example.org");
    // The guest doesn't wait for the answer, and neither does its end.
    let asked = asked().expect("it is on record");
    assert_eq!(asked.denied, None);

    let other = "allowedIpNameLookups: ['other.example.org']";
    let (workload, record) = load("dns-only.wasm", other, &addresses, Limits::default());
    let program = workload.programs().first().expect("a component");
    let answer = invoke::call(program, &Stdio::default(), "run()").await.expect("it runs");
    assert_eq!(answer, "false");
    let denied: Vec<_> = record.effects().into_iter().filter_map(|e| e.denied).collect();
    assert_eq!(denied, ["lookup-not-granted"]);
}

fn bound(value: &str) -> std::io::Result<BoundSecret> {
    let pattern = HostPattern::parse("https://api.example", Dialect::Ambit).expect("a pattern");
    BoundSecret::new(Private::new(value), AUTHORIZATION, HostGrants::new(vec![pattern]))
}

#[test]
fn a_bound_secret_leaves_for_its_host_and_never_comes_back() {
    let secret = bound("t0ken").expect("it can stand in a header");
    let placeholder = secret.placeholder().to_owned();
    let secrets = [secret];
    let target = |authority: &str| Target::http("https", authority).expect("a target");
    let own = target("api.example");
    let mut headers = HeaderMap::new();
    let bearer = format!("Bearer {placeholder}");
    headers.insert(AUTHORIZATION, HeaderValue::try_from(&bearer).expect("text"));
    let untouched = headers.clone();
    reveal(&secrets, &target("other.example"), &mut headers);
    assert_eq!(headers, untouched, "for another host it stays a placeholder");
    reveal(&secrets, &own, &mut headers);
    assert_eq!(headers[AUTHORIZATION], "Bearer t0ken");

    let mut answered = HeaderMap::new();
    answered.insert(LOCATION, HeaderValue::from_static("https://api.example/?k=t0ken&x"));
    answered.append("x-echo", HeaderValue::from_static("Bearer t0ken"));
    answered.append("x-other", HeaderValue::from_static("t0k3n"));
    conceal(&secrets, &own, &mut answered);
    assert_eq!(answered[LOCATION], placeholder.as_str());
    assert_eq!(answered["x-echo"], placeholder.as_str());
    assert_eq!(answered["x-other"], "t0k3n");
    for value in ["", "two\nlines", "nul\0"] {
        assert!(bound(value).is_err(), "{value:?}");
    }
}
