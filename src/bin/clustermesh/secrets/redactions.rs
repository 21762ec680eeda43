//! Hidden texts: secrets that no message from any source may show.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use kube::config::{AuthInfo, ExecConfig};
use serde_json::Value;

use super::pattern::scrubbed;

/// The shortest text that counts as a secret; shorter ones are in every message.
const SHORTEST: usize = 6;

/// The shortest value of a plugin's variable that may be a secret, regardless of the variable's
/// name.
const SHORTEST_VALUE: usize = 8;

/// The shortest secret that nothing but a secret has in it.
const UNMISTAKABLE: usize = 12;

/// Parts of names that mark a secret.
const NAMES: [&str; 11] =
    ["auth", "bearer", "cookie", "cred", "jwt", "key", "pass", "pwd", "secret", "session", "token"];

/// Characters around the words of a command line.
const QUOTES: [char; 4] = ['\'', '"', ',', ';'];

/// Texts that no message may show.
#[derive(Clone, Default)]
pub(crate) struct Redactions {
    /// The longest first: a text in another may not split it.
    texts: Vec<String>,
    /// Texts that are certainly credentials.
    credentials: Vec<String>,
}

impl Redactions {
    /// Returns what is secret of a user. Its own way to be written is the only one that shows it.
    pub(crate) fn from_user(user: &AuthInfo) -> Self {
        let mut hidden = Self::default();
        let written = serde_json::to_value(user).unwrap_or_default();
        let text = |field: &str| written.get(field).and_then(Value::as_str);
        for field in ["token", "password", "client-key-data"] {
            hidden.add(text(field).unwrap_or_default());
        }
        if let (Some(name), Some(password)) = (text("username"), text("password")) {
            hidden.add(&STANDARD.encode(format!("{name}:{password}")));
        }
        if let Some(provider) = &user.auth_provider {
            for (name, value) in &provider.config {
                if is_secret(name) {
                    hidden.add(value);
                }
            }
        }
        if let Some(plugin) = &user.exec {
            hidden.suspect_plugin(plugin);
        }
        hidden
    }

    /// Hides a credential.
    pub(crate) fn add(&mut self, credential: &str) {
        let credential = credential.trim();
        self.suspect(credential);
        if UNMISTAKABLE <= credential.len() {
            self.credentials.push(credential.to_owned());
        }
    }

    /// Hides what lets us in to a proxy.
    pub(crate) fn add_userinfo(&mut self, userinfo: &str) {
        self.add(userinfo);
        if let Some((_, password)) = userinfo.split_once(':') {
            self.add(password);
        }
    }

    /// Returns whether credentials are in a decoded text that has no use for them.
    pub(crate) fn are_in(&self, text: &str) -> bool {
        self.credentials.iter().any(|it| text.contains(it))
    }

    /// Returns whether credentials are in any text of a value.
    pub(crate) fn are_within(&self, value: &Value) -> bool {
        match value {
            Value::String(text) => self.are_in(text),
            Value::Array(items) => items.iter().any(|it| self.are_within(it)),
            Value::Object(fields) => {
                fields.iter().any(|(key, value)| self.are_in(key) || self.are_within(value))
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => false,
        }
    }

    /// Returns `text` without them, and without what looks as if it were one.
    pub(crate) fn hide(&self, text: &str) -> String {
        let hide = |text: String, secret: &String| text.replace(secret.as_str(), "[hidden]");
        scrubbed(&self.texts.iter().fold(text.to_owned(), hide))
    }

    /// Hides what may be a secret.
    fn suspect(&mut self, text: &str) {
        let text = text.trim();
        if SHORTEST <= text.len() {
            self.texts.push(text.to_owned());
            self.texts.sort_by_key(|it| std::cmp::Reverse(it.len()));
        }
    }

    /// Hides what a plugin is given that may be a secret.
    fn suspect_plugin(&mut self, plugin: &ExecConfig) {
        for variable in plugin.env.iter().flatten() {
            if let (Some(name), Some(value)) = (variable.get("name"), variable.get("value"))
                && (is_secret(name) || (SHORTEST_VALUE <= value.len() && !is_plain(value)))
            {
                self.suspect(value);
            }
        }
        // A whole command line where only the program belongs is a common mistake.
        self.suspect_named(plugin.command.iter().flat_map(|it| it.split_whitespace()));
        let arguments = || plugin.args.iter().flatten().map(String::as_str);
        self.suspect_named(arguments());
        // `-H "Authorization: Bearer …"`, and what a shell is given.
        self.suspect_named(arguments().flat_map(str::split_whitespace));
    }

    /// Hides values after the name of a secret: `--token=…`, `--token …`, `Authorization: …`.
    fn suspect_named<'a>(&mut self, arguments: impl Iterator<Item = &'a str>) {
        let mut follows = false;
        for argument in arguments {
            let argument = argument.trim_matches(QUOTES);
            let named = argument.split_once(['=', ':']).filter(|(name, _)| is_secret(name));
            follows = match named {
                Some((_, value)) => {
                    self.suspect(value.trim_matches(QUOTES));
                    value.is_empty()
                }
                None if follows && is_scheme(argument) => true,
                None if follows => {
                    self.suspect(argument);
                    false
                }
                None => argument.starts_with('-') && is_secret(argument),
            };
        }
    }
}

fn is_secret(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    NAMES.iter().any(|it| name.contains(it))
}

/// Returns whether a value is words or a path, which messages may need.
fn is_plain(value: &str) -> bool {
    let is_path = ["/", "./", "../", "~/"].iter().any(|it| value.starts_with(it));
    let is_word = |it: u8| it.is_ascii_alphabetic() || b"-_. ".contains(&it);
    (is_path && !value.contains(['+', '='])) || value.bytes().all(is_word)
}

/// Returns whether a word comes before the secret in an `Authorization`.
fn is_scheme(word: &str) -> bool {
    ["basic", "bearer", "token"].contains(&word.to_ascii_lowercase().as_str())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_secret_is_shown() {
        let user: AuthInfo = serde_json::from_value(serde_json::json!({
            "username": "bob",
            "password": "hunter22",
            "token": "eyJhbGciOi",
            "exec": {
                "args": ["get-token", "--oidc-client-secret=s3cr3ts", "--token", "abcdefg", "plain"],
                "env": [{ "name": "CLIENT_KEY", "value": "zyxwvu" }, { "name": "HOME", "value": "/home/bob" }],
            },
        }))
        .unwrap();
        let text = "hunter22 eyJhbGciOi s3cr3ts abcdefg plain zyxwvu /home/bob Ym9iOmh1bnRlcjIy";
        insta::assert_snapshot!(Redactions::from_user(&user).hide(text), @"[hidden] [hidden] [hidden] [hidden] plain [hidden] /home/bob [hidden]");
    }

    #[test]
    fn no_secret_of_a_plugin_is_shown() {
        let user: AuthInfo = serde_json::from_value(serde_json::json!({
            "exec": {
                "args": [
                    "-H", "Authorization: Bearer sesame1", "-H", "Cookie: sesame2",
                    "-c", "export PGPASS=sesame3; login --pwd 'sesame4' --region eu-west-1",
                    "--credentials", "sesame5 with spaces",
                ],
                "env": [
                    { "name": "X", "value": "sesame-6" },
                    { "name": "PROFILE", "value": "production" },
                    { "name": "FILE", "value": "/home/bob/7" },
                ],
            },
        }))
        .unwrap();
        let text = "sesame1 sesame2 sesame3 sesame4 eu-west-1 sesame5 with spaces sesame-6 production /home/bob/7";
        insta::assert_snapshot!(Redactions::from_user(&user).hide(text), @"[hidden] [hidden] [hidden] [hidden] eu-west-1 [hidden] [hidden] production /home/bob/7");
    }

    #[test]
    fn credentials_are_known_again() {
        let mut hidden = Redactions::default();
        hidden.add("short");
        hidden.add("sesame-sesame");
        hidden.add("sesame\"sesame");
        assert!(hidden.are_in("a sesame-sesame b"));
        assert!(hidden.are_in("a sesame\"sesame b"));
        assert!(!hidden.are_in("short sesame"));
    }
}
