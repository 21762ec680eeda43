//! The reader: events of the YAML parser into trees.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use serde_saphyr::granit_parser::{Event, Options, Parser, ScalarStyle, ScanError, Span, Tag};

use crate::diagnostic::{Finding, Message, Mistakes, Quoted, Quotes, Rule, mistake};
use crate::place::Place;
use crate::text::{CONFLICT, conflict};

use super::syntax::SyntaxProblem;
use super::tree::{MappingEntries, MappingEntry, Scalar, TreeKey, TreeNode, TreeValue};

/// The longest text that is looked at, in bytes.
const TEXT_LIMIT: usize = 8 << 20;

/// The number of documents that a text may have.
const DOCUMENT_LIMIT: usize = 1024;

/// The depth of nested values, aliases expanded.
const DEPTH_LIMIT: usize = 64;

/// The largest weight of a text, aliases expanded: one for every value, and one for every [`HEAVY`]
/// bytes of one.
const WEIGHT_LIMIT: usize = 250_000;

/// See [`WEIGHT_LIMIT`].
const HEAVY: usize = 64;

/// Returns the trees of all documents.
pub(super) fn documents(name: &Arc<str>, text: &str) -> Result<Vec<TreeNode>, Mistakes> {
    let mut reader = Reader::new(name);
    if TEXT_LIMIT < text.len() {
        let message = format!("the file has {} bytes, more than the limit of 8 MiB", text.len());
        let error = reader.too_large(message, 0..0);
        reader.errors.push(error);
        return Err(reader.errors);
    }
    if let Some(bytes) = conflict(text) {
        let error = reader.error(&mistake::SYNTAX_ERROR, CONFLICT, bytes);
        let help = "keep what is right, and remove the lines that begin with `<<<<<<<`, `|||||||`, `=======` and `>>>>>>>`";
        reader.errors.push(error.help(help));
        return Err(reader.errors);
    }
    let mut options = Options::default();
    options.set_emit_comments(false);
    for event in Parser::new_from_str_with_options(text, options) {
        let step = match event {
            Ok((event, span)) => reader.take(event, &span),
            Err(error) => Err(reader.broken(text, &error)),
        };
        if let Err(error) = step {
            reader.errors.push(error);
            break;
        }
    }
    if reader.errors.is_empty() { Ok(reader.documents) } else { Err(reader.errors) }
}

struct Reader<'a> {
    name: &'a Arc<str>,
    documents: Vec<TreeNode>,
    open: Vec<OpenCollection>,
    anchors: BTreeMap<usize, Anchored>,
    weight: usize,
    errors: Mistakes,
}

/// The value of an alias, and the cost of a copy.
#[derive(Clone)]
struct Anchored {
    value: TreeValue,
    size: Size,
}

/// The weight of a value, and its depth.
#[derive(Clone, Copy)]
struct Size {
    weight: usize,
    height: usize,
}

/// A list or mapping whose end has not come yet.
struct OpenCollection {
    start: usize,
    anchor: usize,
    size: Size,
    parts: Parts,
}

enum Parts {
    Items(Vec<TreeNode>),
    Entries {
        entries: Vec<MappingEntry>,
        keys: BTreeMap<Arc<str>, Range<usize>>,
        key: Option<TreeKey>,
    },
}

impl<'a> Reader<'a> {
    fn new(name: &'a Arc<str>) -> Self {
        Self {
            name,
            documents: Vec::new(),
            open: Vec::new(),
            anchors: BTreeMap::new(),
            weight: 0,
            errors: Mistakes::default(),
        }
    }

    fn take(&mut self, event: Event, span: &Span) -> Result<(), Finding> {
        let bytes = span.byte_range().unwrap_or_default();
        match event {
            Event::DocumentStart(..) => self.begin(bytes),
            Event::Scalar(text, style, anchor, tag) => {
                let plain = style == ScalarStyle::Plain && tag.is_none();
                self.check_tag(tag.as_deref(), "str", span);
                self.scalar(&text, plain, anchor, bytes)
            }
            Event::SequenceStart(_, anchor, tag) => {
                self.check_tag(tag.as_deref(), "seq", span);
                self.open(anchor, bytes, Parts::Items(Vec::new()))
            }
            Event::MappingStart(_, anchor, tag) => {
                self.check_tag(tag.as_deref(), "map", span);
                self.open(anchor, bytes, Parts::entries())
            }
            Event::Alias(anchor) => self.alias(anchor, bytes),
            Event::SequenceEnd | Event::MappingEnd => self.close(bytes.end),
            _ => Ok(()),
        }
    }

    fn begin(&mut self, bytes: Range<usize>) -> Result<(), Finding> {
        self.anchors.clear();
        if self.documents.len() == DOCUMENT_LIMIT {
            let message = format!("more than {DOCUMENT_LIMIT} documents in one file");
            return Err(self.too_large(message, bytes));
        }
        Ok(())
    }

    fn scalar(
        &mut self,
        text: &str,
        plain: bool,
        anchor: usize,
        bytes: Range<usize>,
    ) -> Result<(), Finding> {
        let size = Size { weight: 1 + text.len() / HEAVY, height: 0 };
        let text = Arc::from(text);
        let value = TreeValue::Scalar(Scalar { text, plain });
        self.spend(size, &bytes)?;
        self.keep(anchor, &value, size);
        self.put(TreeNode::new(bytes, value), size)
    }

    fn alias(&mut self, anchor: usize, bytes: Range<usize>) -> Result<(), Finding> {
        // An anchor is known from its end on; before that the alias would contain itself.
        let Some(Anchored { value, size }) = self.anchors.get(&anchor).cloned() else {
            let message = "an alias is used inside the value that it refers to";
            return Err(self.too_large(message, bytes));
        };
        self.spend(size, &bytes)?;
        let node = TreeNode { span: bytes, value, alias: true };
        self.put(node, size)
    }

    fn open(&mut self, anchor: usize, bytes: Range<usize>, parts: Parts) -> Result<(), Finding> {
        let size = Size { weight: 1, height: 1 };
        self.spend(size, &bytes)?;
        self.open.push(OpenCollection { start: bytes.start, anchor, size, parts });
        Ok(())
    }

    fn close(&mut self, end: usize) -> Result<(), Finding> {
        let Some(done) = self.open.pop() else { return Ok(()) };
        let value = match done.parts {
            Parts::Items(items) => TreeValue::Sequence(items.into()),
            Parts::Entries { entries, .. } => {
                TreeValue::Mapping(Arc::new(MappingEntries::new(entries)))
            }
        };
        self.keep(done.anchor, &value, done.size);
        let bytes = done.start..end.max(done.start);
        self.put(TreeNode::new(bytes, value), done.size)
    }

    fn keep(&mut self, anchor: usize, value: &TreeValue, size: Size) {
        if anchor != 0 {
            let value = value.clone();
            self.anchors.insert(anchor, Anchored { value, size });
        }
    }

    /// Puts a finished value where it belongs: under a key, into a list, or on its own.
    fn put(&mut self, node: TreeNode, size: Size) -> Result<(), Finding> {
        let Some(around) = self.open.last_mut() else {
            self.documents.push(node);
            return Ok(());
        };
        around.size.weight += size.weight;
        around.size.height = around.size.height.max(size.height + 1);
        match &mut around.parts {
            Parts::Items(items) => items.push(node),
            Parts::Entries { entries, key, .. } => match key.take() {
                Some(key) => entries.push(MappingEntry { key, value: node }),
                None if matches!(node.value, TreeValue::Mapping(_))
                    && around.start + 1 == node.span.start =>
                {
                    let (message, bytes) =
                        ("a value that begins with `{{` needs quotes", around.start);
                    let error = self.error(&mistake::SYNTAX_ERROR, message, bytes..bytes + 2);
                    return Err(error.help("put the whole value in single quotes"));
                }
                None => self.put_key(node),
            },
        }
        Ok(())
    }

    fn put_key(&mut self, node: TreeNode) {
        let bytes = node.span;
        let scalar = match node.value {
            TreeValue::Scalar(scalar) if !node.alias => scalar,
            _ => {
                let message = "a key must be a plain string";
                self.errors.push(self.error(&mistake::SYNTAX_ERROR, message, bytes.clone()));
                // Some key has to be there for the value that follows.
                Scalar {
                    text: Arc::from(format!("complex key at byte {}", bytes.start)),
                    plain: false,
                }
            }
        };
        if scalar.plain && &*scalar.text == "<<" {
            let error = self.merge_key(bytes.clone());
            self.errors.push(error);
        } else if let Some(first) = self.first_use(&scalar.text, &bytes) {
            let error = self.repeated_key(&scalar.text, bytes.clone(), first);
            self.errors.push(error);
        }
        if let Some(OpenCollection { parts: Parts::Entries { key, .. }, .. }) = self.open.last_mut()
        {
            *key = Some(TreeKey { scalar, span: bytes });
        }
    }

    /// Returns where the innermost open mapping has this key already.
    fn first_use(&mut self, text: &Arc<str>, bytes: &Range<usize>) -> Option<Range<usize>> {
        let Some(OpenCollection { parts: Parts::Entries { keys, .. }, .. }) = self.open.last_mut()
        else {
            return None;
        };
        if let Some(first) = keys.get(text) {
            return Some(first.clone());
        }
        keys.insert(Arc::clone(text), bytes.clone());
        None
    }

    /// Counts a value in, if there is room for it.
    fn spend(&mut self, size: Size, bytes: &Range<usize>) -> Result<(), Finding> {
        self.weight = self.weight.saturating_add(size.weight);
        if WEIGHT_LIMIT < self.weight {
            let message = format!("more than {WEIGHT_LIMIT} values, aliases expanded");
            return Err(self.too_large(message, bytes.clone()));
        }
        if DEPTH_LIMIT < self.open.len() + size.height {
            let message = format!("values nested more than {DEPTH_LIMIT} deep, aliases expanded");
            return Err(self.too_large(message, bytes.clone()));
        }
        Ok(())
    }

    /// A tag is accepted if it only repeats the type of the value, like `!!str` on a text.
    fn check_tag(&mut self, tag: Option<&Tag>, fitting: &str, span: &Span) {
        let Some(tag) = tag else { return };
        if tag.core_suffix() == Some(fitting) || tag.original() == "!" {
            return;
        }
        let bytes = span
            .tag_span()
            .and_then(|span| span.byte_range())
            .or(span.byte_range())
            .unwrap_or_default();
        let message = format!("the tag {} is not supported", Quoted(&tag.original()));
        let mut error = self.error(&mistake::SYNTAX_ERROR, message, bytes);
        error = error.help("remove the tag, and put the value in quotes if it is a string");
        self.errors.push(error);
    }

    fn merge_key(&self, bytes: Range<usize>) -> Finding {
        let message = "merge keys (`<<`) are not supported";
        let error = self.error(&mistake::SYNTAX_ERROR, message, bytes);
        error.help("write the fields out, or use an alias for each value")
    }

    fn repeated_key(&self, text: &str, bytes: Range<usize>, first: Range<usize>) -> Finding {
        let message = format!("duplicate key {}", Quoted(text));
        Finding::new(&mistake::DUPLICATE_ITEM, message)
            .at_both(self.place().bytes(&bytes), self.place().bytes(&first))
    }

    fn broken(&self, text: &str, error: &ScanError) -> Finding {
        let SyntaxProblem { message, bytes, help } = SyntaxProblem::from_error(text, error);
        let error = self.error(&mistake::SYNTAX_ERROR, message, bytes);
        match help {
            Some(help) => error.help(help),
            None => error,
        }
    }

    fn error(
        &self,
        rule: &'static Rule,
        message: impl Into<Message>,
        bytes: Range<usize>,
    ) -> Finding {
        Finding::new(rule, message).at(self.place().bytes(&bytes), "")
    }

    fn too_large(&self, message: impl Into<Message>, bytes: Range<usize>) -> Finding {
        self.error(&mistake::TOO_LARGE, message, bytes).quoting(Quotes::Nothing)
    }

    fn place(&self) -> Place {
        Place::document(self.name, self.documents.len())
    }
}

impl Parts {
    fn entries() -> Self {
        Self::Entries { entries: Vec::new(), keys: BTreeMap::new(), key: None }
    }
}

impl TreeNode {
    fn new(span: Range<usize>, value: TreeValue) -> Self {
        Self { span, value, alias: false }
    }
}
