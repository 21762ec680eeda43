//! Events: whether a result is YAML, without a tree of it, which aliases and nesting can make huge.

use std::collections::BTreeSet;

use serde_saphyr::granit_parser::{Event, Options, Parser};

/// A list or mapping whose end has not come yet.
enum Open {
    List,
    Mapping {
        keys: BTreeSet<String>,
        is_value_next: bool,
    },
}

/// Fails, with the reason, if a text is not YAML or has a key twice.
pub(super) fn check(text: &str) -> Result<(), String> {
    let mut options = Options::default();
    options.set_emit_comments(false);
    let mut open: Vec<Open> = Vec::new();
    for event in Parser::new_from_str_with_options(text, options) {
        let (event, span) = event.map_err(|error| unparsed(error.marker().line()))?;
        let is_new = match &event {
            Event::Scalar(text, ..) => begin(&mut open, Some(text)),
            Event::Alias(_) | Event::SequenceStart(..) | Event::MappingStart(..) => {
                begin(&mut open, None)
            }
            _ => true,
        };
        if !is_new {
            return Err(format!("line {} repeats a key", span.start.line()));
        }
        match event {
            Event::SequenceStart(..) => open.push(Open::List),
            Event::MappingStart(..) => open.push(Open::Mapping {
                keys: BTreeSet::new(),
                is_value_next: false,
            }),
            Event::SequenceEnd | Event::MappingEnd => drop(open.pop()),
            _ => {}
        }
    }
    Ok(())
}

/// Returns a reason without the parser's own words, which may quote the text.
pub(super) fn unparsed(line: usize) -> String {
    format!("it cannot be parsed from line {line} on")
}

/// Takes the begin of a key, a value or an item; returns whether it is not a key that was there before.
fn begin(open: &mut [Open], text: Option<&str>) -> bool {
    let Some(Open::Mapping {
        keys,
        is_value_next,
    }) = open.last_mut()
    else {
        return true;
    };
    let is_key = !*is_value_next;
    *is_value_next = is_key;
    match text {
        Some(text) if is_key => keys.insert(text.to_owned()),
        _ => true,
    }
}
