//! The registry: every rule, by the question that it answers.

use super::{
    Rule, access, capacity, clusters, endpoints, gitops, identity, kilo, levels, nodes, ranges,
    rendered, snapshots,
};
use crate::diagnostic::mistake;
use crate::packet::rule;

/// A question that is asked of a mesh.
#[derive(Debug)]
pub struct Question {
    /// The question.
    pub title: &'static str,
    /// The rules that answer it.
    pub rules: &'static [&'static Rule],
}

/// Every question, in the order in which they are best asked.
pub static QUESTIONS: &[Question] = &[
    Question {
        title: "Is what people wrote well formed?",
        rules: mistake::RULES,
    },
    Question {
        title: "Do ranges overlap, or lie outside of what was declared?",
        rules: ranges::RULES,
    },
    Question {
        title: "Has every node an identity of its own?",
        rules: identity::RULES,
    },
    Question {
        title: "Can one side of every pair dial the other?",
        rules: endpoints::RULES,
    },
    Question {
        title: "Does Kilo on the nodes fit?",
        rules: kilo::RULES,
    },
    Question {
        title: "Does what was declared hold for any node?",
        rules: nodes::RULES,
    },
    Question {
        title: "Has it shrunk or moved?",
        rules: rendered::RULES,
    },
    Question {
        title: "Would Flux or Argo CD choke?",
        rules: gitops::RULES,
    },
    Question {
        title: "Does it get there, and back?",
        rules: rule::RULES,
    },
    Question {
        title: "Does it stay within what Kilo and GitOps can carry?",
        rules: capacity::RULES,
    },
    Question {
        title: "Could the clusters be reached as the meshes say?",
        rules: access::RULES,
    },
    Question {
        title: "Is what the config says of findings still meant?",
        rules: levels::RULES,
    },
    Question {
        title: "May a new snapshot be believed?",
        rules: snapshots::RULES,
    },
    Question {
        title: "Why could a cluster not be read?",
        rules: clusters::RULES,
    },
];

/// Returns every rule, in order of name.
pub fn all() -> Vec<&'static Rule> {
    let rules = QUESTIONS.iter().flat_map(|question| question.rules);
    let mut rules: Vec<&Rule> = rules.copied().collect();
    rules.sort_by_key(|rule| rule.name);
    rules
}

/// Returns the rules of a name, or of a reason code of the operator's.
pub fn find(name: &str) -> Vec<&'static Rule> {
    let is_meant = |rule: &&Rule| rule.name == name || rule.aliases.contains(&name);
    all().into_iter().filter(is_meant).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_kebab_case_and_unique() {
        let names: Vec<&str> = all().iter().map(|rule| rule.name).collect();
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
