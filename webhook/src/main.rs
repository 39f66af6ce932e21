//! `ambit-webhook`: answers an API server's reviews.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use ambit_setup::Failure;
use ambit_webhook::log::{Event, Log, told};
use ambit_webhook::server::{self, Bounds, Health};
use ambit_webhook::service::Service;
use ambit_webhook::settings::{Settings, Sources};
use ambit_webhook::tls::{Certificates, server_config};
use clap::Parser;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::watch;
use tokio_rustls::TlsAcceptor;

/// The most threads that read, judge and look names up, beside those that serve.
const BLOCKING: usize = 64;

/// Answers the admission reviews of a Kubernetes API server: what a workload's components can reach,
/// against its grants, ceilings, policies and signatures.
///
/// `/validate` judges, `/mutate` replaces tags by digests. Files are looked at again while it runs; a
/// configuration or certificate that can't be used leaves the old one in place.
#[derive(Debug, Parser)]
#[command(version, max_term_width = 100)]
struct Arguments {
    /// The configuration, `ambit.yaml`; without it the defaults count
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// A folder with `tls.crt` (the whole chain) and `tls.key`, as a mounted Secret has them
    #[arg(long, value_name = "DIR")]
    certs: PathBuf,
    /// Listen to clients only that have a certificate of these authorities (PEM)
    #[arg(long, value_name = "FILE")]
    client_ca: Option<PathBuf>,
    /// Registry credentials in Docker's form; can be given more than once
    #[arg(long, value_name = "FILE")]
    docker_config: Vec<PathBuf>,
    /// A `trusted_root.json` in place of the built-in public-good root
    #[arg(long, value_name = "FILE")]
    trusted_root: Option<PathBuf>,
    /// Where reviews are answered, over TLS
    #[arg(long, value_name = "ADDRESS", default_value = "0.0.0.0:8443")]
    listen: SocketAddr,
    /// Where `/healthz`, `/readyz` and `/metrics` are, over plain HTTP
    #[arg(long, value_name = "ADDRESS", default_value = "0.0.0.0:8080")]
    probes: SocketAddr,
    /// Reviews that are answered at once; more are denied with a hint to try again
    #[arg(long, value_name = "COUNT", default_value_t = 256,
        value_parser = clap::value_parser!(u16).range(1..=1024))]
    max_reviews: u16,
    /// Connections that are open at once; more are closed
    #[arg(long, value_name = "COUNT", default_value_t = 1024,
        value_parser = clap::value_parser!(u16).range(1..))]
    max_connections: u16,
    /// How often files are looked at, in seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 5,
        value_parser = clap::value_parser!(u64).range(1..=3600))]
    watch_seconds: u64,
    /// How long it goes on accepting after SIGTERM, in seconds, so that the API server hears first
    /// that it is going
    #[arg(long, value_name = "SECONDS", default_value_t = 5,
        value_parser = clap::value_parser!(u64).range(0..=60))]
    stop_delay_seconds: u64,
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let (log, writer) = Log::to(std::io::stdout());
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .max_blocking_threads(BLOCKING)
        .build();
    let done = match runtime {
        Ok(runtime) => runtime.block_on(serve(arguments, &log)),
        Err(error) => Err(Failure::of(&error, "runtime-failed", None)),
    };
    let code = match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            log.line(&Event::now("failed", "error", told(&failure)));
            ExitCode::from(2)
        }
    };
    log.finish();
    // An error means that the thread panicked, and there is nothing more to write.
    let _ = writer.join();
    code
}

async fn serve(arguments: Arguments, log: &Log) -> Result<(), Failure> {
    let sources = Sources {
        config: arguments.config,
        docker_configs: arguments.docker_config,
        trusted_root: arguments.trusted_root,
    };
    let settings = Arc::new(Settings::new(sources));
    let certificates = Arc::new(Certificates::new(arguments.certs));
    let at_once = usize::from(arguments.max_reviews);
    let service = Arc::new(Service::new(settings, log.clone(), at_once));
    let tls = server_config(Arc::clone(&certificates), arguments.client_ca.as_deref())?;
    let (stop, stopping) = watch::channel(false);
    let (drain, draining) = watch::channel(false);
    let bind = |address: SocketAddr| async move {
        server::bind(address)
            .await
            .map_err(|error| Failure::new("webhook-address", format!("{address}: {error}"), None))
    };
    let probes = bind(arguments.probes).await?;
    let reviews = bind(arguments.listen).await?;
    let health =
        Health { service: Arc::clone(&service), certificates: Arc::clone(&certificates), stopping };
    tokio::spawn(server::probes(probes, health));
    let (own, certs) = (Arc::clone(&service), Arc::clone(&certificates));
    // Liveness is answered while this reads; readiness waits for it.
    let first = tokio::task::spawn_blocking(move || server::turn(&own, &certs));
    if first.await.is_err() {
        return Err(Failure::new("runtime-failed", "reading the files panicked", None));
    }
    let message = format!("reviews on {}, probes on {}", arguments.listen, arguments.probes);
    log.line(&Event::now("started", "info", message));
    let pause = Duration::from_secs(arguments.watch_seconds);
    tokio::spawn(server::watch_files(Arc::clone(&service), certificates, pause));
    let bounds = Bounds { connections: usize::from(arguments.max_connections) };
    let acceptor = TlsAcceptor::from(Arc::new(tls));
    let serving = tokio::spawn(server::reviews(reviews, acceptor, service, bounds, draining));
    asked_to_stop().await?;
    log.line(&Event::now("stopping", "info", "no longer ready".to_owned()));
    stop.send_replace(true);
    tokio::time::sleep(Duration::from_secs(arguments.stop_delay_seconds)).await;
    drain.send_replace(true);
    let message = match serving.await {
        Ok(true) => "what was accepted is answered",
        Ok(false) | Err(_) => "not all that was accepted is answered",
    };
    log.line(&Event::now("stopped", "info", message.to_owned()));
    Ok(())
}

async fn asked_to_stop() -> Result<(), Failure> {
    let listen = |kind: SignalKind| {
        signal(kind).map_err(|error| Failure::of(&error, "runtime-failed", None))
    };
    let (mut terminate, mut interrupt) =
        (listen(SignalKind::terminate())?, listen(SignalKind::interrupt())?);
    tokio::select! {
        _ = terminate.recv() => {}
        _ = interrupt.recv() => {}
    }
    Ok(())
}
