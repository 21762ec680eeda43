//! Label selectors, as Kubernetes reads them.

use crate::string_map::StringMap;

/// A selector of nodes by labels: all requirements must be met, and an empty one selects everything.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Selector {
    requirements: Vec<Requirement>,
}

/// One condition on one label.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Requirement {
    /// The label.
    pub key: String,
    /// The condition.
    pub test: Test,
}

/// A condition on a label.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Test {
    /// It is there and has one of these values.
    In(Vec<String>),
    /// It is absent, or has none of these values.
    NotIn(Vec<String>),
    /// The label exists.
    Exists,
    /// The label is missing.
    DoesNotExist,
}

impl Selector {
    /// Returns a selector for nodes that meet all of `requirements`.
    pub fn new(requirements: Vec<Requirement>) -> Self {
        Self { requirements }
    }

    /// Returns whether it selects everything.
    pub fn is_everything(&self) -> bool {
        self.requirements.is_empty()
    }

    /// Returns the requirements as `kubectl get --selector` takes them, such as `zone in (a,b)`.
    pub fn conditions(&self) -> Vec<String> {
        let conditions = self.requirements.iter().map(|it| {
            let key = &it.key;
            match &it.test {
                Test::In(values) => format!("{key} in ({})", values.join(",")),
                Test::NotIn(values) => format!("{key} notin ({})", values.join(",")),
                Test::Exists => key.clone(),
                Test::DoesNotExist => format!("!{key}"),
            }
        });
        conditions.collect()
    }

    /// Returns the labels that it asks for.
    pub fn keys(&self) -> impl Iterator<Item = &str> {
        self.requirements.iter().map(|it| it.key.as_str())
    }

    /// Returns whether something with these labels is selected.
    pub fn matches(&self, labels: &StringMap) -> bool {
        self.requirements.iter().all(|it| it.matches(labels))
    }

    /// Returns the labels that something with these lacks, each with a value that is selected.
    pub fn missing<'s>(&'s self, labels: &StringMap) -> impl Iterator<Item = (&'s str, &'s str)> {
        let unmet = self.requirements.iter().filter(|it| !it.matches(labels));
        unmet.filter_map(|it| match &it.test {
            Test::In(values) => Some((it.key.as_str(), values.first()?.as_str())),
            Test::Exists => Some((it.key.as_str(), "")),
            Test::NotIn(_) | Test::DoesNotExist => None,
        })
    }
}

impl Requirement {
    fn matches(&self, labels: &StringMap) -> bool {
        let value = labels.get(&self.key);
        match &self.test {
            Test::In(values) => value.is_some_and(|value| values.iter().any(|it| it == value)),
            Test::NotIn(values) => value.is_none_or(|value| values.iter().all(|it| it != value)),
            Test::Exists => value.is_some(),
            Test::DoesNotExist => value.is_none(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn matches(test: Test, labels: &[(&str, &str)]) -> bool {
        let labels = labels.iter().copied().collect();
        let key = "zone".to_owned();
        Selector::new(vec![Requirement { key, test }]).matches(&labels)
    }

    #[test]
    fn an_absent_label_is_not_in_and_does_not_exist() {
        let a = || vec!["a".to_owned()];
        assert!(matches(Test::NotIn(a()), &[]));
        assert!(matches(Test::DoesNotExist, &[]));
        assert!(!matches(Test::In(a()), &[]));
        assert!(!matches(Test::Exists, &[]));
        assert!(matches(Test::In(a()), &[("zone", "a")]));
        assert!(!matches(Test::NotIn(a()), &[("zone", "a")]));
    }

    #[test]
    fn nothing_required_selects_everything() {
        assert!(Selector::default().matches(&StringMap::default()));
    }
}
