//! `ambit verify`.

use std::path::Path;

use ambit_engine::digest::Digest;
use ambit_engine::reference::ImageSource;
use ambit_trust::candidate::{Candidate, Content};
use ambit_trust::error::FetchError;
use ambit_trust::gather::About;
use ambit_trust::oci::{MAX_EVIDENCE_BYTES, ManifestName};
use ambit_trust::policy::{
    AttestationRule, Authority, Outcome, Question, TrustPolicy, VerifyDocument, VerifyImage,
    evaluate,
};
use ambit_trust::resolve::{OlderTypes, resolve};
use ambit_trust::stores::Origin;
use ambit_trust::verify::{Artifact, Statement, blob};

use crate::args::{Format, Global, Verify};
use crate::commands::check::timestamp;
use crate::configuration::{self, Configuration};
use crate::exit::Exit;
use crate::fetch::{Fetcher, Trusted, flags};
use crate::output::{Failure, Output};
use crate::render::style::Style;
use crate::render::verify;
use crate::source::{read_file, read_stdin};

/// Verifies signatures and attestations.
pub(crate) fn run(command: &Verify, global: &Global, output: &Output) -> Result<Exit, Failure> {
    output.only(&[Format::Human, Format::Json])?;
    let mut configuration = configuration::read(global)?;
    let now = timestamp(command.now.as_deref())?;
    let mut trusted = Trusted::read(&command.trust, &mut configuration, now)?;
    let flags = flags(&command.cosign, &command.trust)?;
    if let Some(flags) = &flags {
        trusted.flags(flags, &mut configuration)?;
    } else if trusted.policies().is_empty() {
        return Err(Failure::new(
            "trust-none",
            "nothing says whose signatures count",
            Some(
                "name a trust policy with `--trust FILE`, or add `--key FILE`, or \
                 `--certificate-identity` with `--certificate-oidc-issuer`"
                    .to_owned(),
            ),
        ));
    }
    trusted.warn(output);
    match (&command.bundle, &command.reference) {
        (Some(bundle), _) => file(command, bundle, &trusted, output),
        (None, Some(reference)) => image(command, reference, (&configuration, &trusted), output),
        (None, None) => Err(Failure::new("usage-reference", "nothing is named to verify", None)),
    }
}

fn image(
    command: &Verify,
    reference: &str,
    (configuration, trusted): (&Configuration, &Trusted),
    output: &Output,
) -> Result<Exit, Failure> {
    let fetcher = Fetcher::new(&command.registry, configuration, output)?;
    let source = ImageSource::parse(reference);
    let image = fetcher.wait(async {
        let origin = fetcher.origin(&source).await?;
        let raw = origin.store.manifest(&origin.name).await?;
        let pinned = Origin { name: ManifestName::Digest(raw.digest), ..origin };
        // Any image can be signed; only one of wasm has a layer that a policy may pin.
        let resolved =
            match resolve(pinned.store.as_ref(), &pinned.name, OlderTypes::Accepted).await {
                Ok(resolved) => Some(resolved),
                Err(FetchError::NotWasm { .. } | FetchError::IndexAmbiguous { .. }) => None,
                Err(error) => return Err(Failure::from(error)),
            };
        let about = match &resolved {
            Some(resolved) => About::component(resolved),
            None => About { digests: vec![raw.digest], layer: None },
        };
        let report = fetcher.report(&pinned, &about, trusted).await;
        let index = resolved.as_ref().and_then(|resolved| resolved.index.as_ref());
        let manifest = resolved.as_ref().map_or(raw.digest, |resolved| resolved.manifest.digest);
        Ok(VerifyImage::new(
            reference.to_owned(),
            Some(manifest),
            (index.map(|index| index.digest), about.layer),
            report.outcomes,
        ))
    })?;
    answer(image, output)
}

fn answer(image: VerifyImage, output: &Output) -> Result<Exit, Failure> {
    let exit = match image.outcome {
        Outcome::Satisfied => Exit::Done,
        Outcome::Unsatisfied => Exit::Denied,
        Outcome::Unknown => Exit::NoDecision,
    };
    let document = VerifyDocument::new(vec![image]);
    if output.format == Format::Json {
        output.json(&document)?;
    } else {
        output.answer(&verify::human(&document, Style::new(output.colored())))?;
    }
    Ok(exit)
}

/// Verifies a bundle in a file, about a file or digest.
fn file(
    command: &Verify,
    path: &Path,
    trusted: &Trusted,
    output: &Output,
) -> Result<Exit, Failure> {
    let bundle = if path == Path::new("-") {
        read_stdin(MAX_EVIDENCE_BYTES)?
    } else {
        read_file(path, MAX_EVIDENCE_BYTES)?
    };
    let bytes = match &command.artifact {
        Some(path) => Some(read_file(path, 1 << 30)?),
        None => None,
    };
    let artifact = match (&bytes, &command.digest) {
        (Some(bytes), _) => Artifact::Bytes(bytes),
        (None, Some(digest)) => digest_of(digest)?,
        (None, None) => {
            return Err(Failure::new(
                "usage-artifact",
                "`--bundle` needs to know what the bundle is about",
                Some("add `--artifact FILE` or `--digest sha256:…`".to_owned()),
            ));
        }
    };
    let ask =
        |authority: &Authority| blob(&bundle, artifact, authority, trusted.roots(), trusted.now);
    // A file has no repository, so every policy is for it; and a bundle about a file is what was
    // attested about it, so any predicate will do where no type is asked for.
    let mut policies = trusted.policies().to_vec();
    for authority in policies.iter_mut().flat_map(|policy| &mut policy.authorities) {
        if !authority.attestations.is_empty() {
            continue;
        }
        if let Ok(verified) = ask(authority)
            && let Statement::Attestation { predicate_type, .. } = &verified.get().statement
        {
            authority.attestations.push(AttestationRule {
                name: "any".to_owned(),
                predicate_types: vec![predicate_type.clone()],
                rego: None,
            });
        }
    }
    let place = path.display().to_string();
    let candidate = Candidate { place: place.clone(), content: Content::Bundle(bundle.clone()) };
    let sha256 = match artifact {
        Artifact::Bytes(bytes) => Some(Digest::of(bytes)),
        Artifact::Digest(digest) => Some(digest),
        Artifact::Sha512(_) => None,
    };
    let subjects: Vec<Digest> = sha256.into_iter().collect();
    let question = Question {
        subjects: &subjects,
        layer: sha256,
        candidates: &[candidate],
        gaps: &[],
        now: trusted.now,
    };
    let policies: Vec<&TrustPolicy> = policies.iter().collect();
    let outcomes = evaluate(&policies, &question, |_, authority| ask(authority));
    answer(VerifyImage::new(place, sha256, (None, None), outcomes), output)
}

/// Reads a SHA-256 or SHA-512 digest.
fn digest_of(text: &str) -> Result<Artifact<'static>, Failure> {
    let invalid = |message: String| {
        let help = "write `sha256:` and 64, or `sha512:` and 128 hexadecimal digits".to_owned();
        Failure::new("reference-digest", message, Some(help))
    };
    let Some(digits) = text.strip_prefix("sha512:") else {
        let digest: Digest = text.parse().map_err(|error| invalid(format!("{error}")))?;
        return Ok(Artifact::Digest(digest));
    };
    let mut bytes = [0_u8; 64];
    let valid = digits.len() == 128 && digits.is_ascii();
    for (index, byte) in bytes.iter_mut().enumerate() {
        let start = index.saturating_mul(2);
        let pair = digits.get(start..start.saturating_add(2)).filter(|pair| {
            valid && pair.bytes().all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b))
        });
        let value = pair.and_then(|pair| u8::from_str_radix(pair, 16).ok());
        *byte = value.ok_or_else(|| invalid(format!("`{text}` is no SHA-512 digest")))?;
    }
    Ok(Artifact::Sha512(bytes))
}
