//! Advice about Peers that are not those of the rendered tree.

use super::{findings, peers_of};
use crate::cli::*;
use crate::support::assert_contains;

/// Returns the help of a run that fails.
fn help(folder: &Folder, arguments: &[&str]) -> String {
    let run = folder.run(arguments);
    assert_eq!(run.code, 1, "{}{}", run.stdout, run.stderr);
    let text = format!("{}{}", run.stdout, run.stderr);
    let help = text.lines().find(|it| it.contains("help: "));
    help.unwrap_or_else(|| panic!("{text}")).trim().to_owned()
}

/// Another Peer of the cluster is missing, so Flux or Argo CD has something to apply, but it does not help.
#[test]
fn what_no_delivery_mends() {
    let folder = Folder::rendered();
    let east = folder.read("rendered/west/prod--east.yaml");
    let foreign = "\
---
apiVersion: kilo.squat.ai/v1alpha1
kind: Peer
metadata: { name: a-laptop }
spec: { publicKey: 'bGFwdG9wbGFwdG9wbGFwdG9wbGFwdG9wbGFwdG9wbHA=', allowedIPs: ['10.1.1.0/24'] }
";
    folder.write("west.yaml", format!("{east}{foreign}"));
    let trace = ["trace", "west/n1", "east/n1", "--peers", "west=west.yaml"];
    insta::assert_snapshot!(help(&folder, &trace), @"help: remove 10.1.1.0/24 from the Peer a-laptop, which clustermesh did not render");
    let verify = ["verify", "--peers", "west=west.yaml"];
    assert_contains(
        &folder.run(&verify).stdout,
        "from the Peer a-laptop, which clustermesh did not render",
    );
    folder.write("west.yaml", &east);
    assert_eq!(folder.run(&trace).code, 0);
    // What is missing is what this path needs.
    let trace = ["trace", "west/n1", "north/n1", "--peers", "west=west.yaml"];
    insta::assert_snapshot!(help(&folder, &trace), @"help: the rendered tree is up to date: let Flux or Argo CD apply it in `west`; if that is done, dump the Peers again: the file of `--peers` is old");

    // A node that is left out is missing from the tree too.
    let mut undeclared = node(1, 2);
    undeclared["podCIDRs"] = json!(["10.77.2.0/24"]);
    folder.keep("east", &[node(1, 1), undeclared, node(1, 3)]);
    assert_eq!(folder.run(&["render"]).code, 0);
    folder.write("west.yaml", folder.read("rendered/west/prod--east.yaml"));
    let trace = ["trace", "west/n1", "east/n2", "--peers", "west=west.yaml"];
    insta::assert_snapshot!(help(&folder, &trace), @"help: `clustermesh validate` lists the nodes and ranges that are left out");
    assert_eq!(findings(&folder)[0][0], "undeclared-pod-cidr");
}

/// Peers from a file may be old, or of another cluster.
#[test]
fn an_old_or_wrong_dump() {
    let folder = Folder::rendered();
    let trace = ["trace", "west/n1", "east/n1", "--peers", "west=dump.yaml"];
    folder.write("dump.yaml", peers_of(&folder, "west", "- \"10.1.1.0/24\""));
    assert_contains(&help(&folder, &trace), "the file of `--peers` is old");
    let east = [
        folder.read("rendered/east/prod--north.yaml"),
        folder.read("rendered/east/prod--west.yaml"),
    ];
    folder.write("dump.yaml", east.join("---\n"));
    insta::assert_snapshot!(help(&folder, &trace), @"help: dump the Peers of `west` again: the file of `--peers` has a Peer with the key of a node of `west`, so it is probably of another cluster");
    folder.write("dump.yaml", peers_of(&folder, "west", ""));
    assert_eq!(folder.run(&trace).code, 0);
    let run = folder.run(&[&trace[..], &["--peers", "west=dump.yaml"]].concat());
    assert_eq!(run.code, 2);
    insta::assert_snapshot!(run.stderr, @"error: --peers: `west` has more than one file; put all of its Peers into one");
}
