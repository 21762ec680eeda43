//! Quotable files: which files are quoted, and what is shown of the others.
//!
//! A link or a path in a stranger's repository may lead to a file that is not meant for us, such as
//! a `.env`. Of such a file only the place of a problem is shown: no line, no value, no message of a
//! parser.

use crate::diagnostic::Quotes;
use crate::rules::Finding;
use crate::snapshot::API_VERSION;
use crate::text::shell_word;
use crate::yaml;

/// The versions of our files; each is in a line of its file.
const API_VERSIONS: [&str; 2] = ["kilo.squat.ai/v1alpha1", API_VERSION];

/// Returns the message that replaces a problem of a file that is not quoted.
pub fn withheld(text: &str) -> &'static str {
    let mut lines = text.lines().map(str::trim);
    if text.trim().is_empty() {
        "the file is empty"
    } else if lines.all(|it| it.is_empty() || it.starts_with('#')) {
        "the file has only comments"
    } else {
        "`apiVersion` is missing or unknown, so the text of the file is not shown"
    }
}

/// The remedy for a mesh or a config that is not quoted.
const HOW_TO_SHOW: &str = "begin a mesh with the lines `apiVersion: kilo.squat.ai/v1alpha1` and \
    `kind: ClusterMesh`, and any other file of clustermesh with `apiVersion: kilo-clustermesh.io/v1`";

/// Returns the remedy for a finding about a file with this text that is not quoted. That of a snapshot names only the
/// cluster.
pub fn remedy(finding: &Finding, file: &str, text: &str) -> Option<String> {
    match (finding.quotes, &finding.cluster) {
        (Quotes::FileExceptHelp | Quotes::Nothing, _) => finding.help.clone(),
        (Quotes::File, None) if text.trim().is_empty() => Some(format!(
            "restore it with `git checkout HEAD -- {}`, or {HOW_TO_SHOW}",
            shell_word(file)
        )),
        (Quotes::File, None) => Some(HOW_TO_SHOW.to_owned()),
        (Quotes::File, Some(_)) => None,
    }
}

/// Returns whether a file has one of our formats: it has a line with one of our versions, as YAML
/// or JSON write it.
pub fn is_ours(text: &str) -> bool {
    // No text of YAML or JSON has such a character, but the environment of a process does.
    !text.contains('\0') && text.lines().any(has_version)
}

/// Returns whether clustermesh wrote a file of the rendered tree.
pub fn is_rendered(text: &str) -> bool {
    let text = text.trim_start_matches('\u{feff}');
    text.lines().next() == Some(yaml::HEADER) || is_ours(text)
}

fn has_version(line: &str) -> bool {
    let mut places = API_VERSIONS.iter().flat_map(|version| {
        let places = line.match_indices(version);
        places.map(|(at, _)| (&line[..at], &line[at + version.len()..]))
    });
    places.any(|(before, after)| is_key(before) && is_end(after))
}

/// Returns whether a value begins here that belongs to `apiVersion`.
fn is_key(before: &str) -> bool {
    let before = before.strip_suffix(['"', '\'']).unwrap_or(before);
    let Some(before) = before.trim_end().strip_suffix(':') else {
        return false;
    };
    let before = before.trim_end();
    let before = before.strip_suffix(['"', '\'']).unwrap_or(before);
    let Some(before) = before.strip_suffix("apiVersion") else {
        return false;
    };
    let before = before.strip_suffix(['"', '\'']).unwrap_or(before).trim_end();
    // Also the first field of an item of a list, or of a document.
    before.is_empty() || before.ends_with(['{', ',', '-', '\u{feff}'])
}

fn is_end(after: &str) -> bool {
    let after = after.strip_prefix(['"', '\'']).unwrap_or(after);
    let next = after.chars().next();
    next.is_none_or(|it| it.is_whitespace() || matches!(it, ',' | '}' | ']'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn knows_our_files() {
        for text in [
            "apiVersion: kilo.squat.ai/v1alpha1\nkind: ClusterMesh\n",
            "# x\n---\n\"apiVersion\" : 'kilo-clustermesh.io/v1' # why\n",
            "items:\n  - apiVersion: kilo.squat.ai/v1alpha1\r\n",
            r#"{"kind":"NodeSnapshot","apiVersion":"kilo-clustermesh.io/v1"}"#,
            "{apiVersion: kilo.squat.ai/v1alpha1}",
            "\u{feff}apiVersion: kilo-clustermesh.io/v1",
        ] {
            assert!(is_ours(text), "{text}");
        }
    }

    #[test]
    fn an_empty_file_is_called_so() {
        assert_eq!(withheld("\n \n"), "the file is empty");
        assert_eq!(withheld("# kind: ClusterPolicy\n\n#\n"), "the file has only comments");
        assert!(withheld("# a\nTOKEN=1\n").starts_with("`apiVersion` is missing"));
    }

    #[test]
    fn knows_what_is_not_ours() {
        for text in [
            "",
            "apiVersion: v1\n",
            "apiVersion: kilo.squat.ai/v1alpha10\n",
            "x: kilo.squat.ai/v1alpha1\n",
            "myapiVersion: kilo.squat.ai/v1alpha1\n",
            "# apiVersion: kilo.squat.ai/v1alpha1\n",
            "TOKEN=apiVersion: kilo.squat.ai/v1alpha1\n",
            "A=1\0B=\napiVersion: kilo.squat.ai/v1alpha1\n\0",
            "apiVersion: \"kilo-clustermesh.io/v1beta1\"",
        ] {
            assert!(!is_ours(text), "{text}");
        }
        let rendered = format!("{}\nkind: Kustomization\n", yaml::HEADER);
        assert!(is_rendered(&rendered) && !is_ours(&rendered));
        assert!(!is_rendered("kind: Kustomization\n"));
    }
}
