//! The registry: every rule, by the question that it answers.

use super::{
    Rule, access, capacity, clusters, config, costs, endpoints, gitops, identity, kilo, nodes,
    ranges, rendered, services, snapshots, states,
};
use crate::diagnostic::{Question, mistake};
use crate::proof::rule;

/// Every question, in the order in which they are best asked.
pub static QUESTIONS: &[&Question] = &[
    &mistake::QUESTION,
    &ranges::QUESTION,
    &identity::QUESTION,
    &endpoints::QUESTION,
    &kilo::QUESTION,
    &nodes::QUESTION,
    &states::QUESTION,
    &services::QUESTION,
    &rendered::QUESTION,
    &costs::QUESTION,
    &gitops::QUESTION,
    &rule::QUESTION,
    &capacity::QUESTION,
    &access::QUESTION,
    &config::QUESTION,
    &snapshots::QUESTION,
    &clusters::QUESTION,
];

/// Returns every rule, in order of name.
pub fn all() -> Vec<&'static Rule> {
    let mut rules: Vec<&Rule> =
        QUESTIONS.iter().flat_map(|question| question.rules).copied().collect();
    rules.sort_by_key(|rule| rule.name());
    rules
}

/// Returns the rules of a name, or of a reason code of the operator's.
pub fn find(name: &str) -> Vec<&'static Rule> {
    let is_meant = |rule: &&Rule| rule.name() == name || rule.aliases.contains(&name);
    all().into_iter().filter(is_meant).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_kebab_case_and_unique() {
        let names: Vec<&str> = all().iter().map(|rule| rule.name()).collect();
        assert!(names.windows(2).all(|pair| pair[0] < pair[1]), "{names:?}");
        let is_kebab = |name: &&str| {
            name.split('-')
                .all(|word| !word.is_empty() && word.bytes().all(|it| it.is_ascii_lowercase()))
        };
        assert!(names.iter().all(is_kebab), "{names:?}");
    }

    #[test]
    fn a_rule_is_found_by_name_and_by_the_operator_s_code() {
        assert_eq!(find("missing-pod-cidr").len(), 1);
        let names: Vec<&str> = find("NodeNoPodCIDR").iter().map(|it| it.name).collect();
        assert_eq!(names, ["invalid-pod-cidr", "missing-pod-cidr"]);
        assert!(find("nonsense").is_empty());
    }
}
