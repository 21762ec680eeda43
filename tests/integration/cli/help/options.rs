//! Help, versions and colours.

use crate::cli::{Folder, HEADER, MESH};
use crate::support::assert_contains;

const ESCAPE: char = '\u{1b}';

/// A mesh about which there is a warning, and an excerpt.
fn remarkable() -> Folder {
    let folder = Folder::mesh();
    folder.edit("mesh.yaml", "10.1.0.0/16", "10.1.7.7/16");
    folder.edit("snapshots/east.json", "10.101.0.2/24", "10.101.0.1/24");
    folder
}

#[test]
fn shows_examples_with_every_command() {
    let folder = Folder::empty();
    for command in ["render", "snapshot"] {
        for flag in ["--help", "-h"] {
            let run = folder.run(&[command, flag]);
            assert_eq!((run.code, run.stderr.as_str()), (0, ""));
            let example = format!("Examples:\n  clustermesh {command}");
            let piped = format!("| clustermesh {command}");
            assert!(run.stdout.contains(&example) || run.stdout.contains(&piped), "{}", run.stdout);
            assert_contains(&run.stdout, "Examples:");
        }
    }
}

#[test]
fn shows_what_exit_codes_mean() {
    let run = Folder::empty().run(&["--help"]);
    assert_eq!((run.code, run.stderr.as_str()), (0, ""));
    let (_, codes) = run.stdout.split_once("Exit codes:").unwrap();
    insta::assert_snapshot!(codes, @"

      0  success
      1  problems found, files differ (--check), or Peers or nodes would be lost
      2  failed: wrong usage, unreadable input, or a cluster that cannot be reached

    Common options can also be given before the name of a command: `clustermesh -C mesh render`.
    ");
}

#[cfg(feature = "snapshot")]
#[test]
fn lists_its_commands_by_purpose() {
    let run = Folder::empty().run(&["-h"]);
    insta::assert_snapshot!(run.stdout, @"
    Join Kubernetes clusters with Kilo and WireGuard, the GitOps way

    Usage: clustermesh <COMMAND>

    Build:
      init         Create the files of a new repository
      snapshot     Save the nodes of each cluster as JSON
      render       Write the Kilo Peers of each cluster
      template     Fill in a template and print the result
      argocd       Run as an Argo CD config-management plugin

    Check:
      validate     Report problems in meshes, snapshots and rendered files
      verify       Prove that clusters reach each other as the meshes declare
      outage       List the failures that break paths between other nodes
      diff         Show what a change does to the network
      trace        Follow a packet between clusters, and its reply
      graph        Draw the clusters, and whether their links work
      capacity     Estimate the load on each cluster, and how to reduce it
      report       Write an HTML report about the mesh

    Clusters:
      status       Compare what clusters have with what is rendered
      guard        Print an admission policy for the Peers of a cluster
      rbac         Print the manifests that grant rights in a cluster
      dns          Print the DNS with which a cluster resolves Services of others
      wireguard    Print the WireGuard configuration of an external peer
      firewall     List the ports that must be open, and what each cluster sends
      annotate     Print annotations and labels of nodes that resolve findings

    Learn:
      explain      Explain a rule, or why other clusters get a node or do not get it
      schema       Print the JSON Schema of a format
      config       Print all settings and their origins

    Shell:
      completions  Print shell completions
      man          Print a manual page

    Options:
      -h, --help     Print help (see more with '--help')
      -V, --version  Print version
    ");
    assert_eq!(Folder::empty().run(&["help"]).stdout, Folder::empty().run(&["--help"]).stdout);
}

/// Each command names the common options that it has, and only the program describes them.
#[test]
fn commands_name_the_common_options_that_they_have() {
    const ALL: &str = "--directory, --root, --config, --mesh, --snapshots, --rendered, --ceiling, --color, --quiet";
    let line = |arguments: &[&str]| {
        let run = Folder::empty().run_with(&[("COLUMNS", "400")], arguments);
        let mut lines = run.stdout.lines();
        let line =
            lines.find_map(|it| it.strip_prefix("Common options (see `clustermesh --help`): "));
        line.unwrap_or_default().to_owned()
    };
    for (command, common) in [
        ("render", ALL),
        ("config", ALL),
        ("init", "--directory, --color, --quiet"),
        (
            "explain",
            "--directory, --root, --config, --mesh, --snapshots, --rendered, --ceiling, --color",
        ),
        ("schema", ""),
        ("completions", ""),
        ("man", ""),
        ("argocd", ""),
    ] {
        for arguments in [&["help", command][..], &[command, "--help"], &[command, "-h"]] {
            assert_eq!(line(arguments), common, "{arguments:?}");
        }
    }
    let help = Folder::empty().run(&["--help"]).stdout;
    for option in ALL.split(", ") {
        assert_contains(&help, &format!("{option} ").replace("--quiet ", "--quiet\n"));
        let own = Folder::empty().run(&["render", "--help"]).stdout;
        assert!(!own.contains(&format!("      {option} ")), "{own}");
    }
}

#[test]
fn a_help_has_at_most_100_lines_of_80_columns() {
    let folder = Folder::empty();
    let help = folder.run(&["-h"]).stdout;
    let (listed, _) = help.split_once("Options:").unwrap();
    let commands = listed.lines().filter(|it| it.starts_with("  "));
    let commands = commands.filter_map(|it| it.split_whitespace().next());
    let mut count = 0;
    for command in commands {
        let help = folder.run_with(&[("COLUMNS", "80")], &[command, "--help"]).stdout;
        assert!(help.lines().count() <= 100, "{command}: {}", help.lines().count());
        count += 1;
    }
    assert!(20 < count, "{count}");
}

#[test]
fn options_may_stand_before_the_command() {
    let folder = Folder::empty();
    folder.write("inner/mesh.yaml", MESH);
    let run = folder.run(&["-C", "inner", "--quiet", "config", "-o", "json"]);
    assert_eq!(run.code, 0, "{}", run.stderr);
    assert_contains(&run.stdout, "\"mesh.yaml\"");
    let run = folder.run(&["-C", "inner", "argocd", "generate"]);
    assert_contains(&run.stderr, "ARGOCD_APP");
    // As an image is run whose arguments begin with a folder.
    let version = folder.run(&["--version"]);
    assert_eq!(folder.run(&["-C", "inner", "--version"]).stdout, version.stdout);
    let help = folder.run(&["-h"]);
    assert_eq!(folder.run(&["-C", "inner", "-q", "-h"]).stdout, help.stdout);
    let unknown = folder.run(&["-C", "inner", "redner", "--help"]);
    assert_contains(&unknown.stderr, "'redner'");
}

#[test]
fn refuses_options_that_a_command_ignores() {
    let folder = Folder::mesh();
    for (arguments, option) in [
        (&["schema", "mesh", "--mesh", "mesh.yaml"][..], "--mesh"),
        (&["--mesh", "mesh.yaml", "schema", "mesh"], "--mesh"),
        (&["schema", "mesh", "-C", "x"], "-C"),
        (&["snapshot", "--rendered", "x"], "--rendered"),
        (&["init", "--snapshots", "x"], "--snapshots"),
        (&["man", "--quiet"], "--quiet"),
        (&["argocd", "generate", "--color", "never"], "--color"),
        (&["argocd", "parameters", "--rendered", "x"], "--rendered"),
    ] {
        let run = folder.run(arguments);
        assert_eq!((run.code, run.stdout.as_str()), (2, ""), "{arguments:?}");
        let report = format!("error: unexpected argument '{option}' found");
        assert!(run.stderr.starts_with(&report), "{}", run.stderr);
    }
}

#[test]
fn says_which_version_it_is() {
    let expected = format!("clustermesh {}\n", env!("CARGO_PKG_VERSION"));
    for flag in ["--version", "-V"] {
        let run = Folder::empty().run(&[flag]);
        assert_eq!(
            (run.code, run.stdout.as_str(), run.stderr.as_str()),
            (0, expected.as_str(), "")
        );
    }
}

#[test]
fn uses_no_colour_but_on_a_terminal() {
    let folder = remarkable();
    for arguments in
        [["render"].as_slice(), &["render", "--check"], &["render", "--help"], &["--nope"]]
    {
        let run = folder.run(arguments);
        assert!(!run.stdout.contains(ESCAPE) && !run.stderr.contains(ESCAPE), "{run:?}");
    }
}

#[test]
fn uses_colour_if_asked_to() {
    let run = remarkable().run(&["render", "--color", "always"]);
    assert_eq!(run.stderr.matches("warning").count(), 2);
    assert!(run.stderr.contains(ESCAPE));
}

#[test]
fn says_the_same_in_colour() {
    let folder = remarkable();
    let plain = folder.run(&["render", "--target", "west"]);
    let colored = folder.run(&["render", "--target", "west", "--color=always"]);
    let mut pieces = colored.stderr.split("\u{1b}[");
    let before = pieces.next().unwrap();
    let rest = pieces.map(|piece| piece.split_once('m').unwrap().1);
    let text: String = std::iter::once(before).chain(rest).collect();
    assert_eq!(text, plain.stderr);
}

#[test]
fn keeps_colour_out_of_results() {
    let folder = Folder::rendered();
    folder.write("rendered/west/prod--south.yaml", HEADER);
    let check = folder.run(&["render", "--check", "--color=always"]);
    assert_eq!(check.stdout, "stale: rendered/west/prod--south.yaml\n");
    let printed = folder.run(&["render", "--target", "west", "--color=always"]);
    assert!(!printed.stdout.contains(ESCAPE));
}

#[test]
fn uses_no_colour_where_nobody_wants_it() {
    let folder = remarkable();
    let variables = [("NO_COLOR", "1"), ("TERM", "xterm-256color")];
    assert!(!folder.run_with(&variables, &["render"]).stderr.contains(ESCAPE));
    let variables = [("NO_COLOR", "1"), ("CLICOLOR_FORCE", "0")];
    assert!(!folder.run_with(&variables, &["render"]).stderr.contains(ESCAPE));
}

#[test]
fn prefers_the_flag_to_the_variable() {
    let folder = remarkable();
    let run = folder.run_with(&[("NO_COLOR", "1")], &["render", "--color=always"]);
    assert!(run.stderr.contains(ESCAPE));
    let run = folder.run_with(&[("CLICOLOR_FORCE", "1")], &["render", "--color=never"]);
    assert!(!run.stderr.contains(ESCAPE));
}

#[test]
fn quiet_runs_print_nothing_on_success() {
    let folder = remarkable();
    for arguments in [
        &["-q", "render"][..],
        &["render", "--quiet"],
        &["render", "--check", "-q"],
        &["validate", "-q"],
        &["verify", "-q"],
        &["capacity", "-q"],
        &["trace", "east/n1", "west/n1", "-q"],
    ] {
        let run = folder.run(arguments);
        let printed = (run.stdout.as_str(), run.stderr.as_str());
        assert_eq!((run.code, printed), (0, ("", "")), "{arguments:?}");
    }
    let run = Folder::empty().run(&["init", "-q"]);
    assert_eq!((run.code, run.stdout.as_str(), run.stderr.as_str()), (0, "", ""));
}

#[test]
fn quiet_runs_print_everything_on_failure() {
    let folder = remarkable();
    for arguments in [
        &["validate", "--fail-on", "warning"][..],
        &["render", "--fail-on", "warning"],
        &["capacity", "south"],
        &["trace", "east/n1", "west/n9"],
    ] {
        let loud = folder.run(arguments);
        let quiet = folder.run(&[arguments, &["-q"]].concat());
        assert_ne!(quiet.code, 0, "{arguments:?}");
        assert_eq!((quiet.code, quiet.stdout), (loud.code, loud.stdout));
        assert_eq!(quiet.stderr, loud.stderr);
    }
}

#[test]
fn quiet_runs_print_output_for_programs() {
    let folder = remarkable();
    assert_eq!(folder.run(&["render"]).code, 0);
    for arguments in [
        &["render", "--target", "west"][..],
        &["validate", "-o", "json"],
        &["verify", "-o", "json"],
        &["capacity", "-o", "json"],
        &["trace", "east/n1", "west/n1", "-o", "json"],
        &["config", "-o", "json"],
    ] {
        let loud = folder.run(arguments);
        let quiet = folder.run(&[arguments, &["-q"]].concat());
        assert_eq!((quiet.code, quiet.stderr.as_str()), (0, ""));
        assert!(!quiet.stdout.is_empty(), "{arguments:?}");
        assert_eq!(quiet.stdout, loud.stdout, "{arguments:?}");
    }
}
