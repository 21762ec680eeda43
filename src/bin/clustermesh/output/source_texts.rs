//! The files that were read, for the results that point into them.

use std::env;

use clustermesh::document::Source;
use clustermesh::results::repository::Repository;
use clustermesh::results::shown_source::ShownSource;
use clustermesh::results::source_texts::SourceTexts;

use crate::files::ShownFiles;
use crate::settings::WorkingRepository;

impl SourceTexts for ShownFiles {
    fn get(&self, name: &str) -> Option<&ShownSource> {
        self.get(name)
    }

    fn read(&self) -> Vec<&Source> {
        self.read().collect()
    }

    /// Returns the repository around the working folder. Outside of one, it is the folder itself.
    fn repository(&self) -> Repository {
        let here = env::current_dir().unwrap_or_default();
        let root = WorkingRepository::default().repository();
        Repository::new(root.unwrap_or_else(|| here.clone()), here)
    }
}
