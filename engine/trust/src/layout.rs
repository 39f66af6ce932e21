//! OCI image layouts on disk (image specification 1.1, "OCI Image Layout Specification"), read and
//! written.
//!
//! Every blob is hashed again when it is read. Files are replaced whole, and `index.json` is changed
//! under a lock on the file `oci-layout`, so that several processes may push at once. Links that
//! lead out of the layout are not followed, and nothing but regular files is opened.
//!
//! Left out on purpose: removal of blobs that nothing names any more.

mod index;

use std::collections::BTreeSet;
use std::fs::File;
use std::path::{Path, PathBuf};

use ambit_engine::digest::Digest;

use self::index::{LayoutIndex, subject_of};
use crate::disk::{self, Audience, Found, blocking, io};
use crate::error::FetchError;
use crate::manifest::media_type_of;
use crate::oci::{
    Descriptor, MAX_MANIFEST_BYTES, MAX_REFERRERS, ManifestName, RawManifest, SubjectIndexed, media,
};
use crate::store::{Answer, Referrers, Store};

/// The annotation that holds a tag in `index.json`.
pub const REF_NAME: &str = "org.opencontainers.image.ref.name";

/// The most bytes of manifests that are read to find the one that is meant, or what refers to it.
const MAX_LISTED_BYTES: usize = 64 << 20;

/// What `oci-layout` holds.
const MARKER: &str = r#"{"imageLayoutVersion":"1.0.0"}"#;

/// An image layout.
#[derive(Clone, Debug)]
pub struct Layout {
    /// The folder, without links in its path.
    dir: PathBuf,
    name: String,
}

impl Layout {
    /// Opens the layout in `dir`.
    ///
    /// # Errors
    ///
    /// [`FetchError::NotFound`] if there is no such folder; [`FetchError::Layout`] if it is no layout
    /// of version 1; [`FetchError::Io`].
    pub fn open(dir: &Path) -> Result<Self, FetchError> {
        let canonical = match dir.canonicalize() {
            Ok(canonical) => canonical,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                return Err(FetchError::NotFound { what: dir.display().to_string() });
            }
            Err(error) => return Err(io(dir, &error)),
        };
        let layout = Self { dir: canonical, name: format!("layout:{}", dir.display()) };
        let marker = layout.dir.join("oci-layout");
        let text = layout.read(&marker, 4096)?.ok_or_else(|| FetchError::Layout {
            path: dir.display().to_string(),
            reason: "the folder has no file `oci-layout`".to_owned(),
        })?;
        let version = serde_json::from_slice::<serde_json::Value>(&text)
            .ok()
            .and_then(|marker| marker.get("imageLayoutVersion")?.as_str().map(str::to_owned));
        match version {
            Some(version) if version.starts_with("1.") => Ok(layout),
            Some(version) => Err(FetchError::Layout {
                path: marker.display().to_string(),
                reason: format!("version `{version}` is not known"),
            }),
            None => Err(FetchError::Layout {
                path: marker.display().to_string(),
                reason: "it names no version".to_owned(),
            }),
        }
    }

    /// Opens the layout in `dir`, after making one there if the folder is missing or empty.
    ///
    /// # Errors
    ///
    /// As [`Layout::open`]; [`FetchError::Layout`] if the folder holds something else.
    pub fn create(dir: &Path) -> Result<Self, FetchError> {
        std::fs::create_dir_all(dir).map_err(|error| io(dir, &error))?;
        let marker = dir.join("oci-layout");
        if !marker.exists() {
            let mut entries = std::fs::read_dir(dir).map_err(|error| io(dir, &error))?;
            // Another process may be making the same layout, in any order of its files.
            let foreign = entries.find_map(|entry| {
                let name = entry.ok()?.file_name();
                let name = name.to_string_lossy();
                let ours = matches!(name.as_ref(), "blobs" | "index.json" | "oci-layout")
                    || name.starts_with(disk::TEMPORARY);
                (!ours).then(|| name.into_owned())
            });
            if let Some(foreign) = foreign {
                return Err(FetchError::Layout {
                    path: dir.display().to_string(),
                    reason: format!("the folder is no layout, and holds `{foreign}`"),
                });
            }
        }
        let blobs = dir.join("blobs").join("sha256");
        std::fs::create_dir_all(&blobs).map_err(|error| io(&blobs, &error))?;
        if !marker.exists() {
            disk::write(&marker, MARKER.as_bytes(), Audience::All)?;
        }
        let layout = Self::open(dir)?;
        let lock = layout.lock()?;
        if layout.read(&layout.dir.join("index.json"), MAX_MANIFEST_BYTES)?.is_none() {
            layout.write_index(&LayoutIndex::empty())?;
        }
        drop(lock);
        Ok(layout)
    }

    /// Returns the name of the one manifest that the layout holds.
    ///
    /// Signatures and other manifests about a subject don't count, nor do the children of an index
    /// that the layout lists.
    ///
    /// # Errors
    ///
    /// [`FetchError::NotFound`] if there is none; [`FetchError::Layout`] if there are several;
    /// [`FetchError`] of what is read.
    pub async fn sole(&self) -> Result<ManifestName, FetchError> {
        let layout = self.clone();
        blocking(move || layout.sole_now()).await
    }

    fn sole_now(&self) -> Result<ManifestName, FetchError> {
        let index = self.index()?;
        let mut roots: BTreeSet<Digest> = BTreeSet::new();
        let mut children: BTreeSet<Digest> = BTreeSet::new();
        let mut evidence: BTreeSet<Digest> = BTreeSet::new();
        let mut looked_at: BTreeSet<Digest> = BTreeSet::new();
        let mut left = MAX_LISTED_BYTES;
        for entry in index.entries() {
            if entry.annotations.get(REF_NAME).is_some_and(|tag| is_evidence_tag(tag)) {
                evidence.insert(entry.digest);
                continue;
            }
            if !looked_at.insert(entry.digest) {
                continue;
            }
            let Some(bytes) = self.bytes_of(&entry.digest, MAX_MANIFEST_BYTES)? else {
                return Err(self.missing(&entry.digest));
            };
            left = self.rest(left, &bytes)?;
            if subject_of(&bytes).is_some() {
                evidence.insert(entry.digest);
            } else {
                children.extend(index::children_of(&bytes));
                roots.insert(entry.digest);
            }
        }
        let roots: Vec<Digest> =
            roots.into_iter().filter(|d| !children.contains(d) && !evidence.contains(d)).collect();
        match roots.as_slice() {
            [one] => Ok(ManifestName::Digest(*one)),
            [] => Err(FetchError::NotFound { what: format!("{} (a manifest)", self.name) }),
            _ => Err(FetchError::Layout {
                path: self.dir.display().to_string(),
                reason: "the index names several manifests; choose one by tag".to_owned(),
            }),
        }
    }

    /// Returns the path of a blob's file.
    fn blob_path(&self, digest: &Digest) -> PathBuf {
        let text = digest.to_string();
        let hex = text.strip_prefix("sha256:").unwrap_or(&text);
        self.dir.join("blobs").join("sha256").join(hex)
    }

    /// Reads a file of the layout, if it is there.
    fn read(&self, path: &Path, max_bytes: usize) -> Result<Option<Vec<u8>>, FetchError> {
        let target = match path.canonicalize() {
            Ok(target) => target,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(io(path, &error)),
        };
        if !target.starts_with(&self.dir) {
            return Err(self.refused(path, "it is a link that leads out of the layout"));
        }
        match disk::read(&target, max_bytes)? {
            Found::Bytes(bytes, _) => Ok(Some(bytes)),
            Found::Nothing => Ok(None),
            Found::Other => Err(self.refused(path, "it is not a regular file")),
            Found::TooLarge => Err(FetchError::Limit {
                what: format!("{} (bytes)", path.display()),
                limit: u64::try_from(max_bytes).unwrap_or(u64::MAX),
            }),
        }
    }

    fn refused(&self, path: &Path, reason: &str) -> FetchError {
        FetchError::Layout { path: path.display().to_string(), reason: reason.to_owned() }
    }

    fn missing(&self, digest: &Digest) -> FetchError {
        self.refused(&self.blob_path(digest), "the index names it, and it is not there")
    }

    /// Reads a blob by its digest, and hashes it.
    fn bytes_of(&self, digest: &Digest, max_bytes: usize) -> Result<Option<Vec<u8>>, FetchError> {
        let path = self.blob_path(digest);
        let Some(bytes) = self.read(&path, max_bytes)? else { return Ok(None) };
        let found = Digest::of(&bytes);
        if found != *digest {
            return Err(FetchError::DigestMismatch {
                what: path.display().to_string(),
                expected: digest.to_string(),
                found: found.to_string(),
            });
        }
        Ok(Some(bytes))
    }

    fn index(&self) -> Result<LayoutIndex, FetchError> {
        let path = self.dir.join("index.json");
        match self.read(&path, MAX_MANIFEST_BYTES)? {
            Some(bytes) => LayoutIndex::parse(&bytes, &path),
            None => Err(self.refused(&path, "the layout has no index")),
        }
    }

    fn write_index(&self, index: &LayoutIndex) -> Result<(), FetchError> {
        let path = self.dir.join("index.json");
        let bytes = index.to_bytes();
        if bytes.len() > MAX_MANIFEST_BYTES {
            return Err(FetchError::Limit {
                what: format!("{} (bytes)", path.display()),
                limit: u64::try_from(MAX_MANIFEST_BYTES).unwrap_or(u64::MAX),
            });
        }
        disk::write(&path, &bytes, Audience::All)
    }

    /// Takes the lock on the index, until the file is dropped.
    fn lock(&self) -> Result<File, FetchError> {
        let path = self.dir.join("oci-layout");
        let file = File::open(&path).map_err(|error| io(&path, &error))?;
        file.lock().map_err(|error| io(&path, &error))?;
        Ok(file)
    }

    fn manifest_now(&self, name: &ManifestName) -> Result<RawManifest, FetchError> {
        let index = self.index()?;
        let not_found = || FetchError::NotFound { what: format!("{}:{name}", self.name) };
        let entry = match name {
            ManifestName::Tag(tag) => Some(index.tagged(tag, &self.name)?.ok_or_else(not_found)?),
            ManifestName::Digest(digest) => index.entries().find(|e| e.digest == *digest),
        };
        let digest = match (name, &entry) {
            (ManifestName::Digest(digest), _) => *digest,
            (ManifestName::Tag(_), Some(entry)) => entry.digest,
            (ManifestName::Tag(_), None) => return Err(not_found()),
        };
        let bytes = match (self.bytes_of(&digest, MAX_MANIFEST_BYTES)?, name) {
            (Some(bytes), _) => bytes,
            (None, ManifestName::Tag(_)) => return Err(self.missing(&digest)),
            (None, ManifestName::Digest(_)) => return Err(not_found()),
        };
        let media_type = match entry {
            Some(entry) if u64::try_from(bytes.len()).ok() != Some(entry.size) => {
                return Err(self.refused(
                    &self.blob_path(&digest),
                    &format!("its size is not the {} bytes that the index says", entry.size),
                ));
            }
            Some(entry) if !entry.media_type.is_empty() => entry.media_type,
            Some(_) | None => media_type_of(&bytes),
        };
        Ok(RawManifest { digest, media_type, bytes })
    }

    fn blob_now(&self, blob: &Descriptor, max_bytes: usize) -> Result<Vec<u8>, FetchError> {
        let limit = u64::try_from(max_bytes).unwrap_or(u64::MAX);
        if blob.size > limit {
            return Err(FetchError::Limit { what: format!("{} (bytes)", blob.digest), limit });
        }
        let Some(bytes) = self.bytes_of(&blob.digest, max_bytes)? else {
            return Err(FetchError::NotFound { what: format!("{}@{}", self.name, blob.digest) });
        };
        if u64::try_from(bytes.len()).ok() != Some(blob.size) {
            return Err(FetchError::Protocol {
                what: format!("{}@{}", self.name, blob.digest),
                reason: format!("it has {} bytes, not {}", bytes.len(), blob.size),
            });
        }
        Ok(bytes)
    }

    /// Takes what was read off the bytes that are left to read.
    fn rest(&self, left: usize, read: &[u8]) -> Result<usize, FetchError> {
        left.checked_sub(read.len()).ok_or_else(|| FetchError::Limit {
            what: format!("{} (bytes of all manifests)", self.name),
            limit: u64::try_from(MAX_LISTED_BYTES).unwrap_or(u64::MAX),
        })
    }

    fn referrers_now(&self, subject: &Digest) -> Result<Referrers, FetchError> {
        let index = self.index()?;
        let mut seen: BTreeSet<Digest> = BTreeSet::new();
        let mut referrers = Referrers::default();
        let mut add = |descriptor: Descriptor| {
            if seen.insert(descriptor.digest) {
                if referrers.descriptors.len() < MAX_REFERRERS {
                    referrers.descriptors.push(descriptor);
                } else {
                    referrers.truncated = true;
                }
            }
        };
        let mut looked_at: BTreeSet<Digest> = BTreeSet::new();
        let mut left = MAX_LISTED_BYTES;
        for entry in index.entries() {
            let may_refer =
                matches!(entry.media_type.as_str(), "" | media::MANIFEST | media::INDEX);
            if !may_refer || entry.digest == *subject || !looked_at.insert(entry.digest) {
                continue;
            }
            let Some(bytes) = self.bytes_of(&entry.digest, MAX_MANIFEST_BYTES)? else {
                return Err(self.missing(&entry.digest));
            };
            left = self.rest(left, &bytes)?;
            if subject_of(&bytes).as_ref() == Some(subject) {
                add(index::describe(&entry, &bytes));
            }
        }
        // Tools that copy a repository may bring the fallback tag along.
        let tag = fallback_tag(subject);
        if index.tagged(&tag, &self.name)?.is_some() {
            let raw = self.manifest_now(&ManifestName::Tag(tag.clone()))?;
            let what = format!("{}:{tag}", self.name);
            match crate::manifest::parse(&raw, &what)? {
                crate::manifest::Parsed::Index(fallback) => {
                    fallback.manifests.into_iter().for_each(add);
                }
                crate::manifest::Parsed::Image(_) => {
                    let reason = "it is no index of referrers".to_owned();
                    return Err(FetchError::Protocol { what, reason });
                }
            }
        }
        Ok(referrers)
    }

    fn push_blob_now(&self, bytes: &[u8]) -> Result<(), FetchError> {
        let digest = Digest::of(bytes);
        let path = self.blob_path(&digest);
        let folder = self.dir.join("blobs").join("sha256");
        std::fs::create_dir_all(&folder).map_err(|error| io(&folder, &error))?;
        let target = folder.canonicalize().map_err(|error| io(&folder, &error))?;
        if !target.starts_with(&self.dir) {
            return Err(self.refused(&folder, "it is a link that leads out of the layout"));
        }
        // A damaged blob is replaced: whoever pushes has the right bytes.
        match self.bytes_of(&digest, bytes.len()) {
            Ok(Some(_)) => Ok(()),
            Ok(None) | Err(FetchError::DigestMismatch { .. } | FetchError::Limit { .. }) => {
                disk::write(&path, bytes, Audience::All)
            }
            Err(error) => Err(error),
        }
    }

    fn push_manifest_now(
        &self,
        name: &ManifestName,
        media_type: &str,
        bytes: &[u8],
    ) -> Result<(), FetchError> {
        let digest = Digest::of(bytes);
        if let ManifestName::Digest(expected) = name
            && *expected != digest
        {
            return Err(FetchError::DigestMismatch {
                what: format!("{}@{expected}", self.name),
                expected: expected.to_string(),
                found: digest.to_string(),
            });
        }
        if bytes.len() > MAX_MANIFEST_BYTES {
            return Err(FetchError::Limit {
                what: format!("{}:{name} (bytes)", self.name),
                limit: u64::try_from(MAX_MANIFEST_BYTES).unwrap_or(u64::MAX),
            });
        }
        self.push_blob_now(bytes)?;
        let lock = self.lock()?;
        let mut index = self.index()?;
        let entry = index::describe(&Descriptor::of(media_type, bytes), bytes);
        match name {
            ManifestName::Tag(tag) => index.tag(tag, &entry),
            ManifestName::Digest(_) => index.list(&entry),
        }
        self.write_index(&index)?;
        drop(lock);
        Ok(())
    }
}

impl Store for Layout {
    fn name(&self) -> String {
        self.name.clone()
    }

    fn manifest<'a>(&'a self, name: &'a ManifestName) -> Answer<'a, RawManifest> {
        let (layout, name) = (self.clone(), name.clone());
        Box::pin(blocking(move || layout.manifest_now(&name)))
    }

    fn blob<'a>(&'a self, blob: &'a Descriptor, max_bytes: usize) -> Answer<'a, Vec<u8>> {
        let (layout, blob) = (self.clone(), blob.clone());
        Box::pin(blocking(move || layout.blob_now(&blob, max_bytes)))
    }

    fn referrers<'a>(&'a self, subject: &'a Digest) -> Answer<'a, Referrers> {
        let (layout, subject) = (self.clone(), *subject);
        Box::pin(blocking(move || layout.referrers_now(&subject)))
    }

    fn push_blob<'a>(&'a self, media_type: &'a str, bytes: &'a [u8]) -> Answer<'a, Descriptor> {
        let (layout, bytes) = (self.clone(), bytes.to_vec());
        let descriptor = Descriptor::of(media_type, &bytes);
        Box::pin(async move {
            blocking(move || layout.push_blob_now(&bytes)).await?;
            Ok(descriptor)
        })
    }

    fn push_manifest<'a>(
        &'a self,
        name: &'a ManifestName,
        media_type: &'a str,
        bytes: &'a [u8],
    ) -> Answer<'a, SubjectIndexed> {
        let (layout, name) = (self.clone(), name.clone());
        let (media_type, bytes) = (media_type.to_owned(), bytes.to_vec());
        Box::pin(async move {
            blocking(move || layout.push_manifest_now(&name, &media_type, &bytes)).await?;
            // Referrers are found by looking at what the index lists.
            Ok(SubjectIndexed::ByStore)
        })
    }
}

/// Returns the tag under which an index of the referrers of `subject` stands, where a registry has
/// no API for them (distribution specification 1.1, "Referrers Tag Schema").
#[must_use]
pub fn fallback_tag(subject: &Digest) -> String {
    subject.to_string().replacen(':', "-", 1)
}

/// Tells whether a tag is one that holds evidence about a digest: `sha256-…`, with `.sig` or `.att`
/// and, where those follow, with anything before it.
#[must_use]
pub fn is_evidence_tag(tag: &str) -> bool {
    let is_subject = |text: &str| {
        text.strip_prefix("sha256-")
            .is_some_and(|hex| format!("sha256:{hex}").parse::<Digest>().is_ok())
    };
    match tag.strip_suffix(".sig").or_else(|| tag.strip_suffix(".att")) {
        Some(stem) => stem
            .len()
            .checked_sub("sha256-".len().saturating_add(64))
            .and_then(|start| stem.get(start..))
            .is_some_and(is_subject),
        None => is_subject(tag),
    }
}
