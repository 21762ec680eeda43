//! Syntax errors of the YAML parser in plain sentences, at the place that a person has to change.
//!
//! The YAML parser reports such a line as a missing key or an unexpected list item.

use std::ops::Range;

use serde_saphyr::granit_parser::{ErrorKind, ScanError};

use super::position::boundary;

/// A syntax error in words.
pub(super) struct SyntaxProblem {
    /// The problem.
    pub(super) message: String,
    /// The place, in bytes.
    pub(super) bytes: Range<usize>,
    /// The remedy, if there is only one.
    pub(super) help: Option<String>,
}

impl SyntaxProblem {
    /// Describes an error of the parser in a text.
    pub(super) fn from_error(text: &str, error: &ScanError) -> Self {
        let offset = error.marker().byte_offset().unwrap_or(text.len());
        let start = boundary(text, offset);
        if is_about_tabs(error.kind()) {
            let bytes = tab(text, start).map_or(start..start, |tab| tab..tab + 1);
            return Self {
                message: "a tab is used for indentation, but YAML allows only spaces".to_owned(),
                bytes,
                help: Some("replace the tab with spaces".to_owned()),
            };
        }
        if may_be_indentation(error.kind())
            && let Some(line) = Misindented::find(text, start)
        {
            return Self {
                message: format!("not valid YAML: {}", line.message()),
                bytes: line.bytes(text, start),
                help: Some(line.help()),
            };
        }
        let character = text.get(start..).and_then(|rest| rest.chars().next());
        let width = character.filter(|character| !character.is_control()).map_or(0, char::len_utf8);
        Self {
            message: format!("not valid YAML: {}", sentence(error.kind())),
            bytes: start..start + width,
            help: help(error.kind()).map(str::to_owned),
        }
    }
}

/// Returns whether a wrong indentation may be the cause of an error.
fn may_be_indentation(kind: &ErrorKind) -> bool {
    use ErrorKind as Kind;
    matches!(
        kind,
        Kind::ExpectedBlockMappingKey
            | Kind::ExpectedBlockSequenceEntry
            | Kind::BlockSequenceEntryNotAllowed
            | Kind::InvalidIndentation
            | Kind::MappingValueNotAllowed
    )
}

fn is_about_tabs(kind: &ErrorKind) -> bool {
    use ErrorKind as Kind;
    matches!(
        kind,
        Kind::TabNotAllowed
            | Kind::TabInBlockIndentation
            | Kind::TabInIndentation
            | Kind::TabInPlainScalar
            | Kind::TabAtBlockScalarStart
    )
}

/// Returns the first tab before the content of a line, from the line of the error on: the parser
/// reports the end of the value before the tab.
fn tab(text: &str, error: usize) -> Option<usize> {
    let mut start = text.get(..error)?.rfind(['\n', '\r']).map_or(0, |end| end + 1);
    for line in text.get(start..)?.split_inclusive('\n') {
        let content = line.trim_start_matches([' ', '\t']);
        let indentation = line.get(..line.len() - content.len())?;
        if let Some(column) = indentation.find('\t') {
            return Some(start + column);
        }
        start += line.len();
    }
    Some(error + text.get(error..)?.find('\t')?)
}

fn help(kind: &ErrorKind) -> Option<&'static str> {
    use ErrorKind as Kind;
    match kind {
        Kind::MappingValueNotAllowed => {
            Some("check the indentation of this line and the one before it, or quote the value")
        }
        Kind::InvalidColonPlacement => Some("close the bracket before it, or quote the value"),
        Kind::UnexpectedCharacter { .. } | Kind::UnknownQuotedScalarEscape => {
            Some("put the value in single quotes")
        }
        _ => None,
    }
}

/// Returns what is wrong, in words that need no knowledge of the YAML specification.
fn sentence(kind: &ErrorKind) -> String {
    use ErrorKind as Kind;
    match kind {
        Kind::MismatchedFlowCollectionEnd { open, close } => {
            format!("`{open}` is closed by `{close}`")
        }
        Kind::UnclosedFlowCollection { open } => format!("`{open}` is never closed"),
        Kind::UnexpectedCharacter { character } => {
            let character = character.escape_default();
            format!("a value cannot start with `{character}`")
        }
        _ => of_collection(kind)
            .or_else(|| of_scalar(kind))
            .unwrap_or_else(|| marked(kind))
            .to_owned(),
    }
}

/// Returns what is wrong with a mapping, a list, a document or the indentation.
fn of_collection(kind: &ErrorKind) -> Option<&'static str> {
    use ErrorKind as Kind;
    Some(match kind {
        Kind::MappingValueNotAllowed | Kind::InvalidColonPlacement => "unexpected `:`",
        Kind::MappingKeyNotAllowed => "unexpected key",
        Kind::SimpleKeyExpected | Kind::InvalidSimpleKey => {
            "this line must be `key: value`, but there is no `:` after the key"
        }
        Kind::ExpectedBlockMappingKey => {
            "a key is missing here, or the line is indented more or less than the lines before it"
        }
        Kind::ExpectedBlockSequenceEntry | Kind::BlockSequenceEntryNotAllowed => {
            "a list item (`- `) does not fit here; all items of a list have the same indentation"
        }
        Kind::BlockEntryInFlowCollection => "unexpected list item (`- `) inside brackets",
        Kind::InvalidBlockEntryWhitespace => "`-` needs a space after it",
        Kind::InvalidMappingValueWhitespace | Kind::FlowMappingValueAdjacentCollection => {
            "`:` needs a space after it"
        }
        Kind::ExpectedFlowMappingSeparator => "a `,` or `}` is missing before this",
        Kind::ExpectedFlowSequenceSeparator => "a `,` or `]` is missing before this",
        Kind::UnexpectedEofFlowSequence => "the file ends before a `[` is closed",
        Kind::UnexpectedEofFlowMapping | Kind::UnexpectedEofImplicitFlowMapping => {
            "the file ends before a `{` is closed"
        }
        Kind::UnexpectedEofBlockSequence
        | Kind::UnexpectedEofBlockMapping
        | Kind::UnexpectedEof => "the file ends too early",
        Kind::MisplacedFlowCollectionEnd => "this bracket closes nothing",
        Kind::InvalidIndentation
        | Kind::InvalidFlowScalarIndent
        | Kind::InvalidBlockScalarIndent => "the indentation of this line is wrong",
        Kind::BomInsideDocument => "a byte order mark is possible only at the start of a file",
        Kind::ExpectedDocumentStart | Kind::InvalidDocumentEnd => {
            "a new document must start with `---` on a line of its own"
        }
        Kind::RecursionLimitExceeded => "values are nested too deep",
        _ => return None,
    })
}

/// Returns what is wrong with a value, a name or a comment.
fn of_scalar(kind: &ErrorKind) -> Option<&'static str> {
    use ErrorKind as Kind;
    Some(match kind {
        Kind::PlainScalarStartsWithDashFlowIndicator => {
            "a value cannot start with `-` and a bracket or comma"
        }
        Kind::UnclosedQuotedScalar => "a quote is never closed",
        Kind::InvalidQuotedScalarIndent => {
            "a quote is not closed in its line, and the next line is not indented further"
        }
        Kind::DocumentIndicatorInQuotedScalar => "a quote is not closed before `---` or `...`",
        Kind::InvalidTrailingSingleQuotedScalar | Kind::InvalidTrailingDoubleQuotedScalar => {
            "there is text after the closing quote"
        }
        Kind::UnknownQuotedScalarEscape
        | Kind::InvalidQuotedScalarHexEscape
        | Kind::InvalidLowSurrogateHexEscape
        | Kind::InvalidLowSurrogate
        | Kind::MissingLowSurrogate
        | Kind::UnpairedLowSurrogate
        | Kind::InvalidUnicodeEscape => "this escape sequence is not valid in double quotes",
        Kind::UnknownAnchor => "this alias (`*name`) has no anchor (`&name`) before it",
        Kind::MissingAnchorOrAliasName => {
            "a name is missing after `&` or `*`; quote the value if it is text"
        }
        Kind::CommentNotSeparated => "a comment needs a space before `#`",
        Kind::CommentInterceptedScalar => "a comment interrupts a string of several lines",
        Kind::ZeroBlockScalarIndent | Kind::InvalidBlockScalarHeader => {
            "after `|` or `>` the text must start in the next line"
        }
        _ => return None,
    })
}

/// Returns what is wrong with a tag (`!name`) or a directive (`%NAME`). Our formats need neither.
fn marked(kind: &ErrorKind) -> &'static str {
    use ErrorKind as Kind;
    match kind {
        Kind::UndeclaredTagHandle
        | Kind::ExpectedTagBang
        | Kind::InvalidTagTerminator
        | Kind::MissingTagUri
        | Kind::UnclosedVerbatimTag
        | Kind::InvalidGlobalTagCharacter
        | Kind::InvalidTagEscape
        | Kind::InvalidTagUtf8
        | Kind::InvalidTagUtf8LeadingByte
        | Kind::InvalidTagUtf8TrailingByte => "this tag (`!name`) is not valid; quote the value",
        Kind::DuplicateVersionDirective
        | Kind::UnsupportedYamlMajorVersion
        | Kind::DuplicateTagDirective
        | Kind::MissingDocumentEndBeforeDirective
        | Kind::ExpectedTagDirectiveBang
        | Kind::InvalidDirectiveTerminator
        | Kind::DirectiveDisallowed
        | Kind::MissingYamlVersionSeparator
        | Kind::MissingDirectiveName
        | Kind::InvalidDirectiveName
        | Kind::DirectiveByteLimitExceeded { .. }
        | Kind::TooManyReservedDirectiveParams { .. }
        | Kind::YamlVersionTooLong
        | Kind::MissingYamlVersion
        | Kind::InvalidTagDirectiveTerminator => {
            "this line starts with `%`, which makes it a YAML directive that is not valid here"
        }
        _ => "unexpected here",
    }
}

/// The longest key that is named in a message, in bytes.
const LONGEST_KEY: usize = 64;

/// A line with an indentation that no line above it has.
struct Misindented<'t> {
    /// The first token of the line.
    token: Token<'t>,
    /// The tokens that it could be aligned with, the deepest first.
    candidates: Vec<Token<'t>>,
}

/// A key or the dash of a list item, and its position.
#[derive(Clone, Copy)]
struct Token<'t> {
    /// The key; nothing for a dash.
    key: Option<&'t str>,
    /// The number of characters before it.
    column: usize,
    /// The line, counted from one.
    line: usize,
}

impl<'t> Misindented<'t> {
    /// Looks at the line of an error at a byte: whether its first key or dash is aligned with none above it.
    pub(super) fn find(text: &'t str, error: usize) -> Option<Self> {
        let start = text.get(..error)?.rfind('\n').map_or(0, |end| end + 1);
        let mut open: Vec<Token> = Vec::new();
        let mut number = 1;
        for line in text.get(..start)?.lines() {
            if line.starts_with("---") || line.starts_with("...") {
                open.clear();
            }
            for token in tokens(line, number) {
                // A list may have the indentation of the key that it belongs to.
                open.retain(|it| {
                    it.column < token.column
                        || it.column == token.column && it.key.is_some() && token.key.is_none()
                });
                open.push(token);
            }
            number += 1;
        }
        let line = text.get(start..)?.lines().next()?;
        let token = tokens(line, number).into_iter().next()?;
        let length = token.key.map_or(1, str::len);
        if token.column + length < error - start {
            return None;
        }
        open.retain(|it| it.key.is_some() == token.key.is_some());
        let is_aligned = open.iter().any(|it| it.column == token.column);
        let above = open.iter().rfind(|it| token.column < it.column);
        let below = open.iter().rfind(|it| it.column < token.column);
        let candidates: Vec<Token> = above.into_iter().chain(below).copied().collect();
        (!is_aligned && !candidates.is_empty()).then_some(Self { token, candidates })
    }

    /// Returns the problem as a message.
    pub(super) fn message(&self) -> String {
        let spaces = spaces(self.token.column);
        match self.token.key {
            Some(key) => {
                format!("the indentation of `{key}` ({spaces}) matches no key above it")
            }
            None => {
                format!("the indentation of this list item ({spaces}) matches no list above it")
            }
        }
    }

    /// Returns what to write instead.
    pub(super) fn help(&self) -> String {
        let candidates: Vec<String> = self
            .candidates
            .iter()
            .map(|it| {
                let (spaces, line) = (spaces(it.column), it.line);
                match it.key {
                    Some(key) => format!("by {spaces}, like `{key}` in line {line}"),
                    None => format!("by {spaces}, like the list item in line {line}"),
                }
            })
            .collect();
        format!("indent it {}", candidates.join(", or "))
    }

    /// Returns the bytes of the first token of the line of an error.
    pub(super) fn bytes(&self, text: &str, error: usize) -> std::ops::Range<usize> {
        let start = text.get(..error).unwrap_or_default().rfind('\n').map_or(0, |end| end + 1)
            + self.token.column;
        start..start + self.token.key.map_or(1, str::len)
    }
}

fn spaces(number: usize) -> String {
    match number {
        1 => "1 space".to_owned(),
        number => format!("{number} spaces"),
    }
}

/// Returns the dashes and the key that a line starts with.
fn tokens(line: &str, number: usize) -> Vec<Token<'_>> {
    let mut tokens = Vec::new();
    let mut rest = line.trim_start_matches(' ');
    while let Some(item) = rest.strip_prefix('-') {
        if !item.is_empty() && !item.starts_with([' ', '\r']) {
            return tokens;
        }
        tokens.push(Token { key: None, column: line.len() - rest.len(), line: number });
        rest = item.trim_start_matches(' ');
    }
    let Some((key, value)) = rest.split_once(':') else {
        return tokens;
    };
    let is_plain = |it: char| it.is_ascii_alphanumeric() || matches!(it, '-' | '_' | '.' | '/');
    let is_key = !key.is_empty() && key.len() <= LONGEST_KEY && key.chars().all(is_plain);
    if is_key && (value.is_empty() || value.starts_with([' ', '\r'])) {
        tokens.push(Token { key: Some(key), column: line.len() - rest.len(), line: number });
    }
    tokens
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report(text: &str, line: usize) -> Option<String> {
        let before = text.split_inclusive('\n').take(line - 1);
        let start: usize = before.map(str::len).sum();
        let rest = &text[start..];
        let indent = rest.len() - rest.trim_start_matches(' ').len();
        let found = Misindented::find(text, start + indent)?;
        Some(format!("{}; {}", found.message(), found.help()))
    }

    #[test]
    fn a_key_is_compared_with_the_open_keys_above_it() {
        let text = "spec:\n  clusters:\n    - name: west\n     podCIDRs: [10.0.0.0/16]\n";
        insta::assert_snapshot!(report(text, 4).unwrap(), @"the indentation of `podCIDRs` (5 spaces) matches no key above it; indent it by 6 spaces, like `name` in line 3, or by 2 spaces, like `clusters` in line 2");
        let text = "spec:\n  clusters:\n    - name: west\n    podCIDRs: [10.0.0.0/16]\n";
        insta::assert_snapshot!(report(text, 4).unwrap(), @"the indentation of `podCIDRs` (4 spaces) matches no key above it; indent it by 6 spaces, like `name` in line 3, or by 2 spaces, like `clusters` in line 2");
        let text = "metadata:\n  name: x\n spec:\n";
        insta::assert_snapshot!(report(text, 3).unwrap(), @"the indentation of `spec` (1 space) matches no key above it; indent it by 2 spaces, like `name` in line 2, or by 0 spaces, like `metadata` in line 1");
        let text = "a:\n  b: 1\n    c: 2\n";
        insta::assert_snapshot!(report(text, 3).unwrap(), @"the indentation of `c` (4 spaces) matches no key above it; indent it by 2 spaces, like `b` in line 2");
    }

    #[test]
    fn an_item_is_compared_with_the_open_lists_above_it() {
        let text = "a:\n  - b: 1\n - b: 2\n";
        insta::assert_snapshot!(report(text, 3).unwrap(), @"the indentation of this list item (1 space) matches no list above it; indent it by 2 spaces, like the list item in line 2");
    }

    #[test]
    fn aligned_lines_and_values_are_not_reported() {
        for (text, line) in [
            ("a:\n  b: 1\n  c: 2\n", 3),
            ("a:\n- b\n- c\n", 3),
            ("a:\n- b\nc: 1\n", 3),
            ("a: 1\n", 1),
            ("a:\n  text\n", 2),
            ("a:\n  b: 1\n---\n c: 1\n", 4),
        ] {
            assert_eq!(report(text, line), None, "{text}");
        }
    }
}
