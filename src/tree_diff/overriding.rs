//! Overriding: hidden files that change what Flux or Argo CD delivers from a folder.

/// A file that Flux or Argo CD follows, and what it changes.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Overriding<'a> {
    /// Argo CD merges it into the source of every Application that has its folder as path.
    Source,
    /// Argo CD merges it into the source of the Application of this name.
    SourceOf(&'a str),
    /// Flux leaves out what matches its patterns.
    Ignore,
}

impl<'a> Overriding<'a> {
    /// The file of patterns that Flux looks for in every folder of a repository.
    pub const IGNORE: &'static str = ".sourceignore";

    /// Returns what a file of this name changes, if anything.
    pub fn from_name(name: &'a str) -> Option<Self> {
        if name == Self::IGNORE {
            return Some(Self::Ignore);
        }
        let rest = name.strip_prefix(".argocd-source")?;
        let application = rest.strip_suffix(".yaml")?;
        match application.strip_prefix('-') {
            Some(application) => Some(Self::SourceOf(application)),
            None => application.is_empty().then_some(Self::Source),
        }
    }
}
