//! References to the Secrets in which the operator keeps kubeconfigs.

use crate::name::{is_dns_label, is_dns_subdomain};

/// The longest key in the data of a Secret, in bytes.
const KEY_LIMIT: usize = 253;

/// A key of a Secret in the mesh's namespace.
#[derive(Clone, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub struct SecretKeyRef {
    /// The Secret.
    pub name: String,
    /// The key in its data.
    pub key: String,
}

impl SecretKeyRef {
    /// Returns why the key cannot exist in `namespace`, if so.
    pub fn problem(&self, namespace: &str) -> Option<&'static str> {
        if !is_dns_label(namespace) {
            Some("the namespace is not a DNS-1123 label")
        } else if !is_dns_subdomain(&self.name) {
            Some("the name is not a DNS-1123 subdomain")
        } else if !is_data_key(&self.key) {
            Some("a key may contain only letters, digits, `-`, `_` and `.`")
        } else {
            None
        }
    }
}

fn is_data_key(text: &str) -> bool {
    let is_allowed = |it: u8| it.is_ascii_alphanumeric() || matches!(it, b'-' | b'_' | b'.');
    // `.` and everything that begins with `..` would lead elsewhere in a volume.
    let leads_away = text == "." || text.starts_with("..");
    !text.is_empty() && text.len() <= KEY_LIMIT && text.bytes().all(is_allowed) && !leads_away
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn says_what_no_secret_can_be_called() {
        let report = |namespace: &str, name: &str, key: &str| {
            let secret = SecretKeyRef { name: name.to_owned(), key: key.to_owned() };
            secret.problem(namespace).unwrap_or("none")
        };
        assert_eq!(report("kilo", "east.kubeconfig", "value_1"), "none");
        let namespace = "the namespace is not a DNS-1123 label";
        assert_eq!(report("", "east", "value"), namespace);
        assert_eq!(report("kilo.system", "east", "value"), namespace);
        assert_eq!(report(&"n".repeat(64), "east", "value"), namespace);
        let name = "the name is not a DNS-1123 subdomain";
        assert_eq!(report("kilo", "../east", "value"), name);
        assert_eq!(report("kilo", "East", "value"), name);
        let key = "a key may contain only letters, digits, `-`, `_` and `.`";
        assert_eq!(report("kilo", "east", "a/b"), key);
        assert_eq!(report("kilo", "east", ".."), key);
        assert_eq!(report("kilo", "east", &"k".repeat(254)), key);
    }
}
