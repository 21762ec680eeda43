//! Selectors: which nodes an entry means, checked as Kubernetes does.

use crate::diagnostic::{Finding, Mistakes, Quoted, mistake};
use crate::name::{is_label_key, is_label_value};
use crate::place::Place;
use crate::selector::{Requirement, Selector, Test};

use super::raw;

/// Returns the selector, or reports what is wrong with it.
pub(crate) fn selector(
    written: Option<raw::RawSelector>,
    place: &Place,
    findings: &mut Mistakes,
) -> Option<Selector> {
    let Some(written) = written else {
        return Some(Selector::default());
    };
    let before = findings.len();
    let labels_place = place.key("matchLabels");
    let labels = written.match_labels.unwrap_or_default().into_iter();
    let labels = labels.map(|it| (it, &labels_place));
    let mut requirements = Vec::new();
    for ((key, value), place) in labels.chain(written.labels.into_iter().map(|it| (it, place))) {
        let place = place.key(&key);
        check_key(&key, place.clone().named(), findings);
        check_value(&value, place, findings);
        let test = Test::In(vec![value]);
        requirements.push(Requirement { key, test });
    }
    let expressions = written.match_expressions.unwrap_or_default();
    let expressions_place = place.key("matchExpressions");
    for (index, expression) in expressions.into_iter().enumerate() {
        requirements.push(requirement(expression, &expressions_place.index(index), findings));
    }
    (findings.len() == before).then(|| Selector::new(requirements))
}

/// Reports that a text is not a label key.
pub(super) fn not_a_label_key(text: &str, place: Place) -> Finding {
    let message = format!("{} is not a valid label key", Quoted(text));
    Finding::new(&mistake::INVALID_VALUE, message)
        .at(place, "")
        .help("write `name` or `prefix/name`, such as `topology.kubernetes.io/zone`")
}

fn requirement(
    expression: raw::RawRequirement,
    place: &Place,
    findings: &mut Mistakes,
) -> Requirement {
    let raw::RawRequirement { key, operator, values } = expression;
    let values = values.unwrap_or_default();
    check_key(&key, place.key("key"), findings);
    for (index, value) in values.iter().enumerate() {
        check_value(value, place.key("values").index(index), findings);
    }
    let compares = matches!(operator, raw::Operator::In | raw::Operator::NotIn);
    if compares == values.is_empty() {
        let needs = if compares { "needs" } else { "takes no" };
        let message = format!("the operator `{operator:?}` {needs} `values`");
        findings.push(
            Finding::new(&mistake::CONTRADICTING_FIELDS, message).at(place.key("values"), ""),
        );
    }
    let test = match operator {
        raw::Operator::In => Test::In(values),
        raw::Operator::NotIn => Test::NotIn(values),
        raw::Operator::Exists => Test::Exists,
        raw::Operator::DoesNotExist => Test::DoesNotExist,
    };
    Requirement { key, test }
}

fn check_key(key: &str, place: Place, findings: &mut Mistakes) {
    if !is_label_key(key) {
        findings.push(not_a_label_key(key, place));
    }
}

fn check_value(value: &str, place: Place, findings: &mut Mistakes) {
    if !is_label_value(value) {
        let message = format!("{} is not a valid label value", Quoted(value));
        findings.push(
            Finding::new(&mistake::INVALID_VALUE, message)
                .at(place, "")
                .help("write at most 63 letters, digits and inner `-`, `_` and `.`"),
        );
    }
}

#[cfg(test)]
mod tests {
    use crate::mesh::tests::report;

    #[test]
    fn selectors_are_checked_as_kubernetes_does() {
        insta::assert_snapshot!(report("
apiVersion: kilo.squat.ai/v1alpha1
kind: ClusterMesh
metadata: { name: m }
spec:
  clusters:
    - name: a
      allowedNetworks: [10.0.0.0/16]
      nodeSelector:
        matchLabels: { a/b/c: x, zone: -b }
        matchExpressions:
          - { key: zone, operator: In }
          - { key: zone, operator: Exists, values: [a] }
          - { key: '', operator: NotIn, values: [ok, 'not ok'] }
    - { name: b, allowedNetworks: [10.1.0.0/16], nodeSelector: { storage-role: ceph } }
    - { name: c, allowedNetworks: [10.2.0.0/16], nodeSelector: { a/b/c: -x, matchLabel: {} } }
"), @r"
        error[unknown-field]: unknown field `matchLabel`
          16:77 | matchLabel
          help: did you mean `matchLabels`?
        error[invalid-value]: `a/b/c` is not a valid label key
          10:24 | a/b/c
          help: write `name` or `prefix/name`, such as `topology.kubernetes.io/zone`
        error[invalid-value]: `-b` is not a valid label value
          10:40 | -b
          help: write at most 63 letters, digits and inner `-`, `_` and `.`
        error[contradicting-fields]: the operator `In` needs `values`
          12:13 | { key: zone, operator: In }
        error[contradicting-fields]: the operator `Exists` takes no `values`
          13:52 | [a]
        error[invalid-value]: `` is not a valid label key
          14:20 | ''
          help: write `name` or `prefix/name`, such as `topology.kubernetes.io/zone`
        error[invalid-value]: `not ok` is not a valid label value
          14:54 | 'not ok'
          help: write at most 63 letters, digits and inner `-`, `_` and `.`
        error[invalid-value]: `a/b/c` is not a valid label key
          16:66 | a/b/c
          help: write `name` or `prefix/name`, such as `topology.kubernetes.io/zone`
        error[invalid-value]: `-x` is not a valid label value
          16:73 | -x
          help: write at most 63 letters, digits and inner `-`, `_` and `.`
        ");
    }
}
