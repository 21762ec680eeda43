//! Rules: what a finding is a case of.

use std::cmp::Ordering;

use schemars::JsonSchema;
use serde::{Serialize, Serializer};

use super::{Page, Severity};

/// Declares rules, all about one subject: statics. The documentation of each is a page of its name in a folder, seen
/// from the file that declares it.
macro_rules! rule {
    ($folder:literal about $subject:ident; $($rule:ident = $name:literal $severity:ident $($alias:literal)*;)*) => {$(
        #[doc = concat!("The rule `", $name, "`.")]
        pub(crate) static $rule: $crate::diagnostic::Rule = $crate::diagnostic::Rule {
            name: $name,
            aliases: &[$($alias),*],
            severity: $crate::diagnostic::Severity::$severity,
            subject: $crate::diagnostic::Subject::$subject,
            page: include_str!(concat!($folder, "/", $name, ".md")),
        };
    )*};
}

/// Declares a question as `QUESTION`, and the rules that answer it, all about one subject. Other rules that answer
/// it are declared elsewhere.
macro_rules! rules {
    ($title:literal in $folder:literal about $subject:ident $(with $($module:ident)::+: $($other:ident),*)?; $($rule:ident = $name:literal $severity:ident $($alias:literal)*;)*) => {
        rule! { $folder about $subject; $($rule = $name $severity $($alias)*;)* }

        /// The question that these rules answer.
        pub(crate) static QUESTION: $crate::diagnostic::Question = $crate::diagnostic::Question {
            title: $title,
            rules: {
                $(use $($module)::+::{$($other),*};)?
                &[$(&$rule,)* $($(&$other),*)?]
            },
        };
    };
}

/// A question about a mesh.
#[derive(Debug)]
pub struct Question {
    /// The question.
    pub title: &'static str,
    /// The rules that answer it.
    pub rules: &'static [&'static Rule],
}

/// A kind of finding: its subject and its severity.
#[derive(Debug, Eq, JsonSchema, Serialize)]
pub struct Rule {
    // In kebab-case. It names the fault, and is never reused.
    /// The name of the rule; `clustermesh explain RULE` explains it.
    #[schemars(example = &"missing-endpoint")]
    #[serde(rename = "rule")]
    pub(crate) name: &'static str,
    /// The operator's reason codes for this rule.
    #[schemars(example = ["NodeNoEndpoint"])]
    #[serde(skip_serializing_if = "<[&str]>::is_empty")]
    pub aliases: &'static [&'static str],
    /// The severity.
    #[serde(skip)]
    pub severity: Severity,
    /// The subject.
    #[serde(skip)]
    pub subject: Subject,
    /// Its documentation, as Markdown.
    #[serde(skip)]
    pub(crate) page: &'static str,
}

/// Writes the name of a rule alone.
#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde calls it so")]
pub(super) fn written_name<S: Serializer>(
    rule: &&'static Rule,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    rule.name.serialize(serializer)
}

/// The subject of a rule.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Subject {
    /// The files that are rendered from, and the config. If one of them is wrong, there is no
    /// plan.
    Files,
    /// The plan that is computed from them.
    Plan,
    /// Snapshots in the making.
    Snapshots,
    /// The effect of the manifests as they are applied, which only a proof shows.
    Proof,
    /// The rendered tree: how it stands, and what a render would take away from it. If one of
    /// these is an error, nothing is written.
    Tree,
}

impl Rule {
    /// Returns its name, for output. Decisions compare rules.
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// Returns its documentation.
    pub fn page(&self) -> Page {
        Page::read(self.page)
    }

    /// Returns whether nothing can be planned after it, so that its severity is final.
    pub fn is_final(&self) -> bool {
        let is_final = matches!(self.subject, Subject::Files | Subject::Tree);
        is_final && self.severity == Severity::Error
    }
}

impl PartialEq for Rule {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

impl Ord for Rule {
    fn cmp(&self, other: &Self) -> Ordering {
        self.name.cmp(other.name)
    }
}

impl PartialOrd for Rule {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}
