//! Foreign texts in diagrams of Mermaid's, in which nothing is syntax of Mermaid, Markdown or HTML.

use std::fmt::Write as _;

/// Returns a text for a label, of at most `longest` characters: only letters, digits and characters without
/// meaning in Mermaid and HTML are kept; all others become character references.
pub fn label(text: &str, longest: usize) -> String {
    let mut label = String::with_capacity(text.len());
    for (count, character) in text.chars().enumerate() {
        if count == longest {
            label.push('…');
            break;
        }
        if character.is_ascii_alphanumeric() || " ./:,-()".contains(character) {
            label.push(character);
        } else if character.is_control() {
            label.push(' ');
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
            ("\"]; end\n%%", "#34;#93;#59; end #37;#37;"),
            ("<b>`é`&#1;", "#60;b#62;#96;#233;#96;#38;#35;1#59;"),
            ("a, b, c, d, e, f, (g)-", "a, b, c, d, e, f, (g)-"),
            ("a, b, c, d, e, f, (g)-h", "a, b, c, d, e, f, (g)-…"),
        ] {
            assert_eq!(label(text, 22), shown);
        }
    }
}
