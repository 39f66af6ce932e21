//! Any text as a reference: printing gives it back, and parts that are found are in it.
#![no_main]

use ambit_engine::interface::InterfaceName;
use ambit_engine::reference::{ImageSource, PinnedReference, Reference};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    let _ = ImageSource::parse(text);
    if let Ok(reference) = text.parse::<Reference>() {
        assert_eq!(reference.to_string(), text);
        assert!(reference.tag().is_none_or(|tag| text.contains(tag)));
        let pinned = PinnedReference::try_from(reference.clone());
        assert_eq!(pinned.is_ok(), reference.digest().is_some());
        if let Ok(pinned) = pinned {
            let again: Reference = pinned.to_string().parse().expect("a pinned reference");
            assert_eq!(again.repository(), pinned.repository());
        }
    }
    if let Some(name) = InterfaceName::parse(text) {
        assert_eq!(InterfaceName::parse(&name.to_string()), Some(name));
    }
});
