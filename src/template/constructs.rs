//! Constructs: the parts of the template language that a template may use.
//!
//! On a system that cannot limit the memory of a process, only constructs are possible with which no value
//! grows: a value comes from the context, and at most a few of them are joined to a text. Then a template needs
//! little more memory than its values and its result. All other constructs are refused.

use std::collections::BTreeSet;

use minijinja::machinery::ast::{BinOpKind, CallArg, Expr, Filter, Stmt};
use minijinja::machinery::{Span, parse};

use super::{Problem, syntax};

/// The number of parts that one expression may have, and the depth to which statements can be nested.
const PARTS: usize = 64;

/// The longest separator of `join`, in bytes.
const SEPARATOR: usize = 16;

/// Filters that return one of the items, a text of the same length, or a number.
const FILTERS: [&str; 14] = [
    "abs", "bool", "count", "first", "float", "int", "last", "length", "lower", "max", "min",
    "plain", "trim", "upper",
];

/// Filters that return the same, or a list of the same items, or of fewer.
const LIST_FILTERS: [&str; 11] = [
    "d",
    "default",
    "dictsort",
    "items",
    "list",
    "map",
    "rejectattr",
    "reverse",
    "selectattr",
    "sort",
    "unique",
];

/// The constructs that templates may use.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Constructs {
    /// All that the engine has.
    All,
    /// Those with which no value grows.
    Bounded,
}

impl Constructs {
    /// Fails if a template has another construct.
    pub(super) fn check(self, text: &str) -> Result<(), Problem> {
        if self == Self::All {
            return Ok(());
        }
        let template = parse(text, "", syntax()?)?;
        let mut review = Review::default();
        review.statement(&template, PARTS)?;
        match review.include {
            Some(line) if !review.assigned.is_empty() => {
                Err(refused("`include` beside `set`", line).into())
            }
            _ => Ok(()),
        }
    }
}

/// A construct that is not listed.
struct UnlistedConstruct {
    what: String,
    line: u16,
}

impl From<UnlistedConstruct> for Problem {
    fn from(UnlistedConstruct { what, line }: UnlistedConstruct) -> Self {
        Self::Template(format!(
            "line {line}: {what} is not available, because this system cannot limit the memory of a template"
        ))
    }
}

fn refused(what: &str, span: Span) -> UnlistedConstruct {
    UnlistedConstruct {
        what: what.to_owned(),
        line: span.start_line,
    }
}

/// A template under review, statement by statement.
#[derive(Default)]
struct Review<'a> {
    /// The names that a `set` has assigned so far.
    assigned: BTreeSet<&'a str>,
    /// An `include`, whose template sees these names too.
    include: Option<Span>,
}

impl<'a> Review<'a> {
    fn statements(
        &mut self,
        statements: &[Stmt<'a>],
        depth: usize,
    ) -> Result<(), UnlistedConstruct> {
        statements
            .iter()
            .try_for_each(|it| self.statement(it, depth))
    }

    fn statement(&mut self, statement: &Stmt<'a>, depth: usize) -> Result<(), UnlistedConstruct> {
        let Some(depth) = depth.checked_sub(1) else {
            let what = format!("a statement inside of {PARTS} others");
            return Err(refused(&what, named(statement).1));
        };
        match statement {
            Stmt::Template(it) => self.statements(&it.children, depth),
            Stmt::EmitRaw(_) => Ok(()),
            Stmt::EmitExpr(it) => expression(&it.expr),
            Stmt::IfCond(it) => {
                expression(&it.expr)?;
                self.statements(&it.true_body, depth)?;
                self.statements(&it.false_body, depth)
            }
            Stmt::ForLoop(it) if !it.recursive => {
                self.unassigned(&it.iter)?;
                if !is_list(&it.iter) {
                    return Err(refused("a computed list", it.iter.span()));
                }
                it.filter_expr
                    .iter()
                    .try_for_each(|filter| expression(filter))?;
                self.statements(&it.body, depth)?;
                self.statements(&it.else_body, depth)
            }
            Stmt::Set(it) => {
                self.unassigned(&it.expr)?;
                match &it.target {
                    Expr::Var(name) => self.assigned.insert(name.id),
                    other => return Err(refused("`set` of more than a variable", other.span())),
                };
                Ok(())
            }
            Stmt::Include(it) if matches!(it.name, Expr::Const(_)) => {
                self.include = Some(it.span());
                Ok(())
            }
            other => {
                let (what, span) = named(other);
                Err(refused(what, span))
            }
        }
    }

    /// Checks an expression that may not use what a `set` has assigned, since values would grow from one to the
    /// next.
    fn unassigned(&self, expression: &Expr<'a>) -> Result<(), UnlistedConstruct> {
        ExpressionReview {
            left: PARTS,
            assigned: Some(&self.assigned),
        }
        .take(expression)
    }
}

/// Checks an expression.
fn expression(expression: &Expr) -> Result<(), UnlistedConstruct> {
    ExpressionReview {
        left: PARTS,
        assigned: None,
    }
    .take(expression)
}

/// The parts of an expression.
struct ExpressionReview<'r, 'a> {
    left: usize,
    /// The names that it may not use.
    assigned: Option<&'r BTreeSet<&'a str>>,
}

impl<'a> ExpressionReview<'_, 'a> {
    fn take(&mut self, expression: &Expr<'a>) -> Result<(), UnlistedConstruct> {
        let refused = |what: &str| Err(refused(what, expression.span()));
        self.left = match self.left.checked_sub(1) {
            Some(left) => left,
            None => return refused(&format!("an expression of more than {PARTS} parts")),
        };
        match expression {
            Expr::Var(it) if self.assigned.is_some_and(|names| names.contains(it.id)) => {
                refused("`set` or `for` with a variable that `set` has assigned")
            }
            Expr::Const(_) | Expr::Var(_) => Ok(()),
            Expr::GetAttr(it) => self.take(&it.expr),
            Expr::GetItem(it) => {
                self.take(&it.expr)?;
                self.take(&it.subscript_expr)
            }
            Expr::UnaryOp(it) => self.take(&it.expr),
            Expr::BinOp(it) if !matches!(it.op, BinOpKind::Mul | BinOpKind::Pow) => {
                self.take(&it.left)?;
                self.take(&it.right)
            }
            Expr::Compare(it) => {
                self.take(&it.expr)?;
                it.ops.iter().try_for_each(|op| self.take(&op.expr))
            }
            Expr::IfExpr(it) => {
                self.take(&it.test_expr)?;
                self.take(&it.true_expr)?;
                it.false_expr.iter().try_for_each(|other| self.take(other))
            }
            Expr::Test(it) => {
                self.take(&it.expr)?;
                self.arguments(&it.args)
            }
            Expr::Filter(it) => {
                if !is_listed(it) {
                    return refused(&format!("the filter `{}` in this form", it.name));
                }
                it.expr.iter().try_for_each(|of| self.take(of))?;
                self.arguments(&it.args)
            }
            Expr::List(it) if it.as_const().is_some() => Ok(()),
            Expr::Tuple(it) if it.as_const().is_some() => Ok(()),
            other => refused(&format!("this {}", other.description())),
        }
    }

    fn arguments(&mut self, arguments: &[CallArg<'a>]) -> Result<(), UnlistedConstruct> {
        arguments.iter().try_for_each(|it| match it {
            CallArg::Pos(value)
            | CallArg::Kwarg(_, value)
            | CallArg::PosSplat(value)
            | CallArg::KwargSplat(value) => self.take(value),
        })
    }
}

/// Returns whether an expression is a list of the context, or one that is written out.
fn is_list(expression: &Expr) -> bool {
    match expression {
        Expr::Var(_) | Expr::List(_) | Expr::Tuple(_) => true,
        Expr::GetAttr(it) => is_list(&it.expr),
        Expr::GetItem(it) => is_list(&it.expr),
        Expr::Filter(it) => {
            LIST_FILTERS.contains(&it.name) && it.expr.as_ref().is_some_and(is_list)
        }
        _ => false,
    }
}

/// Returns whether a filter may be used with these arguments.
fn is_listed(filter: &Filter) -> bool {
    let mut arguments = filter.args.iter();
    match filter.name {
        "join" => {
            filter.expr.as_ref().is_some_and(is_list)
                && arguments.all(|it| match it {
                    CallArg::Pos(Expr::Const(it)) => {
                        it.value.as_str().is_some_and(|it| it.len() <= SEPARATOR)
                    }
                    CallArg::Kwarg("attribute", Expr::Const(_)) => true,
                    _ => false,
                })
        }
        // Without an attribute, `map` applies any other filter.
        "map" => arguments.all(|it| matches!(it, CallArg::Kwarg("attribute", Expr::Const(_)))),
        name => FILTERS.contains(&name) || LIST_FILTERS.contains(&name),
    }
}

/// Returns a statement as it is called, and its place.
fn named(statement: &Stmt) -> (&'static str, Span) {
    match statement {
        Stmt::Template(it) => ("a template", it.span()),
        Stmt::EmitExpr(it) => ("a value", it.span()),
        Stmt::EmitRaw(it) => ("a text", it.span()),
        Stmt::ForLoop(it) => ("a recursive `for`", it.span()),
        Stmt::IfCond(it) => ("`if`", it.span()),
        Stmt::WithBlock(it) => ("`with`", it.span()),
        Stmt::Set(it) => ("`set`", it.span()),
        Stmt::SetBlock(it) => ("`set` of a block", it.span()),
        Stmt::AutoEscape(it) => ("`autoescape`", it.span()),
        Stmt::FilterBlock(it) => ("`filter`", it.span()),
        Stmt::Block(it) => ("`block`", it.span()),
        Stmt::Import(it) => ("`import`", it.span()),
        Stmt::FromImport(it) => ("`from`", it.span()),
        Stmt::Extends(it) => ("`extends`", it.span()),
        Stmt::Include(it) => ("`include` of a computed name", it.span()),
        Stmt::Macro(it) => ("`macro`", it.span()),
        Stmt::CallBlock(it) => ("`call`", it.span()),
        Stmt::Do(it) => ("`do`", it.span()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(text: &str) -> Option<String> {
        let checked = Constructs::Bounded.check(text);
        checked.err().map(|problem| problem.to_string())
    }

    #[test]
    fn what_templates_usually_need_is_listed() {
        for text in [
            include_str!("../../templates/kustomization.yaml"),
            include_str!("../../templates/gallery/flux-kustomization.yaml.j2"),
            include_str!("../../templates/gallery/argocd-application.yaml.j2"),
            include_str!("../../examples/gitops/templates/clusters.json.j2"),
            include_str!("../../examples/gitops/templates/firewall.txt"),
            "{{ target.sources | map(attribute='cluster') | sort | join(', ') }}",
            "{{ targets | selectattr('peers') | length }}",
            "{% for key, value in clusters[0].nodes[0].labels | items %}{{ key ~ '=' ~ value }}{% endfor %}",
            "{% set name = target.name ~ '-mesh' %}{{ name }}: {{ name | upper }}",
            "{% for it in clusters if it.name != target.name %}{{ loop.index + 1 }}{% endfor %}",
            "{% for kind in ['a', 'b'] %}{% include 'part.yaml' %}{% endfor %}",
            "{{ target.name if target is defined else 'none' }}",
        ] {
            assert_eq!(refusal(text), None, "{text}");
        }
    }

    #[test]
    fn what_makes_a_value_grow_is_not() {
        for text in [
            "{% set a = 'x' %}{% set a = a ~ a %}",
            "{% set a = 'x' %}{% set b = a ~ a %}",
            "{% set a = 'x' %}{% for b in [1] | default(a ~ a) %}{% endfor %}",
            "{% set n = namespace(x=1) %}",
            "{% set n.x = 1 %}",
            "{% set a %}x{% endset %}",
            "{% set a = 'x' %}{% include 'more' %}",
            "{% include a ~ b %}",
            "{% import 'a' as b %}",
            "{% macro m() %}{% endmacro %}",
            "{% for a in [1] recursive %}{{ loop([1]) }}{% endfor %}",
            "{% for a in [clusters, clusters] %}{% endfor %}",
            "{% for a in range(9) %}{% endfor %}",
            "{% for a in (b ~ b) | list %}{% endfor %}",
            "{% with a = 1 %}{% endwith %}",
            "{% filter upper %}{% endfilter %}",
            "{{ [clusters, clusters] }}",
            "{{ {'a': clusters} }}",
            "{{ 'x' * 99999999 }}",
            "{{ 9 ** 99999999 }}",
            "{{ a | indent(99999999) }}",
            "{{ a | replace('', b) }}",
            "{{ a | map('indent', 99999999) }}",
            "{{ a | join(b) }}",
            "{{ (a ~ b) | join(',') }}",
            "{{ a | join('................................') }}",
            "{{ 'a'.join(b) }}",
            &format!("{{{{ a{} }}}}", " ~ a".repeat(64)),
            &format!("{{% if a %}}{}{{% endif %}}", "{% elif a %}".repeat(64)),
        ] {
            let refusal = refusal(text).unwrap_or_else(|| panic!("{text}"));
            let ending =
                "is not available, because this system cannot limit the memory of a template";
            assert!(refusal.ends_with(ending), "{text}: {refusal}");
        }
        insta::assert_snapshot!(refusal("\n{% macro m() %}{% endmacro %}").unwrap(), @"line 2: `macro` is not available, because this system cannot limit the memory of a template");
        insta::assert_snapshot!(refusal("{{ a | indent(2) }}").unwrap(), @"line 1: the filter `indent` in this form is not available, because this system cannot limit the memory of a template");
        insta::assert_snapshot!(refusal("{% set a = 1 %}{% set b = a %}").unwrap(), @"line 1: `set` or `for` with a variable that `set` has assigned is not available, because this system cannot limit the memory of a template");
    }
}
