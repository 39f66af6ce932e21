//! Workloads in processes of their own: what works as in this one, and what a broken worker gets.
//!
//! A worker is this test binary again, told by a variable to run one "test" that is none.

use std::net::{Ipv4Addr, SocketAddr};
use std::os::fd::AsFd as _;
use std::sync::Arc;
use std::time::Duration;

use ambit_engine::admitted::Admitted;
use ambit_engine::grant::{AddressClass, RangePolicy, RangeRule};
use http::Request;
use http_body_util::{BodyExt as _, Empty};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

use super::channel::Channel;
use super::confine::{Allowance, Confined, Wall, confine};
use super::message::{self, Ask, Begun, CALL, CALLS, CONTROL, Entry, Order, Report, SENT};
use super::pool::Pool;
use super::{Ground, Isolated, Launch, work};
use crate::egress::{BoxFuture, Client, Closed, Resolver};
use crate::ingress::{CrossSite, Ingress, Route, Routes};
use crate::record::{Kept, Memory};
use crate::services::{Backing, Values};
use crate::stdio::{LineSink, Stream};
use crate::workload::{Code, Source};
use crate::{
    Allocation, ExecutorError, Host, HostOptions, Limits, PrivateNetwork, Setup, record::Who,
};

/// Which part a process plays; nothing is set in a test run.
const PART: &str = "AMBIT_TEST_PART";

fn part(name: &str) -> bool {
    std::env::var(PART).is_ok_and(|part| part == name)
}

fn launch(name: &str) -> Launch {
    Launch {
        program: std::env::current_exe().expect("a test binary"),
        arguments: ["--exact", "isolate::tests::plays_its_part", "--nocapture", "--test-threads=1"]
            .map(Into::into)
            .to_vec(),
        environment: vec![(PART.into(), name.into())],
    }
}

/// Not a test: what a child process does.
#[test]
fn plays_its_part() {
    if part("worker") {
        work().expect("a parent");
    } else if part("confined") {
        confined_process();
    } else if part("stranger") {
        hostile(|calls| {
            let _ = begin(calls, "other", "https://granted.test:443");
        });
    } else if part("flood") {
        hostile(|calls| {
            let line =
                |text: String| Ask::Line { component: "fetch".to_owned(), is_error: false, text };
            calls.send(&line("\u{1b}[2Jcleared".to_owned()), &[]).expect("a parent");
            calls.send(&line("x".repeat(1 << 20)), &[]).expect_err("it is over the bound");
            let end = Ask::End {
                ticket: 77,
                result: "ok".to_owned(),
                bytes_out: 0,
                bytes_in: 0,
                duration: Duration::ZERO,
                detail: String::new(),
            };
            calls.send(&end, &[]).expect("a parent");
        });
    } else if part("breach") {
        hostile(breach);
    }
}

/// Plays a worker whose sandbox is broken: it reports that all is well, then does as it likes.
fn hostile(act: impl FnOnce(&Channel)) {
    let control = Channel::from_fd(super::worker::inherited(CONTROL).expect("a parent"));
    let calls = Channel::from_fd(super::worker::inherited(CALLS).expect("a parent"));
    while let Some((order, _)) = control.receive::<Order>().expect("a parent") {
        if matches!(order, Order::Load) {
            break;
        }
    }
    let confined = Confined { files: Wall::Whole, calls: Wall::Whole };
    let (hosts, warnings) = (Vec::new(), Vec::new());
    let loaded = Report::Loaded { confined, entry: Entry::Handler, hosts, warnings };
    control.send(&loaded, &[]).expect("a parent");
    act(&calls);
    // Until the parent has had enough.
    let _ = control.receive::<Order>();
}

fn begin(calls: &Channel, component: &str, subject: &str) -> Option<u64> {
    let effect = message::Effect {
        component: component.to_owned(),
        instance: 1,
        verb: "reach hosts".to_owned(),
        interface: crate::egress::OUTGOING.to_owned(),
        function: "handle".to_owned(),
        subject: subject.to_owned(),
        denied: None,
        grant: None,
    };
    calls.send(&Ask::Begin(effect), &[]).ok()?;
    let (Begun(ticket), _) = calls.receive::<Begun>().ok()??;
    ticket
}

/// Asks for a host that isn't granted, with a lie on record, and for one that is, without a record.
fn breach(calls: &Channel) {
    let _ = begin(calls, "fetch", "http://other.test:80");
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    runtime.block_on(async {
        let socket = calls.0.try_clone().expect("a descriptor");
        let calls = Channel::from_fd(socket);
        let pool = Pool::new(Box::new(move |fd| calls.send(&Ask::Egress, &[fd.as_fd()])));
        for authority in ["other.test", "granted.test", "127.0.0.1", "granted.test:80"] {
            let call = message::Call {
                component: "fetch".to_owned(),
                scheme: "http".to_owned(),
                authority: authority.to_owned(),
                connect: Duration::MAX,
                first_byte: Duration::MAX,
                between_bytes: Duration::MAX,
                total: Duration::MAX,
            };
            let nothing = Empty::new().map_err(|never| match never {}).boxed_unsync();
            let request = Request::get("/")
                .header("host", "ambit")
                .header(CALL, serde_json::to_string(&call).expect("text"))
                .body(nothing)
                .expect("a request");
            let response = pool.send(request).await.expect("a parent");
            let sent = response.headers().get(SENT).expect("what became of it");
            assert_eq!(sent, "{\"Failed\":\"Closed\"}");
        }
    });
}

#[derive(Default)]
struct Lines(std::sync::Mutex<Vec<String>>);

impl LineSink for Lines {
    fn line(&self, who: &Who, stream: Stream, line: &str) {
        let line = format!("{} {}: {line}", who.component, stream.as_str());
        self.0.lock().expect("the lines").push(line);
    }
}

/// Every name leads to this machine.
struct Here;

impl Resolver for Here {
    fn resolve(&self, _name: &str) -> BoxFuture<std::io::Result<Vec<std::net::IpAddr>>> {
        Box::pin(std::future::ready(Ok(vec![Ipv4Addr::LOCALHOST.into()])))
    }
}

fn sample(name: &str) -> Vec<u8> {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR"));
    std::fs::read(path.join("../../testdata/components").join(name)).expect("a sample")
}

fn fetch(host: &str) -> (Admitted, Vec<u8>) {
    let text = format!(
        "apiVersion: runtime.wasmcloud.dev/v1alpha1
kind: Workload
metadata: {{name: fetch, namespace: team}}
spec:
  components:
  - name: fetch
    image: registry.example/fetch@sha256:{}
    localResources:
      allowedHosts: [\"{host}\"]
      environment: {{configFrom: [{{name: settings}}]}}
",
        "0".repeat(64)
    );
    let bytes = sample("http-fetch.wasm");
    let reviewed = ambit_testing::admit::manifest(&text, &[("fetch", &bytes)]);
    (reviewed.admitted.expect("it is allowed"), bytes)
}

fn setup(record: &Memory) -> Setup {
    let values = Values::builder()
        .secret_bytes("other", "password", b"s3cr3t".to_vec())
        .config_map("settings", [("mode".to_owned(), "fast".to_owned())].into());
    Setup {
        limits: Limits::default(),
        recorder: Arc::new(record.clone()),
        egress: Arc::new(Closed::default()),
        loopback: Vec::new(),
        private_network: PrivateNetwork::Closed,
        values: Arc::new(values.build()),
        secrets: Vec::new(),
        services: Backing::default(),
        state_dir: None,
    }
}

fn start(
    part: &str,
    admitted: &Admitted,
    bytes: &[u8],
    setup: &Setup,
) -> Result<Isolated, ExecutorError> {
    start_with(part, admitted, bytes, setup, &Arc::default())
}

fn start_with(
    part: &str,
    admitted: &Admitted,
    bytes: &[u8],
    setup: &Setup,
    lines: &Arc<Lines>,
) -> Result<Isolated, ExecutorError> {
    let options = HostOptions { allocation: Allocation::OnDemand, limits: Limits::default() };
    let host = Host::new(&options).expect("the engine starts");
    let temporary = std::env::temp_dir();
    let source = Source {
        admitted,
        bytes: &[bytes],
        temporary: &temporary,
        code: Code::Compile,
        progress: &|_, _| {},
        arguments: &[],
    };
    let lines: Arc<dyn LineSink> = Arc::<Lines>::clone(lines);
    let runtime = tokio::runtime::Handle::current();
    Isolated::start(&launch(part), &source, &Ground { host: &host, setup, lines, runtime })
}

async fn serve(workloads: &[&Isolated]) -> Ingress {
    let mut routes = Routes::default();
    for workload in workloads {
        let route = Route { handler: workload.handler(), cross_site: CrossSite::Refused };
        routes.add(workload.name(), workload.hosts(), &route).expect("a free name");
    }
    let any = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    Ingress::start(any, routes).await.expect("a port")
}

async fn get(ingress: &Ingress, host: &str, path: &str) -> String {
    let mut stream = TcpStream::connect(ingress.address()).await.expect("a connection");
    let request = format!("GET {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await.expect("a request");
    let mut answer = String::new();
    let read = stream.read_to_string(&mut answer);
    tokio::time::timeout(Duration::from_secs(60), read).await.expect("an end").expect("text");
    answer
}

fn find<'a>(effects: &'a [Kept], subject: &str) -> &'a Kept {
    let found = effects.iter().find(|effect| effect.subject.starts_with(subject));
    found.unwrap_or_else(|| panic!("`{subject}` isn't in {effects:#?}"))
}

/// Waits for something that another process does.
async fn until(what: &str, mut done: impl FnMut() -> bool) {
    for _ in 0..600 {
        if done() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    panic!("{what} didn't come about");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_worker_answers_and_what_it_does_is_on_record_here() {
    let bytes = sample("http-handler.wasm");
    let admitted = ambit_testing::admit::bare("hello", &bytes).admitted.expect("it is allowed");
    let record = Memory::default();
    let isolated = start("worker", &admitted, &bytes, &setup(&record)).expect("a worker");
    assert_eq!(isolated.entry(), Entry::Handler);
    let ingress = serve(&[&isolated]).await;
    for _ in 0..3 {
        let answer = get(&ingress, "hello.localhost", "/a?secret").await;
        assert!(answer.starts_with("HTTP/1.1 200 OK\r\n"), "{answer}");
        assert!(answer.contains("hello from the handler"), "{answer}");
    }
    assert!(ingress.stop(Duration::from_secs(10)).await);
    drop(isolated);
    until("the end of the process on record", || {
        find(&record.effects(), "process ").result.as_deref() == Some("ok")
    })
    .await;
    let effects = record.effects();
    let answered: Vec<_> = effects.iter().filter(|e| e.subject.starts_with("GET ")).collect();
    assert_eq!(answered.len(), 3, "{effects:#?}");
    assert!(answered.iter().all(|effect| effect.result.as_deref() == Some("ok")));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_command_ends_with_its_status_and_an_invoked_function_with_its_result() {
    let bytes = sample("hello.wasm");
    let admitted = ambit_testing::admit::bare("hello", &bytes).admitted.expect("it is allowed");
    let record = Memory::default();
    let isolated = start("worker", &admitted, &bytes, &setup(&record)).expect("a worker");
    assert_eq!(isolated.run_command().await.expect("it runs").status, 0);
    let missing = isolated.invoke("none()").await.expect_err("no such function");
    assert_eq!(missing.code(), "invoke-function");
}

#[tokio::test(flavor = "multi_thread")]
async fn requests_leave_by_way_of_the_parent() {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.expect("a port");
    let port = listener.local_addr().expect("its address").port();
    let served = tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.expect("a connection");
        let mut head = vec![0; 4096];
        let count = stream.read(&mut head).await.expect("a request");
        let answer = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello";
        stream.write_all(answer).await.expect("a reader");
        String::from_utf8_lossy(&head[..count]).into_owned()
    });
    let (admitted, bytes) = fetch(&format!("http://api.test:{port}"));
    let record = Memory::default();
    let mut setup = setup(&record);
    let ranges = RangePolicy::default().with(AddressClass::Loopback, RangeRule::Allow);
    let client = Client::builder().ranges(ranges).resolver(Arc::new(Here));
    setup.egress = Arc::new(client.build().expect("a client"));
    let isolated = start("worker", &admitted, &bytes, &setup).expect("a worker");
    let ingress = serve(&[&isolated]).await;

    let answer = get(&ingress, "fetch.localhost", &format!("/http/api.test:{port}/v1")).await;
    assert!(answer.contains("status 200") && answer.contains("hello"), "{answer}");
    let seen = served.await.expect("a request");
    assert!(seen.starts_with("GET /v1 HTTP/1.1\r\n"), "{seen}");
    assert!(!seen.contains("ambit-call"), "{seen}");
    let refused = get(&ingress, "fetch.localhost", &format!("/http/other.test:{port}/")).await;
    assert!(refused.contains("refused: the host denied it"), "{refused}");

    let effects = record.effects();
    let sent = find(&effects, "http://api.test");
    assert_eq!((sent.result.as_deref(), sent.denied.as_deref()), (Some("ok"), None));
    assert_eq!(find(&effects, "http://other.test").denied.as_deref(), Some("host-not-granted"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_worker_that_dies_ends_its_workload_and_no_other() {
    let bytes = sample("http-handler.wasm");
    let admit =
        |name: &str| ambit_testing::admit::bare(name, &bytes).admitted.expect("it is allowed");
    let record = Memory::default();
    let (one, other) = (admit("one"), admit("other"));
    let one = start("worker", &one, &bytes, &setup(&record)).expect("a worker");
    let other = start("worker", &other, &bytes, &setup(&record)).expect("a worker");
    let ingress = serve(&[&one, &other]).await;
    let pid = rustix::process::Pid::from_raw(one.process().try_into().expect("a number"));
    rustix::process::kill_process(pid.expect("a process"), rustix::process::Signal::KILL)
        .expect("a process");
    let died = || {
        let effects = record.effects();
        effects.iter().any(|effect| effect.result.as_deref() == Some("isolate-died"))
    };
    until("the end of the process on record", died).await;
    let answer = get(&ingress, "one.localhost", "/").await;
    assert!(answer.starts_with("HTTP/1.1 502"), "{answer}");
    assert!(answer.contains("isolate-died"), "{answer}");
    let answer = get(&ingress, "other.localhost", "/").await;
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_worker_that_names_what_is_not_its_own_is_ended() {
    for part in ["stranger", "flood"] {
        let (admitted, bytes) = fetch("http://granted.test");
        let record = Memory::default();
        let lines = Arc::<Lines>::default();
        let worker =
            start_with(part, &admitted, &bytes, &setup(&record), &lines).expect("a worker");
        let died = || {
            let effects = record.effects();
            effects.iter().any(|effect| effect.result.as_deref() == Some("isolate-died"))
        };
        until("the end of the process on record", died).await;
        let effects = record.effects();
        assert_eq!(effects.len(), 1, "{part}: {effects:#?}");
        if part == "flood" {
            let lines = lines.0.lock().expect("the lines");
            assert_eq!(*lines, ["fetch stdout: \\u{1b}[2Jcleared"]);
        }
        drop(worker);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_that_a_broken_worker_makes_up_is_not_sent_and_is_on_record() {
    let (admitted, bytes) = fetch("http://granted.test");
    let record = Memory::default();
    let worker = start("breach", &admitted, &bytes, &setup(&record)).expect("a worker");
    let breaches = || {
        let effects = record.effects();
        effects.iter().filter(|e| e.denied.as_deref() == Some("isolate-breach")).count()
    };
    until("four breaches on record", || breaches() == 4).await;
    let effects = record.effects();
    for subject in ["http://other.test:80", "http://granted.test:80", "http://127.0.0.1:80"] {
        let mut denied = effects.iter().filter(|effect| effect.denied.is_some());
        assert!(denied.any(|effect| effect.subject == subject), "{subject}: {effects:#?}");
    }
    drop(worker);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_worker_is_told_the_values_of_its_own_workload_only() {
    let (admitted, bytes) = fetch("http://granted.test");
    let record = Memory::default();
    let setup = setup(&record);
    let source = Source {
        admitted: &admitted,
        bytes: &[&bytes],
        temporary: &std::env::temp_dir(),
        code: Code::Compile,
        progress: &|_, _| {},
        arguments: &[],
    };
    let host = Host::new(&HostOptions::default()).expect("the engine starts");
    let lines: Arc<dyn LineSink> = Arc::<Lines>::default();
    let runtime = tokio::runtime::Handle::current();
    let ground = Ground { host: &host, setup: &setup, lines, runtime };
    let terms = super::parent::terms(&source, &ground, std::env::temp_dir());
    let text = serde_json::to_string(&terms).expect("text");
    let names: Vec<_> = terms.values.iter().map(|object| object.name.as_str()).collect();
    assert_eq!(names, ["settings"]);
    assert!(!text.contains("password"), "{text}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_worker_that_cannot_load_says_why() {
    let bytes = sample("http-handler.wasm");
    let admitted = ambit_testing::admit::bare("hello", &bytes).admitted.expect("it is allowed");
    let record = Memory::default();
    let error = start("worker", &admitted, &sample("hello.wasm"), &setup(&record));
    assert_eq!(error.expect_err("other bytes").code(), "run-digest");
    // A process that is no worker ends, and that is an error and not a wait.
    let error = start("nothing", &admitted, &bytes, &setup(&record)).expect_err("no worker");
    assert_eq!(error.code(), "isolate-died", "{error}");
}

/// What a confined process can't do. It runs in a child, since nothing takes the walls away again.
fn confined_process() {
    let inside = tempfile::tempdir().expect("a folder");
    let outside = tempfile::NamedTempFile::new().expect("a file");
    let allowance = Allowance {
        read: Vec::new(),
        write: vec![inside.path().to_owned()],
        descriptors: 64,
        network: false,
    };
    let confined = confine(&allowance).expect("walls");
    println!("files {:?} calls {:?}", confined.files, confined.calls);
    std::fs::write(inside.path().join("file"), "text").expect("its own folder");
    if confined.files == Wall::Whole {
        std::fs::read("/etc/passwd").expect_err("a file of the system");
        std::fs::read(outside.path()).expect_err("a file of somebody else's");
        std::fs::write(outside.path(), "text").expect_err("a file of somebody else's");
        std::fs::read_dir("/").expect_err("the root");
    }
    if confined.calls != Wall::None {
        std::net::UdpSocket::bind("127.0.0.1:0").expect_err("a socket");
        std::net::TcpStream::connect("127.0.0.1:9").expect_err("a socket");
        std::process::Command::new("/bin/true").spawn().expect_err("a program");
    }
    let files: Vec<_> =
        (0..100).map_while(|_| std::fs::File::open(inside.path().join("file")).ok()).collect();
    assert!(files.len() < 64, "{}", files.len());
    drop(files);
    println!("all of it held");
}

#[test]
fn a_confined_process_has_its_own_folder_and_nothing_else() {
    let launch = launch("confined");
    let out = std::process::Command::new(launch.program)
        .args(launch.arguments)
        .envs(launch.environment)
        .output()
        .expect("a process");
    let text = String::from_utf8_lossy(&out.stdout);
    assert!(text.contains("all of it held"), "{text}\n{}", String::from_utf8_lossy(&out.stderr));
    println!("{}", text.lines().find(|line| line.starts_with("files ")).unwrap_or_default());
}
