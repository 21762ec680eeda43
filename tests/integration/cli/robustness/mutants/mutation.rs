//! Mutations: what can happen to a text on its way, by chance or on purpose.

use proptest::prelude::*;
use proptest::sample::{Index, select};
use serde_json::{Value, json};

/// One thing that is done to a text.
#[derive(Clone, Debug)]
pub(super) enum Mutation {
    /// A byte becomes another.
    Byte(Index, u8),
    /// Something is put in between.
    Insert(Index, &'static str),
    /// Some bytes are gone.
    Remove(Index, usize),
    /// Some bytes are there again, somewhere else.
    Copy(Index, usize, Index),
    /// Some bytes are there many times.
    Repeat(Index, usize, usize),
    /// The rest is gone.
    Cut(Index),
    /// A word or number becomes something else.
    Token(Index, &'static str),
    /// Of JSON, a value becomes another.
    Replace(Index, Value),
    /// Of JSON, a field is called otherwise, or an item is there twice.
    Rename(Index, &'static str),
    /// In JSON, a value is in lists of lists.
    Nest(Index, usize),
}

/// Texts that mean something to a terminal, a reader, a parser or a file system.
const TEXTS: &[&str] = &[
    "\u{1b}]0;owned\u{7}",
    "\u{1b}[2J",
    "\\u001b[2J\\u009b2J\\u0000",
    "\u{9b}2J",
    "\u{0}",
    "\u{8}\u{7f}\u{85}",
    "\u{202e}evil\u{2066}",
    "\\u202e\\u200b\\ufeff\\udb40\\udc41",
    "\\ud800",
    "\u{200b}\u{ad}\u{feff}",
    "\u{2028}\u{2029}",
    "\r\n",
    "\r",
    "\t",
    "..",
    ".",
    "../x",
    "/etc/passwd",
    "a/b",
    "C:\\x",
    "CON",
    "nul.yaml",
    "",
    "~",
    "null",
    "true",
    "1e400",
    "-1e400",
    "18446744073709551616",
    "-0",
    "-0.0",
    "0x1f",
    "0o17",
    ".inf",
    ".nan",
    "51820.5",
    "65536",
    "1_000",
    "2027-02-30",
    "0.0.0.0/0",
    "::/0",
    "10.0.0.0/33",
    "::ffff:10.0.0.1/128",
    "fe80::1%eth0",
    "[]",
    "{}",
    "[",
    "{",
    "}",
    "]",
    "\"",
    "'",
    "&a ",
    "*a",
    "&a [*a]",
    "!!binary ",
    "!x ",
    "<<: ",
    "? ",
    "- ",
    ": ",
    "---\n",
    "...\n",
    "%YAML 9.9\n---\n",
    "#",
    "|\n",
    ">-\n",
    "${X}",
    "{{ x }}",
    "##[add-mask]x",
    "\n::error::x\n",
    "\u{fffd}\u{1f600}",
    "--help",
];

fn value() -> impl Strategy<Value = Value> {
    let text = select(TEXTS).prop_map(Value::from);
    let other = select(vec![
        Value::Null,
        json!(true),
        json!(0),
        json!(-1),
        json!(u64::MAX),
        json!(i64::MIN),
        json!(1.5),
        json!(1e308),
        json!([]),
        json!({}),
        json!([[]]),
        json!([null]),
        json!({ "": "" }),
        json!({ "a": 1, "b": [1, { "c": null }] }),
        json!("x".repeat(10_000)),
        json!("é".repeat(300)),
        json!(vec!["10.1.0.0/16"; 2000]),
        json!(vec![json!({ "name": "n1" }); 500]),
    ]);
    prop_oneof![2 => text, 1 => other]
}

/// Mutations of any text.
pub(super) fn of_text() -> impl Strategy<Value = Mutation> {
    let at = any::<Index>;
    prop_oneof![
        1 => (at(), any::<u8>()).prop_map(|(at, byte)| Mutation::Byte(at, byte)),
        3 => (at(), select(TEXTS)).prop_map(|(at, text)| Mutation::Insert(at, text)),
        1 => (at(), 1..200usize).prop_map(|(at, length)| Mutation::Remove(at, length)),
        2 => (at(), 1..300usize, at()).prop_map(|(from, length, to)| Mutation::Copy(from, length, to)),
        1 => (at(), 1..20usize, 2..5000usize)
            .prop_map(|(at, length, times)| Mutation::Repeat(at, length, times)),
        1 => at().prop_map(Mutation::Cut),
        5 => (at(), select(TEXTS)).prop_map(|(at, text)| Mutation::Token(at, text)),
    ]
}

/// Mutations of JSON.
pub(super) fn of_json() -> impl Strategy<Value = Mutation> {
    let at = any::<Index>;
    prop_oneof![
        4 => (at(), value()).prop_map(|(at, value)| Mutation::Replace(at, value)),
        2 => (at(), select(TEXTS)).prop_map(|(at, text)| Mutation::Rename(at, text)),
        1 => (at(), 1..200usize).prop_map(|(at, depth)| Mutation::Nest(at, depth)),
        3 => of_text(),
    ]
}

impl Mutation {
    /// Applies it. A text that is not JSON (any more) stays as it is if JSON is expected.
    pub(super) fn apply(&self, bytes: &mut Vec<u8>) {
        if bytes.is_empty() {
            return;
        }
        match self {
            Self::Byte(at, byte) => {
                let at = at.index(bytes.len());
                bytes[at] = *byte;
            }
            Self::Insert(at, text) => {
                let at = at.index(bytes.len());
                bytes.splice(at..at, text.bytes());
            }
            Self::Remove(at, length) => {
                let piece = piece(bytes, *at, *length);
                bytes.drain(piece);
            }
            Self::Copy(from, length, to) => {
                let copied = bytes[piece(bytes, *from, *length)].to_vec();
                let to = to.index(bytes.len());
                bytes.splice(to..to, copied);
            }
            Self::Repeat(at, length, times) => {
                let piece = piece(bytes, *at, *length);
                let repeated = bytes[piece.clone()].repeat(*times);
                bytes.splice(piece, repeated);
            }
            Self::Cut(at) => bytes.truncate(at.index(bytes.len())),
            Self::Token(at, text) => {
                let is_part = |byte: u8| !b" \n\"{}[],:".contains(&byte);
                let at = at.index(bytes.len());
                let end = bytes[at..].iter().position(|&it| !is_part(it));
                let end = end.map_or(bytes.len(), |end| at + end);
                let start = bytes[..at].iter().rposition(|&it| !is_part(it));
                let start = start.map_or(0, |start| start + 1);
                bytes.splice(start..end, text.bytes());
            }
            Self::Replace(at, new) => within(bytes, *at, |value| *value = new.clone()),
            Self::Rename(at, name) => within(bytes, *at, |value| match value {
                Value::Object(fields) => {
                    if let Some(first) = fields.keys().next().cloned() {
                        let value = fields.remove(&first).unwrap();
                        fields.insert((*name).to_owned(), value);
                    }
                }
                Value::Array(items) => items.extend(items.clone()),
                other => *other = json!({ *name: other }),
            }),
            Self::Nest(at, depth) => within(bytes, *at, |value| {
                for _ in 0..*depth {
                    *value = json!([value]);
                }
            }),
        }
    }
}

fn piece(bytes: &[u8], at: Index, length: usize) -> std::ops::Range<usize> {
    let at = at.index(bytes.len());
    at..bytes.len().min(at + length)
}

/// Changes one of all the values in a JSON text.
fn within(bytes: &mut Vec<u8>, at: Index, change: impl FnOnce(&mut Value)) {
    let Ok(mut root) = serde_json::from_slice::<Value>(bytes) else {
        return;
    };
    let mut left = at.index(count(&root));
    if let Some(value) = nth(&mut root, &mut left) {
        change(value);
    }
    *bytes = format!("{root:#}\n").into_bytes();
}

fn count(value: &Value) -> usize {
    1 + match value {
        Value::Array(items) => items.iter().map(count).sum(),
        Value::Object(fields) => fields.values().map(count).sum(),
        _ => 0,
    }
}

fn nth<'a>(value: &'a mut Value, left: &mut usize) -> Option<&'a mut Value> {
    if *left == 0 {
        return Some(value);
    }
    *left -= 1;
    match value {
        Value::Array(items) => items.iter_mut().find_map(|item| nth(item, left)),
        Value::Object(fields) => fields.values_mut().find_map(|value| nth(value, left)),
        _ => None,
    }
}
