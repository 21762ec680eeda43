//! Tags: the parts of a template that are code. The engine's stack grows with the length of an
//! expression, so that a long one would end the program.

use super::Problem;

/// The longest tag, in bytes.
pub(super) const LIMIT: usize = 4000;

/// Fails if a tag is too long.
pub(super) fn check(text: &str) -> Result<(), Problem> {
    let bytes = text.as_bytes();
    let mut at = 0;
    while let Some(start) = find(bytes, at, |it| matches!(it, b"{{" | b"{%" | b"{#")) {
        let end = match bytes.get(start..start + 2) {
            Some(b"{#") => find(bytes, start + 2, |it| it == b"#}"),
            _ => end(bytes, start + 2),
        };
        let end = end.unwrap_or(bytes.len());
        let is_code = bytes.get(start + 1) != Some(&b'#');
        if is_code && LIMIT < end - start {
            let before = text.get(..start).unwrap_or_default();
            let line = before.matches('\n').count() + 1;
            return Err(Problem::LongTag { line });
        }
        at = end;
    }
    Ok(())
}

fn find(bytes: &[u8], from: usize, is_meant: impl Fn(&[u8]) -> bool) -> Option<usize> {
    let rest = bytes.get(from..)?;
    Some(from + rest.windows(2).position(is_meant)?)
}

/// Returns where a tag ends that has begun before `from`: outside of its strings.
fn end(bytes: &[u8], from: usize) -> Option<usize> {
    let mut quote = None;
    let mut at = from;
    while let Some(&byte) = bytes.get(at) {
        match (quote, byte) {
            (Some(_), b'\\') => at += 1,
            (Some(open), _) if open == byte => quote = None,
            (None, b'"' | b'\'') => quote = Some(byte),
            (None, b'}' | b'%') if bytes.get(at + 1) == Some(&b'}') => return Some(at),
            _ => {}
        }
        at += 1;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_code_is_short() {
        let long = "-".repeat(LIMIT);
        for text in [
            format!("{long}\n{{# {long} #}}{long}"),
            format!("{{{{ '}}}}' }}}}{long}"),
            format!("don't {{{{ a }}}} {long}"),
        ] {
            assert!(check(&text).is_ok(), "{text}");
        }
        for text in [
            format!("{{{{ {long}1 }}}}"),
            format!("{{% if {long}1 %}}"),
            format!("{{{{ '}}}}' ~ {long}1 }}}}"),
            format!("{{{{ \"\\\"}}}}\" ~ {long}1 }}}}"),
            format!("{{{{ {long}"),
        ] {
            assert!(check(&text).is_err(), "{text}");
        }
    }
}
