//! Sites: where findings show up for those who look at a repository from outside.

use std::ops::Range;

use clustermesh::diagnostic::Label;
use clustermesh::document::{Position, Source, TreeNode, TreeValue};
use clustermesh::place::Place;
use clustermesh::rules::Finding;

use super::repository::Repository;
use crate::files::ShownFiles;

/// The name for a file without a name.
const NAMELESS: &str = "mesh.yaml";

/// A piece of a file.
pub(super) struct RepositorySite<'a> {
    /// The file as seen from the root of the repository, with slashes.
    pub(super) path: String,
    /// From where to where, the end being the first character after; none for the whole file.
    pub(super) positions: Option<Range<Position>>,
    /// A few words for what is there; may be empty.
    pub(super) label: &'a str,
}

/// The places of findings as sites.
pub(super) struct RepositorySites<'a> {
    files: &'a ShownFiles,
    repository: Repository,
}

impl<'a> RepositorySites<'a> {
    /// Returns the sites in these files.
    pub(super) fn new(files: &'a ShownFiles) -> Self {
        Self {
            files,
            repository: Repository::around(),
        }
    }

    /// Returns where a finding is first of all. One about a cluster as a whole is where a mesh
    /// names it, and any other one where people would begin to look.
    pub(super) fn first<'b>(&self, finding: &'b Finding) -> RepositorySite<'b> {
        if let Some(label) = finding.labels.first() {
            return self.site(&label.place, &label.text);
        }
        if let Some(place) = self.entry(finding.cluster.as_deref()) {
            return self.site(&place, "");
        }
        let file = self.files.read().next();
        let name = file.map_or(NAMELESS, |source| &source.name);
        RepositorySite {
            path: self.repository.path(name),
            positions: None,
            label: "",
        }
    }

    /// Returns where else it is.
    pub(super) fn further<'b>(
        &self,
        finding: &'b Finding,
    ) -> impl Iterator<Item = RepositorySite<'b>> {
        let labels = finding.labels.iter().skip(1);
        labels.map(|Label { place, text }| self.site(place, text))
    }

    fn site<'b>(&self, place: &Place, label: &'b str) -> RepositorySite<'b> {
        RepositorySite {
            path: self.repository.path(&place.source),
            positions: self.files.positions(place),
            label,
        }
    }

    /// Returns where a mesh names a cluster.
    fn entry(&self, cluster: Option<&str>) -> Option<Place> {
        let cluster = cluster?;
        let mut sources = self.files.read();
        sources.find_map(|source| entry(source, cluster))
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
