//! `ambit sign` and `ambit attest`.

use std::collections::BTreeMap;

use ambit_engine::component::ReadOptions;
use ambit_engine::decision::Verdict;
use ambit_engine::digest::Digest;
use ambit_engine::reference::ImageSource;
use ambit_engine::report;
use ambit_engine::review::{Mode, review};
use ambit_trust::attach::{attach_bundle, attach_legacy_attestation, attach_legacy_signature};
use ambit_trust::gather;
use ambit_trust::keys::{KeyError, SigningKey};
use ambit_trust::oci::{ManifestName, RawManifest};
use ambit_trust::policy::predicate_types;
use ambit_trust::sign::{
    self, CAPABILITIES, COSIGN_SIGN, Resource, SummaryResult, VERIFICATION_SUMMARY,
    VerificationSummary,
};
use ambit_trust::stores::{Origin, Place};
use jiff::Timestamp;
use serde_json::{Value, json};

use crate::args::{Attest, Format, Global, Sign};
use crate::commands::artifact::annotation;
use crate::commands::check::{Judged, judge, timestamp};
use crate::configuration::{self, Configuration};
use crate::exit::Exit;
use crate::fetch::{Fetcher, Trusted};
use crate::key;
use crate::output::{Failure, Output};
use crate::source::{analyse, read_file};

/// The largest predicate, in bytes.
const MAX_PREDICATE_BYTES: usize = 8 << 20;

/// Who verifies, in a verification summary and in a statement of capabilities.
const VERIFIER: &str = "https://ambit.dev";

fn refused(error: &KeyError) -> Failure {
    key::failure(error)
}

/// Signs an image.
pub(crate) fn sign(command: &Sign, global: &Global, output: &Output) -> Result<Exit, Failure> {
    output.only(&[Format::Human, Format::Json])?;
    let configuration = configuration::read(global)?;
    let now = timestamp(command.now.as_deref())?;
    let mut annotations = BTreeMap::new();
    for pair in &command.annotations {
        let (name, value) = annotation(pair)?;
        annotations.insert(name, value);
    }
    let key = key::read(&command.key)?;
    let fetcher = Fetcher::writing(&command.registry, &configuration, output)?;
    let source = ImageSource::parse(&command.reference);
    fetcher.wait(async {
        let origin = fetcher.origin(&source).await?;
        let subject = origin.store.manifest(&origin.name).await?;
        let store = origin.store.as_ref();
        let place = if command.legacy {
            let name = origin.place.to_string();
            let signature = sign::legacy_signature(&key, &name, &subject.digest, &annotations)
                .map_err(|error| refused(&error))?;
            attach_legacy_signature(store, &subject.digest, &signature).await?;
            legacy_tag(&subject.digest, "sig")
        } else {
            let bundle = sign::signature_bundle(&key, &subject.digest, &annotations)
                .map_err(|error| refused(&error))?;
            attach_bundle(store, &subject, &bundle, COSIGN_SIGN, now).await?.to_string()
        };
        attached(&origin, &subject, &place, &key, output)
    })
}

fn legacy_tag(subject: &Digest, suffix: &str) -> String {
    format!("{}.{suffix}", subject.to_string().replace(':', "-"))
}

fn attached(
    origin: &Origin,
    subject: &RawManifest,
    place: &str,
    key: &SigningKey,
    output: &Output,
) -> Result<Exit, Failure> {
    let about = format!("{}@{}", origin.place, subject.digest);
    if output.format == Format::Json {
        output.json(&json!({
            "schema": "ambit.sign/v1",
            "subject": about,
            "place": place,
            "key": key.fingerprint().to_string(),
        }))?;
    } else {
        output.answer(&format!("{about}\nsigned by {}, stored as {place}\n", key.fingerprint()))?;
    }
    Ok(Exit::Done)
}

/// Attests something about an image.
pub(crate) fn attest(command: &Attest, global: &Global, output: &Output) -> Result<Exit, Failure> {
    output.only(&[Format::Human, Format::Json])?;
    let mut configuration = configuration::read(global)?;
    let now = timestamp(command.now.as_deref())?;
    let key = key::read(&command.key)?;
    let source = ImageSource::parse(&command.reference);
    let fetcher = Fetcher::writing(&command.registry, &configuration, output)?;
    let (origin, subject) = fetcher.wait(async {
        let origin = fetcher.origin(&source).await?;
        let subject = origin.store.manifest(&origin.name).await?;
        Ok::<_, Failure>((origin, subject))
    })?;
    // The tag was asked once; from here on the digest is what counts.
    let origin = Origin { name: ManifestName::Digest(subject.digest), ..origin };
    let mut exit = Exit::Done;
    let (kind, predicate) = if command.capabilities {
        (CAPABILITIES.to_owned(), capabilities(&fetcher, &origin, &configuration)?)
    } else if command.decision {
        let (verdict, predicate) =
            decision(command, (&origin, &subject), &mut configuration, (now, output))?;
        if verdict == Verdict::Deny {
            exit = Exit::Denied;
        }
        (VERIFICATION_SUMMARY.to_owned(), predicate)
    } else {
        given(command)?
    };
    let store = origin.store.as_ref();
    let place = if command.legacy {
        let name = origin.place.to_string();
        let envelope = sign::legacy_attestation(&key, &name, &subject.digest, &kind, &predicate)
            .map_err(|error| refused(&error))?;
        fetcher.wait(attach_legacy_attestation(store, &subject.digest, &kind, &envelope))?;
        legacy_tag(&subject.digest, "att")
    } else {
        let bundle = sign::attestation_bundle(&key, &subject.digest, &kind, &predicate)
            .map_err(|error| refused(&error))?;
        fetcher.wait(attach_bundle(store, &subject, &bundle, &kind, now))?.to_string()
    };
    attached(&origin, &subject, &place, &key, output)?;
    Ok(exit)
}

/// Reads the predicate that the arguments name.
fn given(command: &Attest) -> Result<(String, Value), Failure> {
    let (Some(path), Some(kind)) = (&command.predicate, &command.predicate_type) else {
        return Err(Failure::new("usage-predicate", "no predicate is named", None));
    };
    let kinds = predicate_types(kind)
        .map_err(|error| Failure::new("usage-predicate", error.to_string(), Some(error.help())))?;
    let kind = kinds.into_iter().next().unwrap_or_else(|| kind.clone());
    let bytes = read_file(path, MAX_PREDICATE_BYTES)?;
    let predicate = serde_json::from_slice(&bytes).map_err(|error| {
        let help = "a predicate is one JSON value".to_owned();
        Failure::new("usage-predicate", format!("{}: {error}", path.display()), Some(help))
    })?;
    Ok((kind, predicate))
}

/// Derives what the component can do, as a predicate.
fn capabilities(
    fetcher: &Fetcher<'_>,
    origin: &Origin,
    configuration: &Configuration,
) -> Result<Value, Failure> {
    let limits = &configuration.limits;
    let fetched = fetcher.wait(gather::component(origin, limits.max_component_bytes))?;
    let name = origin.place.to_string();
    let known = (limits, ReadOptions::default());
    let loaded = analyse(&name, &fetched.bytes, known, &configuration.catalogue)?;
    let document = report::inspect(&name, &loaded.component, &loaded.capabilities);
    let document = serde_json::to_value(&document)
        .map_err(|error| Failure::new("output-failed", error.to_string(), None))?;
    let part = |key: &str| document.get(key).cloned().unwrap_or(Value::Null);
    Ok(json!({
        "analyzer": {"id": VERIFIER, "version": env!("CARGO_PKG_VERSION")},
        "component": {"digest": part("digest"), "kind": part("kind")},
        "capabilities": part("capabilities"),
        "imports": part("imports"),
        "exports": part("exports"),
        "analysis": part("analysis"),
    }))
}

/// Checks the image in this process, and puts the decision into a verification summary.
fn decision(
    command: &Attest,
    (origin, subject): (&Origin, &RawManifest),
    configuration: &mut Configuration,
    (now, output): (Timestamp, &Output),
) -> Result<(Verdict, Value), Failure> {
    let trusted = Trusted::read(&command.trust, configuration, now)?;
    let reference = format!("{}@{}", origin.place, subject.digest);
    // What is signed is about the image, never about a file that has its name in this folder.
    let named = match &origin.place {
        Place::Registry(_) => format!("oci:{reference}"),
        Place::Layout(_) => reference.clone(),
    };
    let judged = Judged {
        inputs: &crate::args::Inputs {
            files: vec![named],
            component: Vec::new(),
            target: None,
            registry: command.registry.clone(),
        },
        profile: command.profile.map(Into::into),
        policies: &[],
        now,
        mode: Mode::Ci,
    };
    let done = judge(&judged, configuration, &trusted, output, review)?;
    for unread in &done.inputs.unread {
        output.failure(&unread.failure);
    }
    let Some(review) = done.reviews.first().filter(|_| done.inputs.unread.is_empty()) else {
        return Err(Failure::new(
            "attest-no-decision",
            format!("`{reference}` was not judged, so nothing is attested"),
            Some("`ambit check` tells why".to_owned()),
        ));
    };
    let verdict = review.decision.verdict;
    let result = match verdict {
        Verdict::Allow => SummaryResult::Passed,
        Verdict::Deny => SummaryResult::Failed,
        Verdict::Error => {
            let reason = review.decision.errors.first();
            let reason = reason.map(|error| error.message.clone()).unwrap_or_default();
            return Err(Failure::new(
                "attest-no-decision",
                format!("`{reference}` has no decision, so nothing is attested: {reason}"),
                Some("`ambit check` tells more".to_owned()),
            ));
        }
    };
    let used = serde_json::to_vec(&configuration.digests)
        .map_err(|error| Failure::new("output-failed", error.to_string(), None))?;
    let summary = VerificationSummary {
        verifier: VERIFIER.to_owned(),
        time: now,
        resource_uri: format!("oci://{reference}"),
        policy: Resource {
            uri: format!("https://ambit.dev/profile/{}", done.profile.as_str()),
            digest: Digest::of(&used),
        },
        inputs: Vec::new(),
        result,
        // The build track of SLSA isn't what was evaluated, and the specification has a word for it.
        levels: vec![
            match result {
                SummaryResult::Passed => "SLSA_BUILD_LEVEL_UNEVALUATED",
                SummaryResult::Failed => "FAILED",
            }
            .to_owned(),
        ],
    };
    Ok((verdict, summary.predicate()))
}
