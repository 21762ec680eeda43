//! The kustomization of a target as it stands.

use std::ops::Range;

use crate::document::{Source, TreeNode, TreeValue};
use crate::template;

/// A kustomization that was read back.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Kustomization {
    /// The names of its resources, with their places.
    pub resources: Vec<(String, Range<usize>)>,
    /// Whether it is byte for byte what we write to name these.
    pub is_ours: bool,
    /// Whether it would be that with other line ends.
    pub has_returns: bool,
}

impl Kustomization {
    /// Reads a kustomization with any content.
    ///
    /// # Errors
    /// The reason why it is not a kustomization, safe to print.
    pub fn read(text: &str) -> Result<Self, String> {
        let source = Source::parse("", text).map_err(|broken| {
            let problem = broken.problems.into_iter().next();
            problem.map_or_else(String::new, |it| it.message.to_string())
        })?;
        let resources = source.documents.first().and_then(|it| it.get("resources"));
        let items: &[TreeNode] = match resources.map(|it| &it.value) {
            Some(TreeValue::Sequence(items)) => items,
            _ => &[],
        };
        let resource = |node: &TreeNode| Some((node.text()?.to_owned(), node.span.clone()));
        let resources: Vec<(String, Range<usize>)> = items.iter().filter_map(resource).collect();
        let names: Vec<&str> = resources.iter().map(|(name, _)| name.as_str()).collect();
        let ours = template::kustomization(&names);
        let is = |text: &str| ours.as_ref().is_ok_and(|it| it == text);
        let has_returns = text.contains('\r') && is(&text.replace("\r\n", "\n"));
        Ok(Self { is_ours: is(text), has_returns, resources })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Kustomization {
        Kustomization::read(text).unwrap()
    }

    #[test]
    fn knows_its_own() {
        for files in [vec![], vec!["m--a.yaml", "no"]] {
            let ours = read(&template::kustomization(&files).unwrap());
            let names: Vec<&str> = ours.resources.iter().map(|it| it.0.as_str()).collect();
            assert!(ours.is_ours);
            assert_eq!(names, files);
        }
    }

    #[test]
    fn reads_what_somebody_made_of_it() {
        let text = "namePrefix: a-\nresources: [m--a.yaml, {no: name}, \"b\"]\n";
        let edited = read(text);
        let named = edited.resources.iter().map(|(_, at)| &text[at.clone()]);
        assert!(!edited.is_ours);
        assert_eq!(named.collect::<Vec<_>>(), ["m--a.yaml", "\"b\""]);
        assert_eq!(read("resources: *\n".trim_end_matches(" *\n")).resources, []);
        assert!(Kustomization::read("resources: [").is_err());
    }
}
