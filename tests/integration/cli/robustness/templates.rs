//! Templates of strangers: every run ends in time and in little memory, with a finding that names the template.

use crate::cli::Folder;
use crate::support::{Run, assert_contains};

mod generated;

/// What the run and its process may map, in KiB. A build with debug information takes some of it.
const ROOM: &str = "1500000";

/// What the run and its process may take of the processor, in seconds each.
const TIME: &str = "4";

const EXHAUSTED: &str = "it needs more than 512 MiB of memory, or is nested too deeply";
const SLOW: &str = "the templates of this run need more than 6 seconds of CPU time";
const PARSED: &str = "the result is not valid YAML: it cannot be parsed from line 1 on";
const STEPS: &str = "the template needs too many steps";
const ENGINE: &str = "the template engine cannot fill it in";

/// Runs with no more than the limits, so that a busy machine does not matter.
fn run(folder: &Folder, arguments: &[&str]) -> Run {
    let program = assert_cmd::cargo::cargo_bin!("clustermesh");
    let script = format!("ulimit -v {ROOM} -t {TIME}; exec \"$0\" \"$@\"");
    let output = assert_cmd::Command::new("bash")
        .env_clear()
        .env("RAYON_NUM_THREADS", "2")
        .current_dir(folder.path("."))
        .args(["-c", &script])
        .arg(program)
        .args(arguments)
        .output()
        .unwrap();
    let run = Run::from(output);
    for raw in ["panicked", "memory allocation", "overflowed", "core dumped"] {
        assert!(!run.stderr.contains(raw), "{}", run.stderr);
    }
    run
}

/// Fails if the finding is not about the template, in every way to fill it in.
#[track_caller]
fn assert_refused(template: &str, problem: &str) {
    let folder = Folder::rendered();
    let shown = template.get(..80).unwrap_or(template);
    folder.write("templates/app.yaml", template);
    let config = "apiVersion: kilo-clustermesh.io/v1\nkind: Config\noutputs:\n\
                  - { template: templates/app.yaml, path: 'apps/{{ target.name }}.yaml' }\n";
    folder.write("clustermesh.yaml", config);
    let check = run(&folder, &["render", "--check"]);
    assert_eq!(check.code, 1, "{shown}: {}", check.stderr);
    let line =
        format!("error[invalid-output]: template `templates/app.yaml` for `east`: {problem}");
    assert_contains(&check.stderr, &line);
    assert_contains(&check.stderr, "clustermesh.yaml:4:");
}

#[test]
fn take_no_more_memory_than_they_may() {
    for template in [
        "{% set n = namespace(x='a') %}{% for i in range(99) %}{% set n.x = n.x ~ n.x %}{% endfor %}",
        "{% set n = namespace(x='aaaa') %}{% for i in [1] recursive %}\
         {% set n.x = n.x ~ n.x %}{{ loop([1]) }}{% endfor %}",
        "{% macro m(a) %}{{ m(a ~ a) }}{% endmacro %}{{ m('aaaa') }}",
        "{{ '%99999999999d' | format(1) }}",
        "{{ [1, 2] | slice(99999999999999) }}",
    ] {
        assert_refused(template, EXHAUSTED);
    }
    let text = "x".repeat(10_000);
    assert_refused(
        &format!("{{% set a %}}{{% for i in range(99999) %}}{text}{{% endfor %}}{{% endset %}}"),
        EXHAUSTED,
    );
    // Without a loop.
    let doubled = "{% set a = a ~ a %}".repeat(30);
    assert_refused(&format!("{{% set a = 'a' %}}{doubled}"), EXHAUSTED);
    assert_refused("{{ 'a' | indent(18446744073709551615) }}", ENGINE);
}

#[test]
fn take_no_more_time_than_they_may() {
    let lists = "{% set n = namespace(x=[1], y=[1]) %}{% for i in range(60) %}\
                 {% set n.x = [n.x, n.x] %}{% set n.y = [n.y, n.y] %}{% endfor %}";
    assert_refused(&format!("{lists}{{{{ n.x == n.y }}}}"), SLOW);
    let endless = "{% for a in range(9999) %}{% for b in range(9999) %}{% endfor %}{% endfor %}";
    assert_refused(endless, &format!("line 1: {STEPS}"));
}

/// Values that are nested when they are printed or dropped, and code that is nested when it is read.
#[test]
fn are_nested_no_deeper_than_the_stack() {
    let nested = "{% set n = namespace(x=[1]) %}{% for i in range(8) %}{% for i in range(99999) %}\
                  {% set n.x = [n.x] %}{% endfor %}{% endfor %}";
    assert_refused(nested, EXHAUSTED);
    assert_refused(&format!("{nested}{{{{ n.x | string }}}}"), EXHAUSTED);
    let sum = "+1".repeat(200_000);
    for code in [
        format!("{{{{ {{'a':{{'b':1}}}}.a.b{sum} }}}}"),
        format!("{{% raw %}}{{#{{% endraw %}}{{{{ 1{sum} }}}}"),
        format!("{{{{ 'x'{} }}}}", "|upper".repeat(100_000)),
        format!("{{% if 0 %}}{}{{% endif %}}", "{% elif 0 %}".repeat(40_000)),
    ] {
        assert_refused(&code, EXHAUSTED);
    }
}

/// The path is a template too, and it may be the only one that is wrong.
#[test]
fn a_path_is_named_as_the_path() {
    let folder = Folder::rendered();
    folder.write("templates/app.yaml", "a: 1");
    let double =
        "{% set n = namespace(x=1) %}{% for i in range(99) %}{% set n.x = n.x ~ n.x %}{% endfor %}";
    let config = "apiVersion: kilo-clustermesh.io/v1\nkind: Config\noutputs:";
    folder.write(
        "clustermesh.yaml",
        format!("{config}\n- template: templates/app.yaml\n  path: \"{double}\"\n"),
    );
    let check = run(&folder, &["validate"]);
    assert_eq!(check.code, 1);
    let line = format!("error[invalid-output]: invalid output path: {EXHAUSTED}");
    assert_contains(&check.stdout, &line);
    assert_contains(&check.stdout, "clustermesh.yaml:5:");
    assert_contains(
        &check.stdout,
        "help: write each text where it belongs, instead of a variable that grows with each step",
    );
}

/// Templates before it are fine, and those after it are not looked at.
#[test]
fn the_one_that_ends_the_process_is_named() {
    let folder = Folder::rendered();
    folder.write("templates/app.yaml", "a: {{ target.name }}");
    folder.write("templates/wrong.yaml", "a: {{ nothing }}");
    folder.write(
        "templates/bad.yaml",
        "a: {% if target.name == 'north' %}{{ '%99999999999d' | format(1) }}{% endif %}",
    );
    let outputs: Vec<String> = ["app", "wrong", "bad", "app", "wrong"]
        .iter()
        .enumerate()
        .map(|(index, name)| {
            format!("- {{ template: templates/{name}.yaml, path: '{index}/{{{{ target.name }}}}.yaml' }}\n")
        })
        .collect();
    let config = "apiVersion: kilo-clustermesh.io/v1\nkind: Config\noutputs:";
    folder.write("clustermesh.yaml", format!("{config}\n{}", outputs.concat()));
    let check = run(&folder, &["render"]);
    assert_eq!(check.code, 1);
    let findings: Vec<&str> = check.stderr.lines().filter(|it| it.starts_with("error")).collect();
    assert_eq!(
        findings,
        [
            "error[invalid-output]: template `templates/wrong.yaml` for `east`: line 1: `nothing` is undefined",
            &format!(
                "error[invalid-output]: template `templates/bad.yaml` for `north`: {EXHAUSTED}"
            ),
        ]
    );
    assert!(!folder.path("0").exists());
}

/// The process asks for every template that is included, but not for ever.
#[test]
fn includes_end() {
    assert_refused(
        "{% for i in range(99999) %}{% include 'x' ~ i ignore missing %}{% endfor %}",
        "the templates of this run need more than 50000000 steps together",
    );
    assert_refused("{% include 'app.yaml' %}", "line 1: could not render include");
}

/// Only this program starts the process, but a person can.
#[test]
fn the_process_refuses_other_input() {
    let folder = Folder::empty();
    for input in ["", "x", "{}", "{\"sources\":[],\"targets\":[],\"meshes\":[],\"clusters\":[]}\nx"]
    {
        let run = folder.run_with_input(&["fill-in-templates"], input);
        assert_eq!((run.code, run.stdout.as_str(), run.stderr.as_str()), (1, "", ""), "{input}");
    }
    assert!(!folder.run(&["--help"]).stdout.contains("fill-in"));
}

/// A result is checked in a time that grows with its length, and 1 MiB at most.
#[test]
fn results_are_checked_in_time() {
    assert_refused("a: {% for i in range(99999) %}[{% endfor %}", PARSED);
    assert_refused("{% for i in range(99999) %}- {% endfor %}", PARSED);
    let large = "{% for i in range(9999) %}- - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - -\n{% endfor %}";
    assert_refused(large, "the result has more than 1048576 bytes");
    let folder = Folder::rendered();
    for accepted in [
        "# {% for i in range(99999) %}{{ i ~ '' }} {% endfor %}",
        "[{% for i in range(99999) %}{{ i ~ '' }},{% endfor %}]",
        "{% for i in range(60000) %}a{{ i }}: 1\n{% endfor %}",
    ] {
        folder.write("a.yaml", accepted);
        let run = run(&folder, &["template", "a.yaml"]);
        assert_eq!(run.code, 0, "{accepted}: {}", run.stderr);
    }
}
