//! Folders of others. A mark of one counts only with its content: an empty file would hide all controls beside it.

use std::ffi::{OsStr, OsString};
use std::path::Path;

use clustermesh::document::{Source, TreeNode, TreeValue};
use clustermesh::mesh;

use super::file_name::is_data;
use super::{BYTES, ControlSearch, PARSED};
use crate::disk::{self, EntryType};
use crate::input_file::{self, MESH_LIMIT};

/// The most bytes that are read of a file whose beginning is enough.
const SHORT: u64 = 4096;

/// The beginning of a `CACHEDIR.TAG`.
const CACHE: &str = "Signature: 8a477f597d28d172789f06886806bc55";

impl ControlSearch<'_> {
    /// Returns whether a folder has files of others: a mesh that is not read, another repository, or a cache. The root of
    /// our repository has a `.git`, too.
    pub(super) fn is_foreign(
        &mut self,
        folder: &Path,
        entries: &[(OsString, EntryType)],
        is_below: bool,
    ) -> bool {
        let plain = input_file::plain(folder);
        let is_ours = self.settings.meshes.value.iter().any(|it| {
            let mesh = input_file::plain(it);
            mesh.parent() == Some(&plain)
        });
        !is_ours && entries.iter().any(|(name, _)| self.is_mark(folder, name, is_below))
    }

    fn is_mark(&mut self, folder: &Path, name: &OsStr, is_below: bool) -> bool {
        let path = folder.join(name);
        match name.to_str() {
            Some("mesh.yaml" | "meshes") => self.has_mesh(&path),
            Some("clustermesh.yaml") => self.names_mesh(folder, &path),
            Some("CACHEDIR.TAG") => self.begins(&path, CACHE),
            Some(".git") if is_below => {
                matches!(disk::is_there(&self.roots, &path.join("HEAD")), Ok(true))
                    || self.begins(&path, "gitdir:")
            }
            _ => false,
        }
    }

    /// Returns whether a file, or a file of a folder, has a mesh with clusters.
    fn has_mesh(&mut self, path: &Path) -> bool {
        if !matches!(disk::is_folder(&self.roots, path), Ok(true)) {
            return self.is_mesh(path);
        }
        let entries = disk::entries(&self.roots, path).unwrap_or_default();
        let mut files = entries.iter().map(|it| path.join(&it.0)).filter(|it| is_data(it));
        files.any(|it| self.is_mesh(&it))
    }

    fn is_mesh(&mut self, file: &Path) -> bool {
        let Some(text) = self.text(file, MESH_LIMIT).filter(|it| it.contains("ClusterMesh")) else {
            return false;
        };
        self.parsed = self.parsed.saturating_add(text.len());
        if PARSED < self.parsed {
            return true;
        }
        let source = Source::parse(input_file::name(file), text);
        source.is_ok_and(|it| !mesh::read(&[it]).named.is_empty())
    }

    /// Returns whether a config names a mesh. Without that, its mesh is beside it.
    fn names_mesh(&mut self, folder: &Path, config: &Path) -> bool {
        let Some(text) = self.text(config, SHORT * 16) else {
            return false;
        };
        let Ok(source) = Source::parse(input_file::name(config), text) else {
            return false;
        };
        let meshes = source.documents.iter().find_map(|it| it.get("meshes"));
        let Some(TreeNode { value: TreeValue::Sequence(meshes), .. }) = meshes else {
            return false;
        };
        meshes.iter().filter_map(TreeNode::text).any(|it| self.has_mesh(&folder.join(it)))
    }

    fn begins(&mut self, file: &Path, beginning: &str) -> bool {
        self.text(file, SHORT).is_some_and(|it| it.starts_with(beginning))
    }

    fn text(&mut self, file: &Path, limit: u64) -> Option<String> {
        let text = disk::read_text(&self.roots, file, limit).ok().filter(|_| self.read <= BYTES)?;
        self.read = self.read.saturating_add(text.len());
        Some(text)
    }
}
