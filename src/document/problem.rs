//! Problems of structure, in words.

use std::net::IpAddr;

use super::alike::suggesting;
use super::plain::{self, Meaning};
use super::tree::{Scalar, TreeNode, TreeValue};
use crate::diagnostic::{Finding, Quoted, bare, mistake};
use crate::place::Place;
use crate::text;

/// Returns what is wrong with a field that is unknown here, but may be one of a field of the document, its home.
pub(super) fn unknown_field(
    name: &str,
    known: &[&str],
    home: Option<&str>,
    place: Place,
) -> Finding {
    let message = format!("unknown field {}", Quoted(name));
    let finding = Finding::new(&mistake::UNKNOWN_FIELD, message).at(place, "");
    suggesting(name, known.iter().copied(), finding).unwrap_or_else(|finding| {
        if let Some(home) = home {
            return finding.help(format!("move it to `{home}`")).of_name(home);
        }
        finding.help(match known {
            [] => "no fields are allowed here".to_owned(),
            known => format!("allowed here: {}", text::quoted(known)),
        })
    })
}

/// Returns that the line is missing after which a field begins the mapping `name`.
pub(super) fn missing_line(name: &str, first: Place, is_indented: bool) -> Finding {
    let field = first.pointer.steps().last().unwrap_or_default();
    let indent = if is_indented { "" } else { ", and indent its fields" };
    let help = format!("write a line `{name}:` before {}{indent}", Quoted(&field));
    let message = format!("`{name}` is missing");
    Finding::new(&mistake::MISSING_FIELD, message).at(first, "").help(help)
}

pub(super) fn other_kind(kind: &str, expected: &str, place: &Place) -> Finding {
    let message = format!("this is a document of kind {}, not {}", Quoted(kind), Quoted(expected));
    let file = text::shell_word(&place.source);
    Finding::new(&mistake::INVALID_VALUE, message).at(place.clone(), "").help(format!(
        "run `git checkout HEAD -- {file}` if it was overwritten; otherwise move it to a file of its own"
    ))
}

pub(super) fn not_indented(name: &str, parent: &str, place: Place) -> Finding {
    let (name, parent) = (Quoted(name), Quoted(parent));
    let message = format!("{name} is not indented, so it is not part of {parent}");
    Finding::new(&mistake::UNKNOWN_FIELD, message)
        .at(place, "")
        .help(format!("indent it by two spaces more than {parent}"))
}

pub(super) fn missing_field(name: &str, around: &Place) -> Finding {
    let message = match around.pointer.steps().last() {
        None => format!("`{name}` is missing"),
        Some(_) => format!("`{name}` is missing in {}", subject(around)),
    };
    Finding::new(&mistake::MISSING_FIELD, message)
        .at(around.key(name), "")
        .help(format!("add a line `{name}: …`"))
}

pub(super) fn empty_field(name: &str, is_required: bool, place: Place) -> Finding {
    let help = if is_required {
        format!("write a value for `{name}`, or its fields below it")
    } else {
        "write a value, or remove the line".to_owned()
    };
    Finding::new(&mistake::MISSING_FIELD, format!("`{name}` is empty")).at(place, "").help(help)
}

pub(super) fn wrong_type(expected: &str, node: &TreeNode, place: &Place) -> Finding {
    let message = format!("{} must be {expected}, not {}", subject(place), found(node));
    let diagnostic = Finding::new(&mistake::INVALID_TYPE, message).at(place.clone(), "");
    match &node.value {
        TreeValue::Scalar(scalar)
            if !scalar.plain
                && !matches!(plain::meaning(&scalar.text), Meaning::Text | Meaning::Null)
                && expected != "a list"
                && expected != "a mapping" =>
        {
            diagnostic.corrected(&scalar.text, "remove the quotes")
        }
        TreeValue::Sequence(items) if expected == "a string" => match items[..] {
            [TreeNode { value: TreeValue::Scalar(ref item), .. }] => diagnostic
                .corrected(&item.text, format!("write {} without brackets", Quoted(&item.text))),
            _ => diagnostic,
        },
        _ => diagnostic,
    }
}

/// Returns what is wrong with a value that should be a mapping with these fields.
pub(super) fn unmapped(fields: &[&str], node: &TreeNode, place: &Place) -> Finding {
    let finding = wrong_type("a mapping", node, place);
    match fields {
        [] => finding,
        [only] => finding.help(format!("write a mapping; its only field is `{only}`")),
        fields => finding.help(format!("write a mapping; its fields are {}", text::quoted(fields))),
    }
}

/// Returns what is wrong with a value that should be a list of mappings.
pub(super) fn unlisted_mappings(node: &TreeNode, place: &Place) -> Finding {
    wrong_type("a list", node, place).help(
        "write each item below it after a dash and a space, as in `- name: NAME`, and its fields below that",
    )
}

/// Returns what is wrong with a value that should be a list.
pub(super) fn unlisted(is_of_texts: bool, fewest: u64, node: &TreeNode, place: &Place) -> Finding {
    let finding = wrong_type("a list", node, place);
    match &node.value {
        _ if 1 < fewest => {
            finding.help(format!("write a list with {fewest} items, as in `[[A, B]]`"))
        }
        TreeValue::Scalar(scalar)
            if is_of_texts && scalar.plain && scalar.text.starts_with(is_like_dash) =>
        {
            let item = scalar.text.trim_start_matches(is_like_dash).trim_start();
            let item = item.split_whitespace().next().unwrap_or_default();
            finding.help(format!(
                "write each item in a line of its own after a dash and a space, as in `- {}`",
                bare(item)
            ))
        }
        TreeValue::Scalar(scalar) if is_of_texts && is_one_item(&scalar.text) => {
            let list = format!("[{}]", scalar.text);
            finding.corrected(&list, format!("write a list with one item as `{list}`"))
        }
        _ => finding,
    }
}

/// Returns what is wrong with a value that is right without the comment behind it.
pub(super) fn glued_comment(node: &TreeNode, place: &Place) -> Finding {
    let message = match &node.value {
        TreeValue::Scalar(scalar) => format!("{} has no space before `#`", Quoted(&scalar.text)),
        _ => format!("{} has no space before `#`", subject(place)),
    };
    Finding::new(&mistake::INVALID_VALUE, message).at(place.clone(), "").help(text::GLUED_COMMENT)
}

/// Returns the first items of a list that are one range or address if their commas are dots.
pub(super) fn split_range(items: &[TreeNode], place: &Place) -> Option<Finding> {
    let is_address = |it: &str| {
        let (address, length) = it.split_once('/').unwrap_or((it, "0"));
        address.parse::<IpAddr>().is_ok() && length.parse::<u8>().is_ok()
    };
    (0..items.len()).find_map(|index| {
        let texts = items.iter().skip(index).take(4).map_while(TreeNode::text);
        let texts: Vec<&str> = texts.take_while(|it| !is_address(it)).collect();
        let mut lengths = 2..=texts.len();
        let parts =
            lengths.find_map(|it| texts.get(..it).filter(|it| is_address(&it.join("."))))?;
        let bytes = items.get(index)?.span.start..items.get(index + parts.len() - 1)?.span.end;
        let message = format!("invalid range: {} contains a comma", Quoted(&parts.join(",")));
        let meant = parts.join(".");
        let finding =
            Finding::new(&mistake::INVALID_RANGE, message).at(place.index(index).bytes(&bytes), "");
        Some(finding.corrected(&meant, format!("write `{meant}`")))
    })
}

/// Returns whether a character begins a list item, or looks as if it did.
pub(super) fn is_like_dash(character: char) -> bool {
    character == '-'
        || !(character.is_ascii() || character.is_alphanumeric() || character.is_whitespace())
}

/// Returns whether a text is one item of a list between brackets, without quotes.
fn is_one_item(text: &str) -> bool {
    let is_plain = |it: u8| it.is_ascii_alphanumeric() || b"./:_-".contains(&it);
    plain::meaning(text) == Meaning::Text && text.bytes().all(is_plain) && !text.ends_with(':')
}

pub(super) fn misread_text(scalar: &Scalar, place: &Place) -> Finding {
    let message = match scalar.meaning() {
        Meaning::Null => format!("{} must be a string, not null", subject(place)),
        meaning => format!(
            "{} must be a string, but YAML reads {} as {}",
            subject(place),
            Quoted(&scalar.text),
            word(meaning),
        ),
    };
    quoted(Finding::new(&mistake::INVALID_TYPE, message).at(place.clone(), ""), scalar)
}

pub(super) fn misread_key(scalar: &Scalar, place: Place) -> Finding {
    let message = format!(
        "a key must be a string, but YAML reads {} as {}",
        Quoted(&scalar.text),
        word(scalar.meaning()),
    );
    quoted(Finding::new(&mistake::INVALID_TYPE, message).at(place, ""), scalar)
}

/// Adds the remedy for a text that YAML reads as something else.
fn quoted(finding: Finding, scalar: &Scalar) -> Finding {
    let text = format!("\"{}\"", bare(&scalar.text));
    finding.corrected(&text, format!("add quotes: `{text}`"))
}

pub(super) fn not_decimal(text: &str, place: &Place) -> Finding {
    let message =
        format!("{} must be an integer in decimal digits, not {}", subject(place), Quoted(text));
    Finding::new(&mistake::INVALID_TYPE, message).at(place.clone(), "")
}

pub(super) fn unknown_value(text: &str, known: &[&str], place: &Place) -> Finding {
    let message = format!("{} cannot be {}", subject(place), Quoted(text));
    let finding = Finding::new(&mistake::INVALID_VALUE, message).at(place.clone(), "");
    suggesting(text, known.iter().copied(), finding)
        .unwrap_or_else(|finding| finding.help(format!("allowed here: {}", text::quoted(known))))
}

pub(super) fn out_of_bounds(text: &str, least: i64, most: i64, place: &Place) -> Finding {
    let (subject, text) = (subject(place), Quoted(text));
    let (message, help) = if least == most {
        (format!("{subject} must be {least}, not {text}"), format!("write {least}"))
    } else {
        (
            format!("{subject} must be from {least} to {most}, not {text}"),
            format!("write a number from {least} to {most}"),
        )
    };
    Finding::new(&mistake::INVALID_VALUE, message).at(place.clone(), "").help(help)
}

pub(super) fn wrong_count(fewest: u64, most: u64, length: u64, place: &Place) -> Finding {
    let wanted = if fewest == most {
        format!("exactly {fewest}")
    } else if length < fewest {
        format!("at least {fewest}")
    } else {
        format!("at most {most}")
    };
    let items = if wanted.ends_with(" 1") { "item" } else { "items" };
    let message = format!("{} needs {wanted} {items}, not {length}", subject(place));
    Finding::new(&mistake::INVALID_VALUE, message).at(place.clone(), "")
}

pub(super) fn too_short(fewest: u64, place: &Place) -> Finding {
    let message = match fewest {
        1 => format!("{} must not be empty", subject(place)),
        _ => format!("{} needs at least {fewest} characters", subject(place)),
    };
    Finding::new(&mistake::INVALID_VALUE, message).at(place.clone(), "")
}

/// Returns what a place is called in a sentence.
fn subject(place: &Place) -> String {
    let is_index = |step: &String| step.bytes().all(|byte| byte.is_ascii_digit());
    let steps: Vec<String> = place.pointer.steps().collect();
    let name = steps.iter().rfind(|step| !is_index(step));
    match (name, steps.last()) {
        (Some(name), Some(last)) if is_index(last) => format!("an item of {}", Quoted(name)),
        (Some(name), _) => Quoted(name).to_string(),
        (None, _) => "the document".to_owned(),
    }
}

fn found(node: &TreeNode) -> String {
    match &node.value {
        TreeValue::Sequence(_) => "a list".to_owned(),
        TreeValue::Mapping(_) => "a mapping".to_owned(),
        TreeValue::Scalar(scalar) => match scalar.meaning() {
            Meaning::Null => "null".to_owned(),
            Meaning::Text => format!("the string {}", Quoted(&scalar.text)),
            Meaning::Boolean | Meaning::Number | Meaning::Date => Quoted(&scalar.text).to_string(),
        },
    }
}

fn word(meaning: Meaning) -> &'static str {
    match meaning {
        Meaning::Text => "a string",
        Meaning::Null => "null",
        Meaning::Boolean => "a boolean",
        Meaning::Number => "a number",
        Meaning::Date => "a date",
    }
}
