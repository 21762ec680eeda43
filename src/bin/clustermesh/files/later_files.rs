//! Later files: files that are read only when they are shown, by name.

use std::cell::OnceCell;
use std::sync::Arc;

use super::LaterFile;

/// Files by name. There may be one for each folder and each source, and mostly none of them is shown, so they
/// are sorted only when the first is.
#[derive(Default)]
pub(crate) struct LaterFiles {
    files: Vec<(Arc<str>, LaterFile)>,
    /// The places of the files, by name.
    order: OnceCell<Vec<usize>>,
}

impl LaterFiles {
    /// Adds a file. It replaces one of the same name.
    pub(crate) fn add(&mut self, name: Arc<str>, file: LaterFile) {
        self.order.take();
        self.files.push((name, file));
    }

    /// Adds all of others.
    pub(super) fn append(&mut self, mut others: Self) {
        self.order.take();
        self.files.append(&mut others.files);
    }

    /// Returns the file of a name.
    pub(super) fn get(&self, name: &str) -> Option<&LaterFile> {
        let name_of = |place: usize| self.files.get(place).map(|it| &*it.0);
        let order = self.order.get_or_init(|| {
            let mut order: Vec<usize> = (0..self.files.len()).collect();
            order.sort_by_key(|it| name_of(*it));
            order
        });
        let end = order.partition_point(|it| name_of(*it) <= Some(name));
        let (found, file) = self.files.get(*order.get(end.checked_sub(1)?)?)?;
        (&**found == name).then_some(file)
    }
}

impl FromIterator<(Arc<str>, LaterFile)> for LaterFiles {
    fn from_iter<I: IntoIterator<Item = (Arc<str>, LaterFile)>>(files: I) -> Self {
        Self { files: files.into_iter().collect(), order: OnceCell::new() }
    }
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;
    use crate::disk::Roots;

    fn file(path: &str) -> LaterFile {
        LaterFile::json(PathBuf::from(path), &Roots::anywhere())
    }

    #[test]
    fn a_later_file_replaces_an_earlier_one_of_its_name() {
        let files = [("b", "1"), ("a", "2"), ("b", "3")];
        let mut files: LaterFiles =
            files.into_iter().map(|(name, path)| (Arc::from(name), file(path))).collect();
        let path = |files: &LaterFiles, name: &str| {
            let file = files.get(name)?;
            Some(file.path.to_string_lossy().into_owned())
        };
        assert_eq!(path(&files, "a").as_deref(), Some("2"));
        assert_eq!(path(&files, "b").as_deref(), Some("3"));
        assert_eq!(path(&files, "c"), None);
        files.add(Arc::from("c"), file("4"));
        files.append([(Arc::from("a"), file("5"))].into_iter().collect());
        assert_eq!(path(&files, "a").as_deref(), Some("5"));
        assert_eq!(path(&files, "c").as_deref(), Some("4"));
        assert_eq!(path(&files, ""), None);
    }
}
