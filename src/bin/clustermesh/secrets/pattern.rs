//! Redaction by pattern: anything that looks like a secret is removed from texts of unknown content.

/// The replacement.
const HIDDEN: &str = "[hidden]";

/// The beginning of a JSON Web Token: `{"` in base64.
const JWT: &str = "eyJ";

/// The shortest text after it that makes one.
const JWT_LENGTH: usize = 12;

/// The beginnings of the first and the last line of a key or certificate in PEM.
const PEM: [&str; 2] = ["-----BEGIN ", "-----END "];

/// Returns a text without keys in PEM, JSON Web Tokens, and what follows the word Bearer.
pub(super) fn scrubbed(text: &str) -> String {
    without_bearers(&without_jwts(&without_pem(text)))
}

fn without_pem(text: &str) -> String {
    let [begin, end] = PEM;
    let (mut scrubbed, mut rest) = (String::new(), text);
    while let Some((before, block)) = rest.split_once(begin) {
        scrubbed.push_str(before);
        scrubbed.push_str(HIDDEN);
        // One without an end goes on to the end.
        let after = block.split_once(end).map_or("", |(_, after)| after);
        rest = after.split_once("-----").map_or(after, |(_, rest)| rest);
    }
    scrubbed + rest
}

fn without_jwts(text: &str) -> String {
    let (mut scrubbed, mut rest) = (String::new(), text);
    while let Some((before, after)) = rest.split_once(JWT) {
        scrubbed.push_str(before);
        let (token, after) = split_token(after);
        if token.len() < JWT_LENGTH {
            scrubbed.push_str(JWT);
            scrubbed.push_str(token);
        } else {
            scrubbed.push_str(HIDDEN);
        }
        rest = after;
    }
    scrubbed + rest
}

fn without_bearers(text: &str) -> String {
    let lowercase = text.to_ascii_lowercase();
    let (mut scrubbed, mut done) = (String::new(), 0);
    for (at, word) in lowercase.match_indices("bearer") {
        let after = at + word.len();
        let gap = text[after..].len() - text[after..].trim_start_matches([' ', '\t', ':']).len();
        let (token, _) = split_token(&text[after + gap..]);
        // "The bearer token has expired" is not a secret.
        let is_word = token.bytes().all(|it| it.is_ascii_lowercase());
        if at < done || gap == 0 || is_word {
            continue;
        }
        scrubbed.push_str(&text[done..after + gap]);
        scrubbed.push_str(HIDDEN);
        done = after + gap + token.len();
    }
    scrubbed + &text[done..]
}

/// Splits a text after the characters that a token may have.
fn split_token(text: &str) -> (&str, &str) {
    let is_token = |it: char| it.is_ascii_alphanumeric() || "-._~+/=".contains(it);
    text.split_at(text.find(|it| !is_token(it)).unwrap_or(text.len()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_secret_is_left() {
        insta::assert_snapshot!(scrubbed("the bearer token has expired, Bearer: yes"), @"the bearer token has expired, Bearer: yes");
        insta::assert_snapshot!(scrubbed("curl -H 'Authorization: Bearer abc-1.2~3+/=' -v, BEARER  X1: no"), @"curl -H 'Authorization: Bearer [hidden]' -v, BEARER  [hidden]: no");
        insta::assert_snapshot!(scrubbed("token=eyJhbGciOiJub25lIn0.eyJzdWIiOiJhIn0. was 'eyJ'"), @"token=[hidden] was 'eyJ'");
        insta::assert_snapshot!(scrubbed("a -----BEGIN RSA PRIVATE KEY-----\nMII\n-----END RSA PRIVATE KEY----- b -----BEGIN X-----\nMII"), @"a [hidden] b [hidden]");
    }
}
