//! Every recorded review, under both profiles, with images that are signed, unsigned and missing.

use std::fmt::Write as _;

use serde::Deserialize;
use serde_json::Value;

use super::testdata;
use super::world::{Images, Issuer, Webhook, World};

#[derive(Deserialize)]
struct Recorded {
    file: String,
    path: String,
}

fn recorded() -> Vec<Recorded> {
    let index = std::fs::read(testdata("admission/index.json")).unwrap();
    serde_json::from_slice(&index).unwrap()
}

/// Answers to hold for a long time, so that the number of calls is the same on a slow machine.
const CONFIG: &str = "webhook: {tagSeconds: 300, evidenceSeconds: 3600}\n";

/// The path that an answer of this version is asked at.
fn path(recorded: &str) -> &str {
    if recorded.starts_with("/mutate") { "/mutate?timeout=30s" } else { "/validate?timeout=30s" }
}

async fn answers(profile: &str, images: Images, issuer: &Issuer) -> String {
    let world = World::start(images).await;
    let folder = tempfile::tempdir().unwrap();
    let settings = world.settings(folder.path(), &format!("profile: {profile}\n{CONFIG}"));
    let mut lines = String::new();
    for Recorded { file, path: asked } in recorded() {
        let text = std::fs::read_to_string(testdata("admission").join(&file)).unwrap();
        let review: Value = serde_json::from_str(&world.localised(&text)).unwrap();
        let webhook = Webhook::start(&settings, issuer).await;
        world.registry.clear_log();
        let answer = webhook.api.review(path(&asked), &review).await;
        let (calls, codes) = (world.registry.log().len(), answer.codes());
        writeln!(lines, "{file}\t{profile}\t{}\t{}\tcalls={calls}", images.as_str(), answer.line())
            .unwrap();
        // What was asked once isn't asked again, and what was pinned stays.
        if let Some(object) = answer.patched {
            let mut again = review.clone();
            again["request"]["object"] = object;
            let again = webhook.api.review(path(&asked), &again).await;
            assert!(again.allowed && again.patched.is_none(), "{file}: {again:?}");
        }
        let again = webhook.api.review(path(&asked), &review).await;
        assert_eq!((again.allowed, again.codes()), (answer.allowed, codes.clone()), "{file}");
        if images == Images::Signed && !codes.contains(&"component-unavailable".to_owned()) {
            let log = world.registry.log();
            assert_eq!(log.len(), calls, "{file} was asked about again: {log:#?}");
        }
        assert!(webhook.stop().await);
    }
    lines
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_recorded_review_is_answered_as_expected() {
    let issuer = Issuer::new();
    let mut found = String::new();
    for profile in ["baseline", "strict"] {
        for images in [Images::Signed, Images::Unsigned, Images::Missing] {
            found.push_str(&answers(profile, images, &issuer).await);
        }
    }
    let path = testdata("admission/expected.tsv");
    if std::env::var_os("INSTA_UPDATE").is_some_and(|how| how == "always") {
        std::fs::write(&path, &found).unwrap();
    }
    let expected = std::fs::read_to_string(&path).unwrap_or_default();
    let differ: Vec<String> = expected
        .lines()
        .zip(found.lines())
        .filter(|(old, new)| old != new)
        .map(|(old, new)| format!("- {old}\n+ {new}"))
        .collect();
    assert!(differ.is_empty(), "{}", differ.join("\n"));
    assert_eq!(expected.lines().count(), found.lines().count());
}
