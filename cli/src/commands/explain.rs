//! `ambit explain`.

use crate::args::{Explain, Format};
use crate::exit::Exit;
use crate::output::{Failure, Output};

/// The pages of `docs/diagnostics/`, by code.
const PAGES: &[(&str, &str)] = &include!(concat!(env!("OUT_DIR"), "/diagnostics.in"));

/// Prints the page of a code, or all codes.
pub(crate) fn run(command: &Explain, output: &Output) -> Result<Exit, Failure> {
    output.only(&[Format::Human])?;
    let Some(code) = &command.code else {
        let mut text = String::new();
        for (code, page) in PAGES {
            let title = page.lines().find_map(|line| line.strip_prefix("# ")).unwrap_or_default();
            let title = title.strip_prefix(&format!("`{code}`: ")).unwrap_or(title);
            text.push_str(&format!("{code:32}  {title}\n"));
        }
        output.answer(&text)?;
        return Ok(Exit::Done);
    };
    // A rule's full name is understood too: `baseline/image/digest-pin`.
    let wanted = match code.split_once('/') {
        Some((pack, id)) if PAGES.iter().any(|(page, _)| *page == id.replace('/', "-")) => {
            let _ = pack;
            id.replace('/', "-")
        }
        _ => code.replace('/', "-"),
    };
    match PAGES.iter().find(|(page, _)| *page == wanted) {
        Some((_, page)) => {
            output.answer(page)?;
            Ok(Exit::Done)
        }
        None => Err(Failure::new(
            "explain-unknown-code",
            format!("there is no diagnostic `{code}`"),
            Some("`ambit explain` without a code lists all of them".to_owned()),
        )),
    }
}
