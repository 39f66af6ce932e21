//! Secrets that leave for one host only.

use std::sync::Arc;

use ambit_engine::grant::{HostDecision, HostGrants, Target};
use ambit_engine::workload::Private;
use http::{HeaderMap, HeaderName, HeaderValue};

/// A secret that is put into a header of requests to certain hosts, in place of a placeholder.
///
/// The component holds the placeholder only: random text that is worth nothing anywhere else. It is
/// replaced in the named header, for the named hosts, on the way out. It is never replaced in a
/// body, in another header, or in what comes back.
#[derive(Clone, Debug)]
pub struct BoundSecret {
    placeholder: Arc<str>,
    value: Private,
    hosts: Arc<HostGrants>,
    header: HeaderName,
}

impl BoundSecret {
    /// Binds a secret to a header and to hosts, and makes its placeholder.
    ///
    /// # Errors
    ///
    /// If the value can't stand in a header, or the machine gives no random bytes.
    pub fn new(value: Private, header: HeaderName, hosts: HostGrants) -> std::io::Result<Self> {
        if value.reveal().is_empty() || HeaderValue::from_str(value.reveal()).is_err() {
            return Err(std::io::Error::other("the value can't stand in a header"));
        }
        let mut random = [0_u8; 16];
        getrandom::fill(&mut random).map_err(std::io::Error::other)?;
        let digits: String = random.iter().map(|byte| format!("{byte:02x}")).collect();
        let placeholder = Arc::from(format!("ambit-secret-{digits}"));
        Ok(Self { placeholder, value, hosts: Arc::new(hosts), header })
    }

    /// Returns what the component is given in place of the secret.
    #[must_use]
    pub fn placeholder(&self) -> &str {
        &self.placeholder
    }
}

/// Puts the secrets that are bound to this target into its headers.
pub(crate) fn reveal(secrets: &[BoundSecret], target: &Target, headers: &mut HeaderMap) {
    let bound =
        |secret: &&BoundSecret| matches!(secret.hosts.decide(target), HostDecision::Allowed { .. });
    for secret in secrets.iter().filter(bound) {
        let http::header::Entry::Occupied(mut entry) = headers.entry(&secret.header) else {
            continue;
        };
        for value in entry.iter_mut() {
            let Ok(text) = value.to_str() else { continue };
            if !text.contains(&*secret.placeholder) {
                continue;
            }
            let text = text.replace(&*secret.placeholder, secret.value.reveal());
            if let Ok(mut revealed) = HeaderValue::from_str(&text) {
                revealed.set_sensitive(true);
                *value = revealed;
            }
        }
    }
}

/// Takes the secrets that are bound to this target out of the headers that it answered with, so that
/// a server that repeats what it was sent tells the component nothing. A body isn't looked at.
pub(crate) fn conceal(secrets: &[BoundSecret], target: &Target, headers: &mut HeaderMap) {
    let bound =
        |secret: &&BoundSecret| matches!(secret.hosts.decide(target), HostDecision::Allowed { .. });
    for secret in secrets.iter().filter(bound) {
        let value = secret.value.reveal().as_bytes();
        for answered in headers.values_mut() {
            let holds = answered.as_bytes().windows(value.len()).any(|part| part == value);
            if holds {
                *answered = HeaderValue::from_str(&secret.placeholder)
                    .unwrap_or_else(|_| HeaderValue::from_static(""));
            }
        }
    }
}
