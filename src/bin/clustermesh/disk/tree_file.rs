//! A file of the rendered tree: who wrote it, and its text. A run opens each file once.

use std::io::{self, Read as _, Seek as _};
use std::path::Path;
use std::sync::Arc;

use clustermesh::yaml;

use super::known_files::{FileKey, TreeFile, has_header, problem};
use super::read::{bounded_text, open_regular, text_of};
use super::{Roots, holds};

pub(crate) use super::known_files::FileText;
pub(super) use super::known_files::Writer;

/// The largest rendered file that is read, in bytes: what GitHub would take.
pub(crate) const MANIFEST_LIMIT: u64 = 100 << 20;

/// Returns the text of a file of the tree, which must not be a link.
pub(crate) fn read(roots: &Roots, path: &Path) -> FileText {
    file(roots, path).map_err(|it| problem(&it))?.text
}

/// Returns whether clustermesh generated a file, so that a render may replace or remove it.
pub(crate) fn is_generated(roots: &Roots, path: &Path) -> bool {
    file(roots, path).is_ok_and(|it| it.writer == Writer::Generated)
}

/// Returns who wrote a file of the tree; nothing if it has the wanted text.
pub(super) fn writer_unless(
    roots: &Roots,
    path: &Path,
    wanted: Option<&Arc<str>>,
) -> anyhow::Result<Option<Writer>> {
    let files = roots.known_files();
    let key = key(roots, path);
    if let Some(TreeFile { writer, text }) = files.get(&key) {
        let is_wanted = wanted.is_some_and(|it| text.as_ref() == Ok(it));
        return Ok((!is_wanted).then_some(writer));
    }
    let (mut file, metadata) = open_regular(path)?;
    let head = head(&mut file)?;
    let writer = Writer::of(&head);
    let alike = wanted.filter(|text| text.len() as u64 == metadata.len());
    if let Some(wanted) = alike
        && let Some(rest) = wanted.as_bytes().strip_prefix(head.as_slice())
        && holds(&mut file, rest)?
    {
        let text = Ok(Arc::clone(wanted));
        files.add(key, TreeFile { writer, text });
        return Ok(None);
    }
    // The rest of a file of others is not needed.
    if writer == Writer::Generated {
        file.rewind()?;
        let text = bounded_text(&mut file, metadata.len(), MANIFEST_LIMIT);
        files.add_read(key, writer, text);
    }
    Ok(Some(writer))
}

fn key(roots: &Roots, path: &Path) -> FileKey {
    let object = roots.revision().and_then(|it| it.object(path));
    object.map_or_else(|| FileKey::Path(path.into()), FileKey::Object)
}

fn file(roots: &Roots, path: &Path) -> anyhow::Result<TreeFile> {
    let files = roots.known_files();
    let key = key(roots, path);
    if let Some(known) = files.get(&key) {
        return Ok(known);
    }
    let (head, text) = if let Some(revision) = roots.revision() {
        let bytes = revision.read(path, MANIFEST_LIMIT)?;
        (head(&mut bytes.as_slice())?, text_of(bytes))
    } else {
        let (mut file, metadata) = open_regular(path)?;
        let head = head(&mut file)?;
        file.rewind()?;
        let text = bounded_text(&mut file, metadata.len(), MANIFEST_LIMIT);
        (head, text)
    };
    Ok(files.add_read(key, Writer::of(&head), text))
}

/// Returns whether a file is ours, as far as it was written.
pub(super) fn is_begun(path: &Path) -> anyhow::Result<bool> {
    let head = head(&mut open_regular(path)?.0)?;
    Ok(has_header(&head) || yaml::HEADER.as_bytes().starts_with(&head))
}

/// Reads as much of a file as shows who wrote it.
fn head(file: &mut impl io::Read) -> io::Result<Vec<u8>> {
    let mut head = Vec::with_capacity(yaml::HEADER.len() + 2);
    file.by_ref().take(yaml::HEADER.len() as u64 + 2).read_to_end(&mut head)?;
    Ok(head)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use tempfile::TempDir;

    use super::*;

    #[test]
    fn a_file_is_read_once() {
        let folder = TempDir::new().unwrap();
        let roots = Roots::within(folder.path());
        let wanted: Arc<str> = Arc::from(format!("{}\nwanted", yaml::HEADER));
        let other = format!("{}\nother\n", yaml::HEADER);
        let files = [("a", &*wanted), ("b", &other), ("c", &other)];
        let paths = files.map(|(name, text)| {
            let path = folder.path().join(name);
            fs::write(&path, text).unwrap();
            path
        });
        let broken = folder.path().join("d");
        fs::write(&broken, [yaml::HEADER.as_bytes(), b"\n\xff"].concat()).unwrap();
        let writer = |path: &Path| writer_unless(&roots, path, Some(&wanted)).unwrap();
        let all = || (paths.each_ref().map(|it| writer(it)), writer(&broken));
        let generated = Some(Writer::Generated);
        assert_eq!(all(), ([None, generated, generated], generated));
        folder.close().unwrap();
        assert_eq!(all(), ([None, generated, generated], generated));
        let [a, b, c] = paths.map(|it| read(&roots, &it).unwrap());
        assert!(Arc::ptr_eq(&a, &wanted) && Arc::ptr_eq(&b, &c));
        assert_eq!(*b, *other);
        let problem = read(&roots, &broken).unwrap_err();
        insta::assert_snapshot!(problem, @"it is not UTF-8: the first invalid byte is at offset 41");
    }
}
