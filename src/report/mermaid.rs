//! Foreign texts in diagrams of Mermaid's, in which nothing is syntax of Mermaid, Markdown or HTML.

use std::fmt::Write as _;

use crate::diagnostic::escaped;

/// Returns at most `longest` characters of a text for a label: only letters, digits and characters without meaning in
/// Mermaid and HTML stay; all others become character references.
pub fn label(text: &str, longest: usize) -> String {
    let mut label = String::with_capacity(text.len());
    for character in escaped(text, longest).chars() {
        if character.is_ascii_alphanumeric() || " ./:,-()".contains(character) {
            label.push(character);
        } else {
            let _ = write!(label, "#{};", u32::from(character));
        }
    }
    label
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_of_a_label_is_syntax() {
        for (text, shown) in [
            ("east/gw-1: 10.4.0.0/16", "east/gw-1: 10.4.0.0/16"),
            ("\"]; end%%", "#34;#93;#59; end#37;#37;"),
            ("<b>`é`&#1;", "#60;b#62;#96;#233;#96;#38;#35;1#59;"),
            ("a\n\u{202e}b", "a#92;n#92;u#123;202e#125;b"),
            ("a, b, c, d, e, f, (g)-", "a, b, c, d, e, f, (g)-"),
            ("a, b, c, d, e, f, (g)-h", "a, b, c, d, e, f, (g)-#8230;"),
        ] {
            assert_eq!(label(text, 22), shown);
        }
    }
}
