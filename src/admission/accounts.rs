//! Accounts: users and groups of an API server.

use std::collections::BTreeSet;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::name::{is_dns_label, is_dns_subdomain};

/// The prefix of a group where users and groups are given.
const GROUP: &str = "group:";

/// The prefix of the users that are service accounts, in front of the namespace.
const SERVICE_ACCOUNT: &str = "system:serviceaccount:";

/// The group of all service accounts, and the beginning of the groups of those of one namespace.
const SERVICE_ACCOUNTS: &str = "system:serviceaccounts";

/// The right forms of an account.
const FORMS: &str = "expected `system:serviceaccount:NAMESPACE:NAME`, `group:NAME` or the name of a user; each account needs \
     an option of its own";

/// The group of all users.
const AUTHENTICATED: &str = "system:authenticated";

/// Users and groups.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Accounts {
    groups: BTreeSet<String>,
    users: BTreeSet<String>,
}

/// A user or a group.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Account {
    /// A user.
    User(String),
    /// A group.
    Group(String),
}

impl FromStr for Account {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let account = match text.strip_prefix(GROUP) {
            Some(group) => Self::Group(group.to_owned()),
            None => Self::User(text.to_owned()),
        };
        if account.is_possible() { Ok(account) } else { Err(FORMS) }
    }
}

impl Account {
    /// Returns whether a user or a group can be called so. A typo would lock everyone out.
    fn is_possible(&self) -> bool {
        let (Self::Group(name) | Self::User(name)) = self;
        let is_placeholder = matches!(name.as_str(), "" | "ACCOUNT" | "NAME" | "USER");
        let is_list = name.contains([',', '*']) || name.trim() != name;
        let is_name = !is_placeholder && !is_list && !name.contains(char::is_control);
        is_name
            && match self {
                Self::Group(name) => !name.starts_with(SERVICE_ACCOUNT),
                Self::User(name) => is_user(name),
            }
    }
}

impl Account {
    /// Returns its name if it is a user who is not part of Kubernetes, and not called like an email address.
    pub fn person(&self) -> Option<&str> {
        let Self::User(name) = self else { return None };
        (!name.starts_with("system:") && !name.contains('@')).then_some(name)
    }
}

/// Returns whether a name of a user is not that of a group or of half a service account.
fn is_user(name: &str) -> bool {
    let is_account =
        |namespace: &str, name: &str| is_dns_label(namespace) && is_dns_subdomain(name);
    if let Some(account) = name.strip_prefix(SERVICE_ACCOUNT) {
        let parts = account.split_once(':');
        return parts.is_some_and(|(namespace, name)| is_account(namespace, name));
    }
    if name.starts_with("system:") {
        // The other users with this prefix: the administrator of k3s, components and kubelets.
        let is_component = ["system:kube-", "system:node:"].iter().any(|it| name.starts_with(it));
        return name == "system:admin" || is_component;
    }
    // An OpenID Connect user may be called `https://ISSUER#NAME`.
    let mut parts = name.split_once('/').into_iter();
    let is_path = parts.any(|(namespace, name)| is_account(namespace, name));
    let is_group = name.to_ascii_lowercase().starts_with(GROUP);
    !is_path && !is_group && !name.contains(char::is_whitespace)
}

impl FromIterator<Account> for Accounts {
    fn from_iter<T: IntoIterator<Item = Account>>(accounts: T) -> Self {
        let mut all = Self::default();
        for account in accounts {
            match account {
                Account::User(name) => all.users.insert(name),
                Account::Group(name) => all.groups.insert(name),
            };
        }
        all
    }
}

impl Accounts {
    /// Returns the first account of either that is known to be in both.
    pub fn shared(&self, other: &Self) -> Option<String> {
        let within = |one: &Self, other: &Self| {
            let mut all = one.all();
            all.find(|it| wider(it).iter().any(|it| other.has(it)))
        };
        let shared = within(self, other).or_else(|| within(other, self))?;
        let (Account::User(name) | Account::Group(name)) = shared;
        Some(name)
    }

    /// Returns whether others have all of them.
    pub fn are_within(&self, others: &Self) -> bool {
        self.users.is_subset(&others.users) && self.groups.is_subset(&others.groups)
    }

    /// Returns them as they are given: USER or `group:NAME`.
    pub(super) fn texts(&self) -> impl Iterator<Item = String> {
        self.all().map(|it| match it {
            Account::User(name) => name,
            Account::Group(name) => format!("{GROUP}{name}"),
        })
    }

    fn all(&self) -> impl Iterator<Item = Account> {
        let users = self.users.iter().cloned().map(Account::User);
        users.chain(self.groups.iter().cloned().map(Account::Group))
    }

    fn has(&self, account: &Account) -> bool {
        match account {
            Account::User(name) => self.users.contains(name),
            Account::Group(name) => self.groups.contains(name),
        }
    }
}

/// Returns an account, and the groups in which everyone is known to be who has it.
fn wider(account: &Account) -> Vec<Account> {
    let mut all = vec![account.clone(), Account::Group(AUTHENTICATED.to_owned())];
    let namespace = match account {
        Account::User(name) => {
            name.strip_prefix(SERVICE_ACCOUNT).and_then(|it| it.split_once(':')).map(|it| it.0)
        }
        Account::Group(name) => name.strip_prefix(SERVICE_ACCOUNTS),
    };
    if let Some(namespace) = namespace {
        let namespace = namespace.trim_start_matches(':');
        all.push(Account::Group(SERVICE_ACCOUNTS.to_owned()));
        all.push(Account::Group(format!("{SERVICE_ACCOUNTS}:{namespace}")));
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    fn accounts(texts: &[&str]) -> Accounts {
        texts.iter().map(|it| it.parse().unwrap()).collect()
    }

    #[test]
    fn a_service_account_is_in_the_groups_of_its_namespace() {
        let flux = accounts(&["system:serviceaccount:flux-system:clustermesh", "group:ops"]);
        let is_shared = |texts: &[&str]| accounts(texts).shared(&flux).is_some();
        for texts in [
            &["system:serviceaccount:flux-system:clustermesh"],
            &["group:system:serviceaccounts"],
            &["group:system:serviceaccounts:flux-system"],
            &["group:system:authenticated"],
            &["group:ops"],
        ] {
            assert!(is_shared(texts), "{texts:?}");
        }
        assert!(!is_shared(&["ada", "group:system:masters"]));
        assert!(!is_shared(&["group:system:serviceaccounts:argocd", "ops"]));
    }

    #[test]
    fn typos_are_not_accounts() {
        let is_account = |text: &str| text.parse::<Account>().is_ok();
        for text in [
            "",
            "*",
            "ada,bob",
            "ada bob",
            " ada",
            "ACCOUNT",
            "Group:ops",
            "GROUP:ops",
            "flux-system/clustermesh",
            "system:masters",
            "system:authenticated",
            "system:serviceaccounts",
            "system:serviceaccounts:flux-system",
            "system:serviceaccount:flux-system",
            "system:serviceaccount:flux-system:",
            "system:serviceaccount:flux-system:a:b",
            "system:serviceaccount:NAMESPACE:NAME",
            "system:serviceaccount:flux-system/clustermesh",
            "system:serviceacount:flux-system:clustermesh",
            "group:",
            "group:*",
            "group: ops",
            "group:NAME",
            "group:ops,dev",
            "group:system:serviceaccount:flux-system:clustermesh",
        ] {
            assert!(!is_account(text), "{text}");
        }
        for text in [
            "ada@example.com",
            "https://issuer.example.com#ada",
            "arn:aws:iam::123456789012:role/ops",
            "system:admin",
            "system:node:east-1",
            "system:kube-controller-manager",
            "system:serviceaccount:flux-system:clustermesh",
            "group:ops team",
            "group:org/team",
            "group:system:masters",
            "group:system:serviceaccounts:flux-system",
        ] {
            assert!(is_account(text), "{text}");
        }
    }
}
