//! Accounts: users and groups of an API server.

use std::collections::BTreeSet;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// The prefix of a group where users and groups are given.
const GROUP: &str = "group:";

/// The prefix of the users that are service accounts, in front of the namespace.
const SERVICE_ACCOUNT: &str = "system:serviceaccount:";

/// The group of all service accounts, and the beginning of the groups of those of one namespace.
const SERVICE_ACCOUNTS: &str = "system:serviceaccounts";

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
        let (Self::Group(name) | Self::User(name)) = &account;
        if name.is_empty() {
            return Err("expected USER or group:NAME");
        }
        Ok(account)
    }
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
            let account = name.strip_prefix(SERVICE_ACCOUNT);
            account.and_then(|it| it.split_once(':')).map(|it| it.0)
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
        assert!("group:".parse::<Account>().is_err());
    }
}
