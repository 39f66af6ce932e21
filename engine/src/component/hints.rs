//! What a binary says about itself: metadata sections, bills of materials, strings.
//!
//! All of it is written by whoever built the file and lies outside validation. It may inform,
//! sort and label; nothing here ever decides.

use std::collections::{BTreeMap, BTreeSet};

use wasmparser::{BinaryReader, DataKind, Payload, ProducersSectionReader};

use crate::limits::Limits;

/// Unverified claims and strings, each list bounded by [`Limits::max_hints`].
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Hints {
    /// Whether hints were asked for; an empty list means nothing otherwise.
    pub collected: bool,
    /// Entries of `producers` sections, at any depth, without repeats.
    pub producers: Vec<Producer>,
    /// One-string sections of the root: `authors`, `description`, `licenses`, `source`,
    /// `homepage`, `revision`, `version`, and `component-name`.
    pub metadata: BTreeMap<String, String>,
    /// Custom sections by name, at any depth.
    pub sections: Vec<CustomSection>,
    /// Crates from a `.dep-v0` section (cargo-auditable).
    pub dependencies: Vec<Dependency>,
    /// URLs seen in data segments.
    pub urls: Vec<StringHint>,
    /// Host names and IPv4 addresses that stand alone in data segments.
    pub hosts: Vec<StringHint>,
    /// Absolute paths seen in data segments.
    pub paths: Vec<StringHint>,
    /// Names of lists that were cut at the limit.
    pub truncated: BTreeSet<String>,
}

/// One entry of a `producers` section
/// (<https://github.com/WebAssembly/tool-conventions/blob/main/ProducersSection.md>).
#[derive(Clone, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub struct Producer {
    /// `language`, `processed-by` or `sdk`.
    pub field: String,
    /// The tool or language.
    pub name: String,
    /// Its version; may be empty.
    pub version: String,
}

/// How often, and how large, custom sections of one name are.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct CustomSection {
    /// The section's name.
    pub name: String,
    /// How many there are.
    pub count: usize,
    /// Their size in bytes, added up.
    pub bytes: usize,
}

/// One crate of a `.dep-v0` bill of materials.
#[derive(Clone, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub struct Dependency {
    /// The crate's name.
    pub name: String,
    /// Its version.
    pub version: String,
}

/// One string that was seen in a data segment.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct StringHint {
    /// The string, cut at 200 characters.
    pub text: String,
    /// Where it was seen first, in bytes from the start of the outermost binary.
    pub offset: usize,
}

/// Names of the one-string metadata sections.
const METADATA: [&str; 7] =
    ["authors", "description", "licenses", "source", "homepage", "revision", "version"];

/// Bytes of data segments that are searched; what lies beyond is named in `truncated`.
const MAX_SCANNED: usize = 128 << 20;

/// Returns `text` cut to `max` characters, control characters replaced, so that a name from a
/// binary can't steer a terminal.
pub(super) fn printable(text: &str, max: usize) -> String {
    text.chars().take(max).map(|c| if c.is_control() { '\u{fffd}' } else { c }).collect()
}

#[derive(Debug)]
pub(super) struct Collector {
    hints: Hints,
    producers: BTreeSet<Producer>,
    sections: BTreeMap<String, (usize, usize)>,
    urls: BTreeMap<String, usize>,
    hosts: BTreeMap<String, usize>,
    paths: BTreeMap<String, usize>,
    scanned: usize,
    max: usize,
    max_inflated: usize,
}

impl Collector {
    pub(super) fn new(limits: &Limits) -> Self {
        Self {
            hints: Hints::default(),
            producers: BTreeSet::new(),
            sections: BTreeMap::new(),
            urls: BTreeMap::new(),
            hosts: BTreeMap::new(),
            paths: BTreeMap::new(),
            scanned: 0,
            max: limits.max_hints,
            max_inflated: limits.max_inflated_bytes,
        }
    }

    #[expect(
        clippy::wildcard_enum_match_arm,
        reason = "hints come from custom sections and data segments only"
    )]
    /// Takes the next payload in. A section that can't be read is a claim that isn't made; it is
    /// still counted.
    pub(super) fn payload(&mut self, payload: &Payload<'_>, root: bool) {
        self.hints.collected = true;
        match payload {
            Payload::CustomSection(section) => {
                let name = printable(section.name(), 80);
                if self.sections.len() < self.max || self.sections.contains_key(&name) {
                    let entry = self.sections.entry(name).or_default();
                    entry.0 = entry.0.saturating_add(1);
                    entry.1 = entry.1.saturating_add(section.data().len());
                } else {
                    self.hints.truncated.insert("sections".to_owned());
                }
                self.custom(section.name(), section.data(), section.data_offset(), root);
            }
            Payload::DataSection(section) => {
                for data in section.clone().into_iter().flatten() {
                    if matches!(data.kind, DataKind::Active { .. } | DataKind::Passive) {
                        let offset = data.range.end.saturating_sub(data.data.len());
                        self.strings(data.data, offset);
                    }
                }
            }
            _ => {}
        }
    }

    fn custom(&mut self, name: &str, data: &[u8], offset: usize, root: bool) {
        if name == "producers" {
            self.producers_section(data, offset);
        } else if name == ".dep-v0" && root {
            self.dependencies(data);
        } else if root && METADATA.contains(&name) {
            if let Ok(text) = std::str::from_utf8(data) {
                self.hints.metadata.insert(name.to_owned(), printable(text, 500));
            }
        } else if root && name == "component-name" {
            // Subsection 0 holds the component's own name, as in the `name` section.
            let mut reader = BinaryReader::new(data, offset);
            if let (Ok(0), Ok(_), Ok(text)) =
                (reader.read_u8(), reader.read_var_u32(), reader.read_string())
            {
                self.hints.metadata.insert("name".to_owned(), printable(text, 200));
            }
        }
    }

    fn producers_section(&mut self, data: &[u8], offset: usize) {
        let Ok(fields) = ProducersSectionReader::new(BinaryReader::new(data, offset)) else {
            return;
        };
        for field in fields.into_iter().flatten() {
            for value in field.values.into_iter().flatten() {
                if self.producers.len() >= self.max {
                    self.hints.truncated.insert("producers".to_owned());
                    return;
                }
                self.producers.insert(Producer {
                    field: printable(field.name, 40),
                    name: printable(value.name, 100),
                    version: printable(value.version, 100),
                });
            }
        }
    }

    /// Reads the crates of a cargo-auditable section: zlib over JSON
    /// (<https://github.com/rust-secure-code/cargo-auditable/blob/master/PARSING.md>).
    fn dependencies(&mut self, data: &[u8]) {
        #[derive(serde::Deserialize)]
        struct Packages {
            packages: Vec<Package>,
        }
        #[derive(serde::Deserialize)]
        struct Package {
            name: String,
            version: String,
        }
        let inflated =
            miniz_oxide::inflate::decompress_to_vec_zlib_with_limit(data, self.max_inflated);
        let Ok(inflated) = inflated else {
            self.hints.truncated.insert("dependencies".to_owned());
            return;
        };
        if let Ok(found) = serde_json::from_slice::<Packages>(&inflated) {
            let mut packages: BTreeSet<Dependency> = BTreeSet::new();
            for package in found.packages {
                if packages.len() >= self.max.saturating_mul(8) {
                    self.hints.truncated.insert("dependencies".to_owned());
                    break;
                }
                packages.insert(Dependency {
                    name: printable(&package.name, 100),
                    version: printable(&package.version, 60),
                });
            }
            self.hints.dependencies = packages.into_iter().collect();
        }
    }

    fn strings(&mut self, data: &[u8], offset: usize) {
        if self.scanned >= MAX_SCANNED {
            self.hints.truncated.insert("strings".to_owned());
            return;
        }
        self.scanned = self.scanned.saturating_add(data.len());
        let mut at = 0_usize;
        while let Some(run) = data.get(at..).filter(|rest| !rest.is_empty()) {
            let skip = run.iter().position(|byte| printable_byte(*byte)).unwrap_or(run.len());
            let run = run.get(skip..).unwrap_or_default();
            let length = run.iter().position(|byte| !printable_byte(*byte)).unwrap_or(run.len());
            let start = at.saturating_add(skip);
            if length >= 4
                && let Some(text) = run.get(..length)
            {
                self.string(text, offset.saturating_add(start));
            }
            at = start.saturating_add(length).saturating_add(1);
        }
    }

    /// Looks through one run of printable bytes.
    fn string(&mut self, text: &[u8], offset: usize) {
        let mut at = 0_usize;
        while let Some(found) =
            text.get(at..).and_then(|rest| rest.windows(3).position(|w| w == b"://"))
        {
            let colon = at.saturating_add(found);
            let scheme = text
                .get(..colon)
                .unwrap_or_default()
                .iter()
                .rev()
                .take_while(|byte| byte.is_ascii_lowercase())
                .count();
            let end = text
                .get(colon.saturating_add(3)..)
                .unwrap_or_default()
                .iter()
                .position(|byte| !url_byte(*byte))
                .map_or(text.len(), |end| colon.saturating_add(3).saturating_add(end));
            let start = colon.saturating_sub(scheme);
            if (2..=10).contains(&scheme)
                && end > colon.saturating_add(4)
                && let Some(url) = text.get(start..end)
            {
                let at = offset.saturating_add(start);
                keep(&mut self.urls, url, at, self.max, "urls", &mut self.hints.truncated);
            }
            at = end.max(colon.saturating_add(3));
        }
        if host_like(text) {
            keep(&mut self.hosts, text, offset, self.max, "hosts", &mut self.hints.truncated);
        }
        let path = text.first() == Some(&b'/')
            && text.iter().all(|byte| path_byte(*byte))
            && text.iter().filter(|byte| **byte == b'/').count() >= 2
            && text.get(1).is_some_and(u8::is_ascii_alphabetic);
        if path {
            keep(&mut self.paths, text, offset, self.max, "paths", &mut self.hints.truncated);
        }
    }

    pub(super) fn finish(self) -> Hints {
        let mut hints = self.hints;
        hints.producers = self.producers.into_iter().collect();
        let sections = self.sections.into_iter();
        hints.sections =
            sections.map(|(name, (count, bytes))| CustomSection { name, count, bytes }).collect();
        let strings = |map: BTreeMap<String, usize>| {
            map.into_iter().map(|(text, offset)| StringHint { text, offset }).collect()
        };
        hints.urls = strings(self.urls);
        hints.hosts = strings(self.hosts);
        hints.paths = strings(self.paths);
        hints
    }
}

fn keep(
    into: &mut BTreeMap<String, usize>,
    text: &[u8],
    offset: usize,
    max: usize,
    list: &str,
    truncated: &mut BTreeSet<String>,
) {
    let text: String = text.iter().take(200).map(|byte| char::from(*byte)).collect();
    if into.len() >= max && !into.contains_key(&text) {
        truncated.insert(list.to_owned());
    } else {
        into.entry(text).or_insert(offset);
    }
}

/// Endings that are a top-level domain and far more often a file's.
const FILE_ENDINGS: [&[u8]; 12] =
    [b"rs", b"py", b"sh", b"md", b"so", b"pl", b"cc", b"ml", b"mo", b"ps", b"zip", b"mov"];

/// A whole run that is a host name under a known public suffix, or an IPv4 address; with a port or
/// without.
fn host_like(text: &[u8]) -> bool {
    let host = match text.iter().rposition(|byte| *byte == b':') {
        Some(colon) => {
            let port = text.get(colon.saturating_add(1)..).unwrap_or_default();
            if port.is_empty() || port.len() > 5 || !port.iter().all(u8::is_ascii_digit) {
                return false;
            }
            text.get(..colon).unwrap_or_default()
        }
        None => text,
    };
    if host.len() > 253 || !host.contains(&b'.') {
        return false;
    }
    if let Ok(address) = std::str::from_utf8(host).unwrap_or_default().parse::<std::net::IpAddr>() {
        return address.is_ipv4();
    }
    let label = |label: &[u8]| {
        (1..=63).contains(&label.len())
            && label.iter().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || *b == b'-')
            && label.first() != Some(&b'-')
            && label.last() != Some(&b'-')
    };
    let last = host.rsplit(|byte| *byte == b'.').next().unwrap_or_default();
    host.split(|byte| *byte == b'.').all(label)
        && !FILE_ENDINGS.contains(&last)
        && psl::suffix(host).is_some_and(|suffix| suffix.is_known() && suffix.as_bytes() != host)
}

fn printable_byte(byte: u8) -> bool {
    matches!(byte, 0x20..=0x7e)
}

fn url_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"-._~:/?#[]@!$&()*+,;=%".contains(&byte)
}

fn path_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"-._/+@".contains(&byte)
}
