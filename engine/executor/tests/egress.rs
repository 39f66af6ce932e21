//! Outgoing requests of a real component, with upstreams on loopback.
//!
//! Names are resolved by the tests, and the range policy opens loopback for them: both are values
//! of the Rust API, which no shipped flag changes.
#![expect(clippy::expect_used, reason = "helpers of tests may fail loudly")]

mod common;

use std::collections::{BTreeMap, VecDeque};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use ambit_engine::admitted::AdmittedComponent;
use ambit_engine::grant::{AddressClass, Consent, RangePolicy, RangeRule};
use ambit_executor::egress::{BoxFuture, Client, Decided, Openings, Resolver, decide};
use ambit_executor::serve::Handler;
use common::{Run, manifest, one, sample};
use http_body_util::{BodyExt as _, Empty};
use proptest::prelude::*;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;

/// Answers each look-up of a name with the next of its answers; the last one stays.
#[derive(Clone, Default)]
struct Names(Arc<Mutex<BTreeMap<String, VecDeque<Vec<IpAddr>>>>>);

impl Names {
    fn with(self, name: &str, answers: &[&[&str]]) -> Self {
        let parse =
            |answer: &&[&str]| answer.iter().map(|a| a.parse().expect("an address")).collect();
        let answers = answers.iter().map(parse).collect();
        self.0.lock().expect("the names").insert(name.to_owned(), answers);
        self
    }
}

impl Resolver for Names {
    fn resolve(&self, name: &str) -> BoxFuture<std::io::Result<Vec<IpAddr>>> {
        let mut names = self.0.lock().expect("the names");
        let answer = match names.get_mut(name) {
            Some(answers) if answers.len() > 1 => answers.pop_front(),
            Some(answers) => answers.front().cloned(),
            None => None,
        };
        let missing = || std::io::Error::new(std::io::ErrorKind::NotFound, "no such name");
        Box::pin(std::future::ready(answer.ok_or_else(missing)))
    }
}

/// A server that gives one answer to all, and keeps the heads of the requests that it saw.
#[derive(Clone)]
struct Upstream {
    address: SocketAddr,
    seen: Arc<Mutex<Vec<String>>>,
}

impl Upstream {
    async fn answering(answer: impl Into<Vec<u8>>) -> Self {
        Self::at(Ipv4Addr::LOCALHOST, answer).await
    }

    async fn at(address: Ipv4Addr, answer: impl Into<Vec<u8>>) -> Self {
        let listener = TcpListener::bind((address, 0)).await.expect("a port");
        let address = listener.local_addr().expect("its address");
        let seen = Arc::new(Mutex::new(Vec::new()));
        let answer: Arc<[u8]> = answer.into().into();
        let theirs = Arc::clone(&seen);
        tokio::spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                let (answer, seen) = (Arc::clone(&answer), Arc::clone(&theirs));
                tokio::spawn(async move {
                    let mut head = Vec::new();
                    let mut part = [0; 1024];
                    loop {
                        match stream.read(&mut part).await {
                            Ok(0) | Err(_) => return,
                            Ok(count) => head.extend_from_slice(part.get(..count).expect("a part")),
                        }
                        if head.windows(4).any(|end| end == b"\r\n\r\n") {
                            seen.lock()
                                .expect("what was seen")
                                .push(String::from_utf8_lossy(&head).into_owned());
                            head.clear();
                            if stream.write_all(&answer).await.is_err() {
                                return;
                            }
                        }
                    }
                });
            }
        });
        Self { address, seen }
    }

    fn port(&self) -> u16 {
        self.address.port()
    }

    fn requests(&self) -> Vec<String> {
        self.seen.lock().expect("what was seen").clone()
    }
}

const OK: &str = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello";

/// Loopback stands for the public network; everything else is as it is shipped.
fn ranges() -> RangePolicy {
    RangePolicy::default().with(AddressClass::Loopback, RangeRule::Allow)
}

fn client(names: &Names) -> Client {
    let builder = Client::builder().ranges(ranges()).resolver(Arc::new(names.clone()));
    builder.build().expect("a client")
}

fn fetcher(hosts: &[&str], names: &Names) -> Run {
    fetcher_with(hosts, names, |_| {})
}

fn fetcher_with(
    hosts: &[&str],
    names: &Names,
    adjust: impl FnOnce(&mut ambit_executor::Setup),
) -> Run {
    let hosts: Vec<String> = hosts.iter().map(|host| format!("\"{host}\"")).collect();
    let resources = format!("      allowedHosts: [{}]", hosts.join(", "));
    let bytes = sample("http-fetch.wasm");
    let client = client(names);
    manifest(&one("fetch", &resources, ""), &[("fetch", &bytes)], |setup| {
        setup.egress = Arc::new(client);
        adjust(setup);
    })
}

/// Lets the component fetch, and returns what it says.
async fn fetch(run: &Run, path: &str) -> String {
    let handler = Handler::new(run.program(), run.stdio.clone()).expect("a handler");
    let body = Empty::<bytes::Bytes>::new();
    let body = body.map_err(|never| -> wasmtime_wasi_http::Error { match never {} });
    let body = body.boxed_unsync();
    let request = http::Request::get(path).header("host", "fetch.localhost").body(body);
    let answer = handler.handle(request.expect("a request")).await;
    let answer = tokio::time::timeout(Duration::from_secs(60), answer.into_body().collect()).await;
    match answer.expect("an end") {
        Ok(body) => String::from_utf8_lossy(&body.to_bytes()).into_owned(),
        Err(error) => format!("broken off: {error:?}"),
    }
}

fn outgoing(run: &Run) -> Vec<(String, Option<String>, Option<String>, String)> {
    let effects = run.record.effects().into_iter().filter(|effect| effect.function == "handle");
    effects
        .filter(|effect| !effect.subject.starts_with("GET "))
        .map(|effect| (effect.subject, effect.denied, effect.result, effect.detail))
        .collect()
}

#[tokio::test]
async fn a_granted_host_is_reached_and_on_record() {
    let upstream = Upstream::answering(OK).await;
    let port = upstream.port();
    let names = Names::default().with("api.allowed.test", &[&["127.0.0.1"]]);
    let run = fetcher(&[&format!("http://api.allowed.test:{port}")], &names);
    let said = fetch(&run, &format!("/http/api.allowed.test:{port}/v1?key=s3cr3t")).await;
    assert_eq!(said, "status 200\nhello");
    let requests = upstream.requests();
    let head = requests.first().expect("a request");
    assert!(head.starts_with("GET /v1?key=s3cr3t HTTP/1.1\r\n"), "{head}");
    assert!(head.to_lowercase().contains(&format!("host: api.allowed.test:{port}\r\n")), "{head}");
    let (subject, denied, result, detail) = outgoing(&run).remove(0);
    assert_eq!(subject, format!("http://api.allowed.test:{port}"));
    assert_eq!((denied, result.as_deref()), (None, Some("ok")));
    assert_eq!(detail, "200 from 127.0.0.1");
    assert!(!format!("{:?}", run.record.effects()).contains("s3cr3t"));
}

#[tokio::test]
async fn a_host_that_is_not_granted_is_refused_and_the_line_to_add_is_named() {
    let upstream = Upstream::answering(OK).await;
    let port = upstream.port();
    let names = Names::default().with("other.test", &[&["127.0.0.1"]]);
    let run = fetcher(&["https://api.allowed.test"], &names);
    let said = fetch(&run, &format!("/http/other.test:{port}/")).await;
    assert_eq!(said, "refused: the host denied it\n");
    assert!(upstream.requests().is_empty());
    let effects = run.record.effects();
    let denied = effects.iter().find(|effect| effect.denied.is_some()).expect("a denial");
    let wanted =
        format!("add `http://other.test:{port}` to `allowedHosts` of `fetch` (workload.yaml:");
    assert!(denied.why.contains(&wanted), "{}", denied.why);
    let run = fetcher(&[&format!("http://other.test:{port}")], &names);
    assert_eq!(fetch(&run, &format!("/http/other.test:{port}/")).await, "status 200\nhello");
}

#[tokio::test]
async fn the_port_of_an_entry_counts_and_case_and_a_last_dot_do_not() {
    let upstream = Upstream::answering(OK).await;
    let port = upstream.port();
    let names = Names::default().with("api.example.test", &[&["127.0.0.1"]]);
    let run = fetcher(&[&format!("http://api.example.test:{port}")], &names);
    let said = fetch(&run, &format!("/http/API.Example.TEST.:{port}/")).await;
    assert_eq!(said, "status 200\nhello");
    for other in ["/http/api.example.test/", "/http/api.example.test:8443/"] {
        assert_eq!(fetch(&run, other).await, "refused: the host denied it\n", "{other}");
    }
    assert_eq!(upstream.requests().len(), 1);
}

#[tokio::test]
async fn no_spelling_of_an_inside_address_is_reached_under_a_star() {
    let upstream = Upstream::answering(OK).await;
    let port = upstream.port();
    let names = Names::default()
        .with("metadata.test", &[&["169.254.169.254"]])
        .with("private.test", &[&["10.0.0.7"]])
        .with("mapped.test", &[&["::ffff:169.254.169.254"]])
        .with("nat64.test", &[&["64:ff9b::a9fe:a9fe"]]);
    let run = fetcher(&["*:*"], &names);
    for (authority, expected) in [
        ("2130706433", "refused: the host denied it\n"),
        ("127.1", "refused: the host denied it\n"),
        ("0", "refused: the host denied it\n"),
        ("0x7f.1", "refused: the host denied it\n"),
        ("host.internal", "refused: the host denied it\n"),
        ("[::ffff:169.254.169.254]", "refused: the host prohibits the address\n"),
        ("[64:ff9b::a9fe:a9fe]", "refused: the host prohibits the address\n"),
        ("169.254.169.254", "refused: the host prohibits the address\n"),
        ("metadata.test", "refused: the host prohibits the address\n"),
        ("private.test", "refused: the host prohibits the address\n"),
        ("mapped.test", "refused: the host prohibits the address\n"),
        ("nat64.test", "refused: the host prohibits the address\n"),
    ] {
        let said = fetch(&run, &format!("/http/{authority}:{port}/")).await;
        assert_eq!(said, expected, "{authority}");
    }
    assert!(upstream.requests().is_empty());
}

#[tokio::test]
async fn userinfo_is_refused_and_never_on_record() {
    let names = Names::default();
    let run = fetcher(&["*"], &names);
    let said = fetch(&run, "/http/api.allowed.test:pa55@evil.test/").await;
    assert!(said.starts_with("refused"), "{said}");
    assert!(!format!("{:?}", outgoing(&run)).contains("pa55"), "{:?}", outgoing(&run));
}

#[tokio::test]
async fn only_vetted_addresses_of_this_look_up_are_dialled() {
    let public = Upstream::at(Ipv4Addr::new(127, 0, 0, 2), OK).await;
    let port = public.port();
    let names = Names::default()
        .with("rebinding.test", &[&["127.0.0.2"], &["10.0.0.1"]])
        .with("mixed.test", &[&["169.254.169.254", "127.0.0.2"]]);
    let hosts = [format!("http://rebinding.test:{port}"), format!("http://mixed.test:{port}")];
    let hosts: Vec<&str> = hosts.iter().map(String::as_str).collect();
    let run = fetcher(&hosts, &names);
    let first = fetch(&run, &format!("/http/rebinding.test:{port}/")).await;
    assert_eq!(first, "status 200\nhello");
    // A connection that stands goes to the address that was vetted; a new look-up is vetted anew.
    let other = fetcher(&hosts, &names);
    let second = fetch(&other, &format!("/http/rebinding.test:{port}/")).await;
    assert_eq!(second, "refused: the host prohibits the address\n");
    let mixed = fetch(&run, &format!("/http/mixed.test:{port}/")).await;
    assert_eq!(mixed, "status 200\nhello");
    let (_, _, _, detail) = outgoing(&run).pop().expect("an effect");
    assert_eq!(detail, "200 from 127.0.0.2; 1 of 2 addresses refused");
}

#[tokio::test]
async fn an_entry_that_denies_an_address_holds_for_names_that_lead_there() {
    let upstream = Upstream::at(Ipv4Addr::new(127, 0, 0, 3), OK).await;
    let port = upstream.port();
    let names = Names::default().with("some.test", &[&["127.0.0.3"]]);
    let run =
        fetcher(&[&format!("http://some.test:{port}"), &format!("!127.0.0.3:{port}")], &names);
    let said = fetch(&run, &format!("/http/some.test:{port}/")).await;
    assert_eq!(said, "refused: the host prohibits the address\n");
    assert!(upstream.requests().is_empty());
}

#[tokio::test]
async fn a_private_address_needs_consent() {
    let upstream = Upstream::at(Ipv4Addr::new(127, 0, 0, 5), OK).await;
    let port = upstream.port();
    let names = Names::default().with("inside.test", &[&["127.0.0.5"]]);
    // Loopback stands for a private network here.
    let ranges = RangePolicy::default().with(AddressClass::Loopback, RangeRule::NeedsConsent);
    let client = || {
        let builder = Client::builder().ranges(ranges.clone()).resolver(Arc::new(names.clone()));
        Arc::new(builder.build().expect("a client"))
    };
    let name = format!("http://inside.test:{port}");
    let url = format!("/http/inside.test:{port}/");
    let run = fetcher_with(&[&name], &names, |setup| setup.egress = client());
    assert_eq!(fetch(&run, &url).await, "refused: the host prohibits the address\n");
    let run = fetcher_with(&[&name], &names, |setup| {
        setup.egress = client();
        setup.private_network = ambit_executor::PrivateNetwork::Open;
    });
    assert_eq!(fetch(&run, &url).await, "status 200\nhello");
    let run = fetcher(&["http://10.0.0.5", "192.168.0.0/16", "http://inside.test"], &names);
    for (authority, expected) in [
        ("10.0.0.5", Consent::Literal),
        ("192.168.7.7", Consent::Cidr),
        ("inside.test", Consent::None),
    ] {
        match decide(component(&run), Openings::default(), "http", authority) {
            Decided::Allowed { consent, .. } => assert_eq!(consent, expected, "{authority}"),
            Decided::Denied(denial) => panic!("{authority}: {denial:?}"),
        }
    }
}

#[tokio::test]
async fn a_port_of_this_machine_takes_the_manifest_and_the_operator() {
    let upstream = Upstream::answering(OK).await;
    let port = upstream.port();
    let names = Names::default();
    let url = format!("/http/host.internal:{port}/");
    let entry = format!("http://host.internal:{port}");
    let granted = fetcher(&[&entry], &names);
    assert_eq!(fetch(&granted, &url).await, "refused: the host denied it\n");
    let opened = fetcher_with(&["https://other.test"], &names, |setup| setup.loopback.push(port));
    assert_eq!(fetch(&opened, &url).await, "refused: the host denied it\n");
    let both = fetcher_with(&[&entry], &names, |setup| setup.loopback.push(port));
    assert_eq!(fetch(&both, &url).await, "status 200\nhello");
}

#[tokio::test]
async fn a_redirect_goes_back_to_the_component() {
    let upstream = Upstream::answering(
        "HTTP/1.1 302 Found\r\nLocation: http://evil.test/\r\nContent-Length: 0\r\n\r\n",
    )
    .await;
    let port = upstream.port();
    let names = Names::default().with("api.test", &[&["127.0.0.1"]]);
    let run = fetcher(&[&format!("http://api.test:{port}")], &names);
    assert_eq!(fetch(&run, &format!("/http/api.test:{port}/")).await, "status 302\n");
    assert_eq!(outgoing(&run).len(), 1);
}

#[tokio::test]
async fn answers_that_break_the_rules_are_cut_and_named() {
    let names = Names::default().with("api.test", &[&["127.0.0.1"]]);
    let many: String = (0..70_000).map(|index| format!("x-{index}: y\r\n")).collect();
    for (answer, result) in [
        (
            "HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n".to_owned() + &"x".repeat(100_000),
            "limit-body",
        ),
        (format!("HTTP/1.1 200 OK\r\n{many}\r\n"), "limit-body"),
        (
            "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nhello".to_owned(),
            "host-protocol",
        ),
        (
            "HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n"
                .to_owned(),
            "host-protocol",
        ),
        ("SSH-2.0-OpenSSH_9.2\r\n".to_owned(), "host-protocol"),
        ("HTTP/1.1 200 OK\r\nContent-Length: 500\r\n\r\nshort".to_owned(), "host-timeout"),
        (String::new(), "host-timeout"),
    ] {
        let upstream = Upstream::answering(answer.clone()).await;
        let port = upstream.port();
        let run = fetcher_with(&[&format!("http://api.test:{port}")], &names, |setup| {
            setup.limits.response_body_bytes = 10_000;
            setup.limits.request_time = Duration::from_secs(2);
        });
        let said = fetch(&run, &format!("/http/api.test:{port}/")).await;
        let found = outgoing(&run).remove(0);
        let start: String = answer.chars().take(60).collect();
        assert_eq!(found.2.as_deref(), Some(result), "{start}: {found:?}: {said}");
    }
}

#[tokio::test]
async fn connections_are_kept_for_their_owner_and_host() {
    let upstream = Upstream::answering(OK).await;
    let port = upstream.port();
    let names = Names::default().with("api.test", &[&["127.0.0.1"], &["10.0.0.1"]]);
    let run = fetcher(&[&format!("http://api.test:{port}")], &names);
    for _ in 0..3 {
        // The second look-up would lead nowhere, so these go over the first connection.
        assert_eq!(fetch(&run, &format!("/http/api.test:{port}/")).await, "status 200\nhello");
    }
    let requests = upstream.requests();
    assert_eq!(requests.len(), 3);
}

fn component(run: &Run) -> &AdmittedComponent {
    run.program().scope().component()
}

/// Entries and URLs over few names and ports, so that they often meet.
fn entry() -> impl Strategy<Value = String> {
    let deny = prop::sample::select(vec!["", "", "", "!"]);
    let scheme = prop::sample::select(vec!["", "http://", "https://", "*://"]);
    let host = prop::sample::select(vec![
        "*",
        "a.test",
        "b.test",
        "*.a.test",
        "**.a.test",
        "127.0.0.4",
        "127.0.0.0/8",
        "10.0.0.0/8",
        "host.internal",
    ]);
    let port = prop::sample::select(vec!["", ":PORT", ":*", ":1-65535", ":81"]);
    (deny, scheme, host, port).prop_map(|(d, s, h, p)| format!("{d}{s}{h}{p}"))
}

fn url() -> impl Strategy<Value = (&'static str, &'static str, &'static str)> {
    let scheme = prop::sample::select(vec!["http", "https"]);
    let host = prop::sample::select(vec![
        "a.test",
        "A.TEST.",
        "x.a.test",
        "b.test",
        "127.0.0.4",
        "10.0.0.9",
        "private.test",
        "host.internal",
        "127.1",
        "user@a.test",
        "c.test",
    ]);
    let port = prop::sample::select(vec![":PORT", ":PORT", ":PORT", "", ":82", ":0"]);
    (scheme, host, port)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    /// What the dry run allows is what the upstream sees, and nothing else.
    #[test]
    fn the_dry_run_and_the_run_agree(
        entries in prop::collection::vec(entry(), 0..4),
        (scheme, host, port) in url(),
        open in any::<bool>(),
    ) {
        let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().expect("a runtime");
        runtime.block_on(async {
            let upstream = Upstream::at(Ipv4Addr::UNSPECIFIED, OK).await;
            let number = upstream.port().to_string();
            let entries: Vec<String> = entries.iter().map(|e| e.replace("PORT", &number)).collect();
            let hosts: Vec<&str> = entries.iter().map(String::as_str).collect();
            let authority = format!("{host}{}", port.replace("PORT", &number));
            let mut names = Names::default().with("private.test", &[&["10.0.0.9"]]);
            for name in ["a.test", "x.a.test", "b.test", "c.test"] {
                names = names.with(name, &[&["127.0.0.4"]]);
            }
            let bytes = sample("http-fetch.wasm");
            let quoted: Vec<String> = hosts.iter().map(|host| format!("\"{host}\"")).collect();
            let text = one("fetch", &format!("      allowedHosts: [{}]", quoted.join(", ")), "");
            // A list that the review denies is never run, so it is not a case.
            if ambit_testing::admit::manifest(&text, &[("fetch", &bytes)]).admitted.is_err() {
                return;
            }
            let run = fetcher_with(&hosts, &names, |setup| {
                setup.limits.request_time = Duration::from_secs(5);
                if open {
                    setup.loopback.push(upstream.port());
                }
            });
            let loopback = [upstream.port()];
            let policy = ranges();
            let openings = Openings {
                loopback: if open { &loopback } else { &[] },
                ranges: Some(&policy),
                ..Openings::default()
            };
            let decided = decide(component(&run), openings, scheme, &authority);
            let said = fetch(&run, &format!("/{scheme}/{authority}/")).await;
            let seen = upstream.requests().len();
            match decided {
                Decided::Denied(denial) => {
                    assert_eq!(seen, 0, "{entries:?} {scheme}://{authority}: {denial:?} and {said}");
                    assert!(said.starts_with("refused"), "{said}");
                }
                Decided::Allowed { target, .. } => {
                    let here = target.port() == upstream.port() && scheme == "http";
                    let private = matches!(host, "10.0.0.9" | "private.test");
                    let denied_address = entries.iter().any(|entry| {
                        entry.starts_with('!') && (entry.contains("127.") || entry.contains("10."))
                    });
                    if here && !private && !denied_address {
                        assert_eq!(seen, 1, "{entries:?} {scheme}://{authority}: {said}");
                        assert_eq!(said, "status 200\nhello");
                    } else {
                        assert!(said.starts_with("refused") || seen == 1, "{said}");
                    }
                }
            }
        });
    }
}

#[tokio::test]
async fn a_response_that_says_its_length_twice_is_no_response() {
    for head in [
        "Content-Length: 5\r\nContent-Length: 5",
        "Content-Length: 5\r\nContent-Length: 6",
        "Content-Length: 5\r\nTransfer-Encoding: chunked",
        "Transfer-Encoding: chunked\r\nContent-Length: 5",
    ] {
        let answer = format!("HTTP/1.1 200 OK\r\n{head}\r\n\r\n5\r\nhello\r\n0\r\n\r\n");
        let upstream = Upstream::answering(answer).await;
        let port = upstream.port();
        let names = Names::default().with("api.test", &[&["127.0.0.1"]]);
        let run = fetcher(&[&format!("http://api.test:{port}")], &names);
        let said = fetch(&run, &format!("/http/api.test:{port}/")).await;
        assert!(!said.contains("status 200"), "{head}: {said}");
        let (_, denied, result, detail) = outgoing(&run).remove(0);
        assert_eq!((denied, result.as_deref()), (None, Some("host-protocol")), "{head}: {detail}");
    }
}

#[tokio::test]
async fn an_address_that_no_entry_opens_is_denied_before_anything_is_dialled() {
    let upstream = Upstream::answering(OK).await;
    let port = upstream.port();
    // The policy as it is shipped: loopback is closed, whatever the list says.
    let run = fetcher_with(&["*:*"], &Names::default(), |setup| {
        setup.egress = Arc::new(Client::builder().build().expect("a client"));
    });
    let said = fetch(&run, &format!("/http/127.0.0.1:{port}/")).await;
    assert_eq!(said, "refused: the host prohibits the address\n");
    assert!(upstream.requests().is_empty());
    let (subject, denied, ..) = outgoing(&run).remove(0);
    assert_eq!(subject, format!("http://127.0.0.1:{port}"));
    assert_eq!(denied.as_deref(), Some("address-refused"));
}

#[tokio::test]
async fn a_workload_that_is_loaded_anew_uses_no_old_connection() {
    let upstream = Upstream::answering(OK).await;
    let port = upstream.port();
    let names = Names::default().with("api.test", &[&["127.0.0.1"], &["127.0.0.2"]]);
    let client = client(&names);
    let load = || {
        let client = client.clone();
        fetcher_with(&[&format!("http://api.test:{port}")], &names, |setup| {
            setup.egress = Arc::new(client);
        })
    };
    let path = format!("/http/api.test:{port}/");
    let first = load();
    assert_eq!(fetch(&first, &path).await, "status 200\nhello");
    assert_eq!(fetch(&first, &path).await, "status 200\nhello", "the connection is used again");
    // The name leads elsewhere by now. Whoever resolves it sees that.
    let second = load();
    let said = fetch(&second, &path).await;
    assert!(said.starts_with("refused"), "{said}");
    assert_eq!(upstream.requests().len(), 2);
}
