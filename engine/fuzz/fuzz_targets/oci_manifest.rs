//! Manifests and indexes of registries, as any label: no panic, and what is read is one of the two.
#![no_main]

use ambit_engine::digest::Digest;
use ambit_trust::manifest::parse;
use ambit_trust::oci::{RawManifest, media};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    for media_type in [media::MANIFEST, media::INDEX, media::DOCKER_MANIFEST, ""] {
        let raw = RawManifest {
            digest: Digest::of(bytes),
            media_type: media_type.to_owned(),
            bytes: bytes.to_vec(),
        };
        let _ = parse(&raw, "fuzz");
    }
});
