//! Syntax errors of the YAML parser in plain sentences, at the place that a person has to change.
//!
//! The YAML parser reports such a line as a missing key or an unexpected list item.

use std::ops::Range;

use serde_saphyr::granit_parser::{ErrorKind, ScanError};

use super::position::boundary;
use super::problem::is_like_dash;
use crate::diagnostic::character;
use crate::text::uncommented;

mod indentation;

use indentation::Misindented;

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
        if let Some(problem) = foreign_start(text, start) {
            return problem;
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
        if let Some(problem) = glued_comment(text, start, error.kind()) {
            return problem;
        }
        if let Some(problem) = unspaced(text, start, error.kind()) {
            return problem;
        }
        let start = match error.kind() {
            // The parser reports the next line.
            ErrorKind::InvalidQuotedScalarIndent => {
                text.get(..start).and_then(|it| it.rfind(['"', '\''])).unwrap_or(start)
            }
            _ => start,
        };
        let character = text.get(start..).and_then(|rest| rest.chars().next());
        let width = character.filter(|character| !character.is_control()).map_or(0, char::len_utf8);
        Self {
            message: format!("not valid YAML: {}", sentence(error.kind())),
            bytes: start..start + width,
            help: help(error.kind()).map(str::to_owned),
        }
    }
}

/// Returns what is wrong with a line whose key is followed by `:` without a space.
fn unspaced(text: &str, line: usize, kind: &ErrorKind) -> Option<SyntaxProblem> {
    if !matches!(kind, ErrorKind::SimpleKeyExpected | ErrorKind::InvalidSimpleKey) {
        return None;
    }
    let text = text.get(line..)?.lines().next()?;
    let Some((key, value)) = text.split_once(':') else {
        let is_colon = |it: char| matches!(it, '\u{2236}' | '\u{a789}' | '\u{fe55}' | '\u{ff1a}');
        let (at, colon) = text.char_indices().find(|it| is_colon(it.1))?;
        return Some(SyntaxProblem {
            message: format!(
                "not valid YAML: after the key comes {} instead of `:`",
                character(colon)
            ),
            bytes: line + at..line + at + colon.len_utf8(),
            help: Some("replace this character by `:` and a space".to_owned()),
        });
    };
    let (start, next) = (line + key.len() + 1, value.chars().next()?);
    let (message, help) = if next.is_whitespace() {
        (
            format!("after `:` comes {} instead of a space", character(next)),
            "replace this character by a space",
        )
    } else {
        ("a space is missing after `:`".to_owned(), "write a space here")
    };
    Some(SyntaxProblem {
        message: format!("not valid YAML: {message}"),
        bytes: start..start + next.len_utf8(),
        help: Some(help.to_owned()),
    })
}

/// Returns what is wrong with the start of a line, or of the one before it: a character that looks like a space or a dash.
fn foreign_start(text: &str, error: usize) -> Option<SyntaxProblem> {
    let (before, rest) = text.split_at_checked(error)?;
    let end = error + rest.find('\n').unwrap_or(rest.len());
    let line = before.rfind('\n').map_or(0, |it| it + 1);
    let above = before.get(..line)?.trim_end();
    let start = above.rfind('\n').map_or(0, |it| it + 1);
    let mut at = start;
    text.get(start..end)?.split_inclusive('\n').find_map(|line| {
        let content = line.trim_start_matches(' ');
        let (start, first) = (at + line.len() - content.len(), content.chars().next()?);
        at += line.len();
        let help = if first.is_whitespace() && !first.is_ascii() {
            "replace this character by a space"
        } else if is_like_dash(first) && first != '-' && content.chars().nth(1)?.is_whitespace() {
            "replace this character by `-`"
        } else {
            return None;
        };
        Some(SyntaxProblem {
            message: format!("not valid YAML: the line begins with {}", character(first)),
            bytes: start..start + first.len_utf8(),
            help: Some(help.to_owned()),
        })
    })
}

/// Returns what is wrong with a value behind which a comment with a colon begins without a space.
fn glued_comment(text: &str, colon: usize, kind: &ErrorKind) -> Option<SyntaxProblem> {
    let before = text.get(..colon)?.lines().next_back()?;
    let value = uncommented(before.split_once(": ")?.1)?;
    let is_plain = !value.is_empty() && !value.contains(['"', '\'', ' ', '[', '{']);
    let end = colon - before.len() + before.find('#')?;
    (is_plain && *kind == ErrorKind::MappingValueNotAllowed).then(|| SyntaxProblem {
        message: "not valid YAML: a space is missing before `#`".to_owned(),
        bytes: end..end + 1,
        help: Some("write a space here".to_owned()),
    })
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
        Kind::CommentNotSeparated => Some("write a space here"),
        Kind::InvalidQuotedScalarIndent => Some("close the quote, or remove it"),
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
        Kind::InvalidQuotedScalarIndent => "a quote is not closed in its line",
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
