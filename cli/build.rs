//! Puts the pages of `docs/diagnostics/` into the binary, for `ambit explain`.

use std::fmt::Write as _;
use std::path::Path;

fn main() -> std::io::Result<()> {
    let dir = Path::new(&std::env::var("CARGO_MANIFEST_DIR").unwrap_or_default())
        .join("../docs/diagnostics");
    println!("cargo::rerun-if-changed={}", dir.display());
    let mut pages = Vec::new();
    for entry in std::fs::read_dir(&dir)? {
        let path = entry?.path();
        if let Some(code) = path.file_stem().and_then(|stem| stem.to_str())
            && path.extension().is_some_and(|extension| extension == "md")
            && code != "README"
        {
            pages.push((code.to_owned(), path.canonicalize()?));
        }
    }
    pages.sort();
    let mut text = String::from("[\n");
    for (code, path) in pages {
        let _ = writeln!(text, "({code:?}, include_str!({:?})),", path.display().to_string());
    }
    text.push_str("]\n");
    let out = std::env::var("OUT_DIR").unwrap_or_default();
    std::fs::write(Path::new(&out).join("diagnostics.in"), text)
}
