//! Objects of a repository, from one `git cat-file --batch` that runs as long as something is read.
//!
//! Names are lines of its standard input, so they can be no options.

use std::fmt;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::process::{Child, ChildStdin, ChildStdout};
use std::str::FromStr;

use anyhow::{Context as _, bail};

use super::{reason, started};

/// The longest line before an object, in bytes: the name that was asked for, and a few words.
const HEADER: u64 = 8192;

/// The name of an object: a SHA-1 or SHA-256 in hexadecimal.
#[derive(Clone, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(crate) struct ObjectId(String);

#[derive(Debug)]
pub(super) struct GitObject {
    pub(super) id: ObjectId,
    pub(super) content: Vec<u8>,
}

/// The objects of a repository.
#[derive(Debug, Default)]
pub(super) struct Objects {
    batch: Option<Batch>,
}

/// A program that prints the objects that it is asked for.
#[derive(Debug)]
struct Batch {
    child: Child,
    questions: ChildStdin,
    answers: BufReader<ChildStdout>,
}

/// The line before an object.
#[derive(Debug, Eq, PartialEq)]
enum Header {
    Found { id: ObjectId, size: u64 },
    Missing,
}

impl ObjectId {
    /// Returns the name of this many bytes.
    pub(super) fn from_bytes(bytes: &[u8]) -> Self {
        let digits = bytes.iter().flat_map(|byte| [byte >> 4, byte & 15]);
        Self(digits.filter_map(|it| char::from_digit(it.into(), 16)).collect())
    }

    /// Returns how many bytes it has, which is the same in all of a repository.
    pub(super) fn bytes(&self) -> usize {
        self.0.len() / 2
    }

    /// Returns its beginning, as people write it.
    pub(crate) fn short(&self) -> &str {
        self.0.get(..10).unwrap_or(&self.0)
    }

    pub(super) fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for ObjectId {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        let is_hex = |it: u8| it.is_ascii_digit() || (b'a'..=b'f').contains(&it);
        let is_id = [40, 64].contains(&text.len()) && text.bytes().all(is_hex);
        is_id.then(|| Self(text.to_owned())).ok_or(())
    }
}

impl fmt::Display for ObjectId {
    fn fmt(&self, formatter: &mut fmt::Formatter) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

impl Objects {
    /// Returns the object of a name, which is one line, if there is one.
    ///
    /// # Errors
    /// It is larger than `limit` bytes, or git fails.
    pub(super) fn read(&mut self, name: &str, limit: u64) -> anyhow::Result<Option<GitObject>> {
        let batch = match self.batch.take() {
            Some(batch) => batch,
            None => Batch::start()?,
        };
        let batch = self.batch.insert(batch);
        let object = batch.read(name, limit);
        if object.is_err() {
            // The rest of its answer would be taken for the next one.
            self.batch = None;
        }
        object
    }
}

impl Batch {
    fn start() -> anyhow::Result<Self> {
        let mut child = started(&["cat-file", "--batch"])?;
        let pipes = child.stdin.take().zip(child.stdout.take());
        let (questions, answers) = pipes.context("`git` has no pipes")?;
        Ok(Self { child, questions, answers: BufReader::new(answers) })
    }

    fn read(&mut self, name: &str, limit: u64) -> anyhow::Result<Option<GitObject>> {
        let asked = self.questions.write_all(format!("{name}\n").as_bytes());
        let mut line = Vec::new();
        if asked.is_ok() {
            let mut answers = (&mut self.answers).take(HEADER);
            answers.read_until(b'\n', &mut line)?;
        }
        if line.pop() != Some(b'\n') {
            bail!(self.why_ended());
        }
        let (id, size) = match Header::parse(&line)? {
            Header::Missing => return Ok(None),
            Header::Found { id, size } => (id, size),
        };
        if limit < size {
            bail!("it is larger than the limit of {limit} bytes");
        }
        let mut content = Vec::with_capacity(usize::try_from(size)?.saturating_add(1));
        // A line ends it.
        let mut answers = (&mut self.answers).take(size.saturating_add(1));
        answers.read_to_end(&mut content)?;
        if content.len() as u64 != size.saturating_add(1) || content.pop() != Some(b'\n') {
            bail!(self.why_ended());
        }
        Ok(Some(GitObject { id, content }))
    }

    /// Returns why git ended instead of printing an object.
    fn why_ended(&mut self) -> String {
        // It may be that only its output has ended.
        let _ = self.child.kill();
        let mut stderr = Vec::new();
        if let Some(pipe) = self.child.stderr.take() {
            // Without a reason there is another message.
            let _ = pipe.take(HEADER).read_to_end(&mut stderr);
        }
        if stderr.is_empty() {
            return "`git cat-file` ended unexpectedly; run `git fsck`".to_owned();
        }
        reason(&stderr)
    }
}

impl Drop for Batch {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Header {
    fn parse(line: &[u8]) -> anyhow::Result<Self> {
        let line = String::from_utf8_lossy(line);
        let words: Vec<&str> = line.split(' ').collect();
        if let [id, _, size] = words.as_slice()
            && let (Ok(id), Ok(size)) = (id.parse(), size.parse())
        {
            return Ok(Self::Found { id, size });
        }
        match words.last() {
            Some(&"missing") => Ok(Self::Missing),
            Some(&"ambiguous") => bail!("it is the prefix of several object names"),
            _ => bail!("`git cat-file` printed unexpected output"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_cannot_look_like_an_object() {
        let id = "0123456789abcdef0123456789abcdef01234567";
        let found = Header::parse(format!("{id} blob 12").as_bytes()).unwrap();
        let expected = Header::Found { id: id.parse().unwrap(), size: 12 };
        assert_eq!(found, expected);
        for line in [
            format!("{id} missing"),
            format!("{id} blob 12 missing"),
            format!("{id} blob missing"),
            "a missing".to_owned(),
            " missing".to_owned(),
        ] {
            assert_eq!(Header::parse(line.as_bytes()).unwrap(), Header::Missing);
        }
        for line in [
            "0123 ambiguous",
            "",
            "a blob 12",
            "HEAD: loop 12",
            &format!("{id} blob -1"),
            &format!("{} blob 1", id.to_uppercase()),
        ] {
            assert!(Header::parse(line.as_bytes()).is_err(), "{line}");
        }
    }
}
