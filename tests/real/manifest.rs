//! Text of one rendered Peer, to be changed as a hand or a tool might.

use std::fmt::Write as _;

/// The separator of the documents of a file.
const BETWEEN: &str = "---\n";

/// A Peer as it is written.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct Manifest(String);

impl Manifest {
    /// Takes a file apart.
    pub(crate) fn all(file: &str) -> Vec<Self> {
        let documents = file.split(BETWEEN).filter(|it| !it.is_empty());
        documents.map(|it| Self(it.to_owned())).collect()
    }

    /// Puts a file together.
    pub(crate) fn join(all: &[Self]) -> String {
        let texts: Vec<&str> = all.iter().map(|it| it.0.as_str()).collect();
        texts.join(BETWEEN)
    }

    /// Returns the name.
    pub(crate) fn name(&self) -> &str {
        self.value("  name: ")
    }

    /// Writes another name.
    pub(crate) fn set_name(&mut self, name: &str) {
        let old = format!("  name: {}\n", self.name());
        self.replace(&old, &format!("  name: {name}\n"));
    }

    /// Returns the ranges, as written.
    pub(crate) fn ranges(&self) -> Vec<String> {
        let lines = self.0.lines().filter_map(|it| it.strip_prefix("  - "));
        lines.map(|it| it.trim_matches('"').to_owned()).collect()
    }

    /// Adds a range, after all others.
    pub(crate) fn add_range(&mut self, range: &str) {
        let list = "  allowedIPs:\n";
        let (head, rest) = self.0.split_once(list).expect("a list of ranges");
        let ranges: String =
            rest.split_inclusive('\n').take_while(|it| it.starts_with("  - ")).collect();
        let rest = &rest[ranges.len()..];
        self.0 = format!("{head}{list}{ranges}  - \"{range}\"\n{rest}");
    }

    /// Takes a range out.
    pub(crate) fn remove_range(&mut self, range: &str) {
        self.replace(&format!("  - \"{range}\"\n"), "");
        if self.ranges().is_empty() {
            self.replace("  allowedIPs:\n", "  allowedIPs: []\n");
        }
    }

    /// Returns the key, as written.
    pub(crate) fn key(&self) -> &str {
        self.value("  publicKey: ")
    }

    /// Writes another key.
    pub(crate) fn set_key(&mut self, key: &str) {
        let old = format!("publicKey: \"{}\"", self.key());
        self.replace(&old, &format!("publicKey: \"{key}\""));
    }

    /// Returns the address of the endpoint.
    pub(crate) fn endpoint(&self) -> &str {
        self.value("      ip: ")
    }

    /// Writes another address for the endpoint.
    pub(crate) fn set_endpoint(&mut self, address: &str) {
        let old = format!("ip: \"{}\"", self.endpoint());
        self.replace(&old, &format!("ip: \"{address}\""));
    }

    /// Takes the endpoint out.
    pub(crate) fn remove_endpoint(&mut self) {
        let mut text = String::new();
        for line in self.0.lines() {
            let is_of_it = ["  endpoint:", "    dnsOrIP:", "      ip:", "    port:"];
            if !is_of_it.iter().any(|it| line.starts_with(it)) {
                let _ = writeln!(text, "{line}");
            }
        }
        self.0 = text;
    }

    /// Writes a port that no agent accepts.
    pub(crate) fn spoil_port(&mut self) {
        let old = format!("    port: {}\n", self.value("    port: "));
        self.replace(&old, "    port: 0\n");
    }

    fn value(&self, field: &str) -> &str {
        let mut lines = self.0.lines();
        let found = lines.find_map(|it| it.strip_prefix(field));
        found.unwrap_or_default().trim_matches('"')
    }

    fn replace(&mut self, old: &str, new: &str) {
        assert!(self.0.contains(old), "no {old:?} in\n{}", self.0);
        self.0 = self.0.replacen(old, new, 1);
    }
}
