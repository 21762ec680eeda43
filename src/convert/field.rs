//! Fields: ranges under a name, with the comments beside them, as text.

use std::fmt::Write as _;

/// A field of an entry.
#[derive(Clone, Debug)]
pub(super) struct Field {
    name: &'static str,
    is_list: bool,
    pub(super) items: Vec<FieldItem>,
}

/// A range as it is written.
#[derive(Clone, Debug, Default)]
pub(super) struct FieldItem {
    /// The range, perhaps in quotes.
    pub(super) text: String,
    /// The comments on lines of their own above it.
    pub(super) above: Vec<String>,
    /// The comment behind it.
    pub(super) behind: Option<String>,
}

impl Field {
    /// Returns a list.
    pub(super) fn list(name: &'static str, items: Vec<FieldItem>) -> Self {
        Self {
            name,
            is_list: true,
            items,
        }
    }

    /// Returns a single range.
    pub(super) fn one(name: &'static str, item: FieldItem) -> Self {
        Self {
            name,
            is_list: false,
            items: vec![item],
        }
    }

    /// Writes it on lines of its own.
    pub(super) fn block(&self, indent: &str) -> String {
        let name = self.name;
        let mut text = String::new();
        let has_comments = self.items.iter().any(FieldItem::has_comments);
        if self.is_list && has_comments {
            let _ = writeln!(text, "{indent}{name}:");
            for item in &self.items {
                item.block(&format!("{indent}  "), "- ", &mut text);
            }
        } else if self.is_list {
            let _ = writeln!(text, "{indent}{}", self.flow(""));
        } else if let [item] = self.items.as_slice() {
            item.block(indent, &format!("{name}: "), &mut text);
        }
        text
    }

    /// Writes it on one line, with this quote around its name.
    pub(super) fn flow(&self, quote: &str) -> String {
        let texts: Vec<&str> = self.items.iter().map(|it| it.text.as_str()).collect();
        let texts = texts.join(", ");
        let name = self.name;
        if self.is_list {
            format!("{quote}{name}{quote}: [{texts}]")
        } else {
            format!("{quote}{name}{quote}: {texts}")
        }
    }
}

impl FieldItem {
    fn has_comments(&self) -> bool {
        !self.above.is_empty() || self.behind.is_some()
    }

    fn block(&self, indent: &str, lead: &str, text: &mut String) {
        for comment in &self.above {
            let _ = writeln!(text, "{indent}{comment}");
        }
        let behind = match &self.behind {
            Some(comment) => format!(" {comment}"),
            None => String::new(),
        };
        let _ = writeln!(text, "{indent}{lead}{}{behind}", self.text);
    }
}
