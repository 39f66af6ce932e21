//! `ambit pull` and `ambit push`.

use std::collections::BTreeMap;
use std::io::Write as _;
use std::path::Path;

use ambit_engine::component::{Kind, ReadOptions};
use ambit_engine::reference::ImageSource;
use ambit_trust::attach::{self, CopyLimits, WithReferrers};
use ambit_trust::gather;
use ambit_trust::oci::ManifestName;
use ambit_trust::resolve::Claims;
use ambit_trust::stores::Origin;

use crate::args::{Format, Global, Pull, Push};
use crate::commands::check::timestamp;
use crate::configuration;
use crate::exit::Exit;
use crate::fetch::Fetcher;
use crate::output::{Failure, Output};
use crate::source::{analyse, read_file};

/// Fetches a component into a file, or an image with its signatures into a layout.
pub(crate) fn pull(command: &Pull, global: &Global, output: &Output) -> Result<Exit, Failure> {
    output.only(&[Format::Human, Format::Json])?;
    let configuration = configuration::read(global)?;
    let fetcher = Fetcher::new(&command.registry, &configuration, output)?;
    let source = ImageSource::parse(&command.reference);
    let max_bytes = configuration.limits.max_component_bytes;
    fetcher.wait(async {
        let origin = fetcher.origin(&source).await?;
        if let Some(layout) = command.output.as_deref().filter(|to| to.starts_with("layout:")) {
            let to = fetcher.destination(&tagged(layout, &source))?;
            return copy(&origin, &to, max_bytes, output).await;
        }
        let path = match &command.output {
            Some(path) => path.clone(),
            None => file_name(&source)?,
        };
        let fetched = gather::component(&origin, max_bytes).await?;
        replace(Path::new(&path), &fetched.bytes)?;
        let named = fetched.resolved.named().digest;
        let layer = fetched.resolved.layer.digest;
        if output.format == Format::Json {
            output.json(&serde_json::json!({
                "schema": "ambit.pull/v1",
                "file": path,
                "digest": named.to_string(),
                "layer": layer.to_string(),
            }))?;
        } else {
            output.answer(&format!(
                "{path}  {} bytes, {layer}\nfrom {}@{named}\n",
                fetched.bytes.len(),
                origin.place
            ))?;
        }
        Ok(Exit::Done)
    })
}

/// Stores a component, or an image with its signatures.
pub(crate) fn push(command: &Push, global: &Global, output: &Output) -> Result<Exit, Failure> {
    output.only(&[Format::Human, Format::Json])?;
    let configuration = configuration::read(global)?;
    let created = timestamp(command.created.as_deref())?;
    let mut annotations = BTreeMap::new();
    for pair in &command.annotation {
        let (key, value) = annotation(pair)?;
        annotations.insert(key, value);
    }
    let fetcher = Fetcher::writing(&command.registry, &configuration, output)?;
    let to = fetcher.destination(&command.reference)?;
    let limits = &configuration.limits;
    if let source @ ImageSource::Layout { .. } = ImageSource::parse(&command.source) {
        return fetcher.wait(async {
            let origin = fetcher.origin(&source).await?;
            copy(&origin, &to, limits.max_component_bytes, output).await
        });
    }
    let bytes = read_file(Path::new(&command.source), limits.max_component_bytes)?;
    let loaded = analyse(
        &command.source,
        &bytes,
        (limits, ReadOptions::default()),
        &configuration.catalogue,
    )?;
    // The list that others show is the one that the binary has.
    let claims = match loaded.component.kind {
        Kind::Component => Claims {
            imports: loaded.component.imports.iter().map(|import| import.name.clone()).collect(),
            exports: loaded.component.exports.iter().map(|export| export.name.clone()).collect(),
            target: None,
        },
        Kind::CoreModule => Claims::default(),
    };
    let ManifestName::Tag(tag) = &to.name else {
        return Err(Failure::new("usage-reference", "a tag is asked for", None));
    };
    let digest = fetcher.wait(attach::push_component(
        to.store.as_ref(),
        tag,
        &bytes,
        &claims,
        &annotations,
        created,
    ))?;
    pushed(&to, &digest.to_string(), (0, 0), output)
}

/// Copies an image with everything that refers to it.
async fn copy(
    from: &Origin,
    to: &Origin,
    max_blob_bytes: usize,
    output: &Output,
) -> Result<Exit, Failure> {
    let limits = CopyLimits { max_blob_bytes };
    let copied = attach::copy(
        from.store.as_ref(),
        to.store.as_ref(),
        &from.name,
        &to.name,
        WithReferrers::Yes,
        &limits,
    )
    .await?;
    pushed(to, &copied.digest.to_string(), (copied.referrers, copied.legacy), output)
}

fn pushed(
    to: &Origin,
    digest: &str,
    (referrers, legacy): (usize, usize),
    output: &Output,
) -> Result<Exit, Failure> {
    let pinned = format!("{}:{}@{digest}", to.place, to.name);
    if output.format == Format::Json {
        output.json(&serde_json::json!({
            "schema": "ambit.push/v1",
            "reference": pinned,
            "digest": digest,
            "referrers": referrers,
            "legacy": legacy,
        }))?;
    } else {
        let attached = referrers.saturating_add(legacy);
        let with = match attached {
            0 => String::new(),
            1 => "\nwith 1 signature or attestation".to_owned(),
            more => format!("\nwith {more} signatures and attestations"),
        };
        output.answer(&format!("{pinned}{with}\n"))?;
    }
    Ok(Exit::Done)
}

/// Reads `KEY=VALUE`.
pub(crate) fn annotation(pair: &str) -> Result<(String, String), Failure> {
    match pair.split_once('=') {
        Some((key, value)) if !key.is_empty() => Ok((key.to_owned(), value.to_owned())),
        _ => Err(Failure::new(
            "usage-annotation",
            format!("`{pair}` is not KEY=VALUE"),
            Some(
                "write `-a org.opencontainers.image.source=https://source.example/app`".to_owned(),
            ),
        )),
    }
}

/// The file for a component that no `--output` names.
fn file_name(source: &ImageSource) -> Result<String, Failure> {
    let path = match source {
        ImageSource::Oci(reference) => reference.repository().path().to_owned(),
        ImageSource::Layout { path, .. } => path.clone(),
        ImageSource::File(_) | ImageSource::Artifact(_) | ImageSource::Invalid(_) => String::new(),
    };
    match path.trim_end_matches('/').rsplit('/').next() {
        Some(name) if !name.is_empty() && !name.starts_with('.') => Ok(format!("{name}.wasm")),
        _ => Err(Failure::new(
            "usage-output",
            "the source has no name that would do for a file",
            Some("name one with `--output`".to_owned()),
        )),
    }
}

/// A layout's tag: the one that is given, else the source's own.
fn tagged(layout: &str, source: &ImageSource) -> String {
    let given = matches!(ImageSource::parse(layout), ImageSource::Layout { tag: Some(_), .. });
    let own = match source {
        ImageSource::Oci(reference) => reference.tag(),
        ImageSource::Layout { tag, .. } => tag.as_deref(),
        ImageSource::File(_) | ImageSource::Artifact(_) | ImageSource::Invalid(_) => None,
    };
    match own {
        Some(tag) if !given => format!("{layout}:{tag}"),
        None if !given => format!("{layout}:latest"),
        Some(_) | None => layout.to_owned(),
    }
}

/// Writes a file, whole or not at all.
fn replace(path: &Path, bytes: &[u8]) -> Result<(), Failure> {
    let failure = |error: &dyn std::fmt::Display| {
        Failure::new(
            "file-not-written",
            format!("{}: {error}", path.display()),
            Some("check the folder, its permissions and the free space".to_owned()),
        )
    };
    let dir = path.parent().filter(|dir| !dir.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let mut file = tempfile::NamedTempFile::new_in(dir).map_err(|error| failure(&error))?;
    file.write_all(bytes).map_err(|error| failure(&error))?;
    // A temporary file is for its owner alone; what is pulled is read by others too.
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o644);
    file.as_file().set_permissions(mode).map_err(|error| failure(&error))?;
    file.as_file().sync_all().map_err(|error| failure(&error))?;
    file.persist(path).map_err(|error| failure(&error.error))?;
    Ok(())
}
