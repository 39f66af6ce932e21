//! Any text as a reference: printing gives it back, and parts that are found are in it.
#![no_main]

use ambit_engine::interface::InterfaceName;
use ambit_engine::reference::{ImageSource, PinnedReference, Reference};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    match ImageSource::parse(text) {
        ImageSource::Oci(reference) => assert!(text.ends_with(&reference.to_string())),
        ImageSource::File(path) => assert!(text.ends_with(&path)),
        ImageSource::Artifact(name) => assert_eq!(text, format!("artifact://{name}")),
        ImageSource::Layout { path, tag, digest } => {
            let tag = tag.map(|tag| format!(":{tag}")).unwrap_or_default();
            let digest = digest.map(|digest| format!("@{digest}")).unwrap_or_default();
            assert_eq!(text, format!("layout:{path}{tag}{digest}"));
        }
        ImageSource::Invalid(error) => assert!(!error.to_string().is_empty()),
    }
    if let Ok(reference) = text.parse::<Reference>() {
        assert_eq!(reference.to_string(), text);
        assert!(reference.tag().is_none_or(|tag| text.contains(tag)));
        assert!(reference.repository().is_within(reference.repository().registry()));
        let pinned = PinnedReference::try_from(reference.clone());
        assert_eq!(pinned.is_ok(), reference.digest().is_some());
        if let Ok(pinned) = pinned {
            let again: Reference = pinned.to_string().parse().expect("a pinned reference");
            assert_eq!(PinnedReference::try_from(again).as_ref(), Ok(&pinned));
        }
    }
    if let Some(name) = InterfaceName::parse(text) {
        assert_eq!(name.to_string(), text);
        assert!(name.on_track().starts_with(&name.unversioned()));
    }
});
