use super::*;

#[test]
fn a_fault_tells_cause_consequence_and_remedy() {
    let found = fault(
        &"east".parse().unwrap(),
        &Fault::Forbidden {
            right: Right::ListNodes,
            user: User {
                origin: "user `x` of kubeconfig".to_owned(),
                has_credentials: true,
            },
            says: "nodes is forbidden: User \"\u{1b}[2Jx\" cannot".to_owned(),
        },
        Some("snapshots/east.json"),
    );
    insta::assert_snapshot!(found.message, @r#"could not be read: the right to `list` `nodes` is missing (403: nodes is forbidden: User "\u{1b}[2Jx" cannot); snapshots/east.json was kept"#);
    insta::assert_snapshot!(found.help.unwrap(), @"`clustermesh rbac` prints the manifests that grant this right");
    let found = fault(
        &"east".parse().unwrap(),
        &Fault::Login {
            command: "aws".to_owned(),
            problem: LoginProblem::Failed {
                status: "exit status: 255".to_owned(),
                stderr: "no such profile\n".to_owned(),
            },
        },
        None,
    );
    insta::assert_snapshot!(found.message, @"could not be read: the login plugin `aws` failed (exit status: 255) with output: no such profile; it has no snapshot yet");
}
