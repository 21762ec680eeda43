//! Places of findings in a repository, for services that show its files.

use std::ops::Range;

use crate::diagnostic::Label;
use crate::document::{Position, Source, TreeNode, TreeValue};
use crate::place::Place;
use crate::rules::Finding;

use crate::results::repository::Repository;
use crate::results::source_texts::SourceTexts;

/// The name for a file without a name.
const NAMELESS: &str = "mesh.yaml";

/// A place in a file of the repository.
pub(super) struct RepositoryPlace<'a> {
    /// The file as seen from the root of the repository, with slashes.
    pub(super) path: String,
    /// From where to where, the end being the first character after; none for the whole file.
    pub(super) positions: Option<Range<Position>>,
    /// A few words for what is there; may be empty.
    pub(super) label: &'a str,
}

/// The places of findings in a repository.
pub(super) struct RepositoryPlaces<'a> {
    files: &'a dyn SourceTexts,
    repository: Repository,
}

impl<'a> RepositoryPlaces<'a> {
    /// Returns the places in these files.
    pub(super) fn new(files: &'a dyn SourceTexts) -> Self {
        Self { files, repository: files.repository() }
    }

    /// Returns where a finding is first of all. One about a cluster as a whole is where a mesh
    /// names it, and any other one where people would begin to look.
    pub(super) fn first<'b>(&self, finding: &'b Finding) -> RepositoryPlace<'b> {
        if let Some(label) = finding.labels.first() {
            return self.place(&label.place, &label.text);
        }
        if let Some(place) = self.entry(finding.cluster.as_deref()) {
            return self.place(&place, "");
        }
        let files = self.files.read();
        let name = files.first().map_or(NAMELESS, |source| &source.name);
        RepositoryPlace { path: self.repository.path(name), positions: None, label: "" }
    }

    /// Returns where else it is.
    pub(super) fn further<'b>(
        &self,
        finding: &'b Finding,
    ) -> impl Iterator<Item = RepositoryPlace<'b>> {
        let labels = finding.labels.iter().skip(1);
        labels.map(|Label { place, text }| self.place(place, text))
    }

    /// Returns its places that a text corrects, with the text.
    pub(super) fn corrected<'b>(
        &self,
        finding: &'b Finding,
    ) -> impl Iterator<Item = (RepositoryPlace<'b>, &'b str)> {
        let labels = finding.labels.iter();
        labels.filter_map(|it| Some((self.place(&it.place, ""), finding.replacement_of(it)?)))
    }

    fn place<'b>(&self, place: &Place, label: &'b str) -> RepositoryPlace<'b> {
        RepositoryPlace {
            path: self.repository.path(&place.source),
            positions: self.files.positions(place),
            label,
        }
    }

    /// Returns where a mesh names a cluster.
    fn entry(&self, cluster: Option<&str>) -> Option<Place> {
        let cluster = cluster?;
        self.files.read().into_iter().find_map(|source| entry(source, cluster))
    }
}

fn entry(source: &Source, cluster: &str) -> Option<Place> {
    let mut documents = source.documents.iter().enumerate();
    documents.find_map(|(index, document)| {
        let TreeValue::Sequence(entries) = &document.get("spec")?.get("clusters")?.value else {
            return None;
        };
        let is_meant =
            |entry: &TreeNode| entry.get("name").and_then(TreeNode::text) == Some(cluster);
        let position = entries.iter().position(is_meant)?;
        let place = Place::document(&source.name, index);
        let clusters = place.key("spec").key("clusters");
        Some(clusters.index(position).key("name"))
    })
}
