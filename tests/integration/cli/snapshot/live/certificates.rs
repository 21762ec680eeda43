//! Whom we trust, and who we are.

use super::{Site, nodes};
use crate::api_server::{ApiServer, Authority, Identity, Login, Setup};

const HERE: [&str; 2] = ["127.0.0.1", "localhost"];

fn server(identity: &Identity) -> ApiServer {
    Setup::nodes(&nodes(1)).tls(identity).start()
}

#[test]
fn trusts_the_authority_of_the_kubeconfig() {
    let authority = Authority::new("ours");
    let site = Site::with(server(&authority.server(&HERE)), |it| it.trusting(&authority));
    insta::assert_snapshot!(site.success(&[]), @"snapshots/east.json: 2 nodes, 2 usable, written");
}

#[test]
fn trusts_an_authority_in_a_file() {
    let authority = Authority::new("ours");
    let site = Site::with(server(&authority.server(&HERE)), |context| {
        context.cluster("certificate-authority", "pki/ca.crt")
    });
    insta::assert_snapshot!(site.failure(&[]), @"
    error[invalid-kubeconfig]: east: could not be read: the file of `certificate-authority` cannot be read: No such file or directory (os error 2) (kubeconfig); snapshots/east.json was kept
    help: check `kubectl config view`, or choose another kubeconfig with `--kubeconfig`, `KUBECONFIG` or the config
    ");
    site.folder.write("pki/ca.crt", "not a certificate");
    insta::assert_snapshot!(site.snapshot(&["east"]).stderr, @"
    error[invalid-kubeconfig]: east: could not be read: `certificate-authority` contains no certificate in PEM (kubeconfig); snapshots/east.json was kept
    help: check `kubectl config view`, or choose another kubeconfig with `--kubeconfig`, `KUBECONFIG` or the config
    ");
    site.folder.write("pki/ca.crt", authority.pem());
    let run = site.snapshot(&["east"]);
    assert_eq!(run.code, 0, "{}", run.stderr);
}

#[test]
fn does_not_trust_another_authority() {
    let theirs = Authority::new("theirs").server(&HERE);
    let ours = Authority::new("ours");
    let site = Site::with(server(&theirs), |context| {
        context.trusting(&ours).user("token", "sesame-sesame")
    });
    insta::assert_snapshot!(site.failure(&[]), @"
    error[untrusted-certificate]: east: could not be read: the certificate of 127.0.0.1:PORT is signed by an unknown authority; snapshots/east.json was kept
    help: check `certificate-authority-data` in the kubeconfig
    ");
    assert_eq!(site.east.requests().len(), 0);
    // Nor without one in the kubeconfig.
    site.reach(|context| context);
    insta::assert_snapshot!(site.snapshot(&["east"]).stderr.replace(&site.east.address().to_string(), "SERVER"), @"
    error[untrusted-certificate]: east: could not be read: the certificate of SERVER is signed by an unknown authority; snapshots/east.json was kept
    help: check `certificate-authority-data` in the kubeconfig
    ");
}

#[test]
fn wants_the_certificate_of_this_host() {
    let authority = Authority::new("ours");
    let other = server(&authority.server(&["api.east.example"]));
    let site = Site::with(other, |context| context.trusting(&authority));
    insta::assert_snapshot!(site.failure(&[]), @"
    error[untrusted-certificate]: east: could not be read: the certificate of 127.0.0.1:PORT is for another host; snapshots/east.json was kept
    help: check `server` in the kubeconfig, or add `tls-server-name`
    ");
    site.reach(|context| {
        context.trusting(&authority).cluster("tls-server-name", "api.east.example")
    });
    let run = site.snapshot(&["east"]);
    assert_eq!(run.code, 0, "{}", run.stderr);
}

#[test]
fn wants_a_certificate_of_these_days() {
    let authority = Authority::new("ours");
    let expired = server(&authority.expired_server(&HERE));
    let site = Site::with(expired, |context| context.trusting(&authority));
    insta::assert_snapshot!(site.failure(&[]), @"
    error[untrusted-certificate]: east: could not be read: the certificate of 127.0.0.1:PORT is not valid at this time; snapshots/east.json was kept
    help: renew the certificate, or correct the clock of this machine
    ");
}

#[test]
fn warns_when_it_must_not_look() {
    let theirs = Authority::new("theirs").server(&HERE);
    let site =
        Site::with(server(&theirs), |context| context.cluster("insecure-skip-tls-verify", true));
    insta::assert_snapshot!(site.success(&[]), @"
    snapshots/east.json: 2 nodes, 2 usable, written
    warning[unchecked-certificate]: east: its certificate is not checked (`insecure-skip-tls-verify`): an attacker on the path could forge the node list
    ");
}

/// A certificate that is its own authority, as people make them with one line of openssl. Go's
/// verifier takes it.
#[test]
fn does_not_trust_an_authority_as_a_server() {
    let authority = Authority::new("ours");
    let itself = server(&authority.as_server(&HERE));
    let site = Site::with(itself, |context| context.trusting(&authority));
    insta::assert_snapshot!(site.failure(&[]), @"
    error[untrusted-certificate]: east: could not be read: the certificate of 127.0.0.1:PORT is a CA certificate, which cannot be used as a server certificate; snapshots/east.json was kept
    help: give the API server a certificate for servers, signed by its certificate authority
    ");
    assert_eq!(site.east.requests().len(), 0);
}

#[test]
fn does_not_trust_a_user_as_a_server() {
    let authority = Authority::new("ours");
    let site = Site::with(server(&authority.user("127.0.0.1")), |context| {
        context.trusting(&authority).cluster("tls-server-name", "localhost")
    });
    insta::assert_snapshot!(site.failure(&[]), @"
    error[untrusted-certificate]: east: could not be read: the certificate of 127.0.0.1:PORT is not a server certificate (`serverAuth` is missing); snapshots/east.json was kept
    help: give the API server a certificate for servers, signed by its certificate authority
    ");
}

/// As after a rebuild: kubeadm and k3s call every authority the same.
#[test]
fn does_not_trust_an_authority_of_the_same_name() {
    let theirs = Authority::new("kubernetes").server(&HERE);
    let ours = Authority::new("kubernetes");
    let site = Site::with(server(&theirs), |context| context.trusting(&ours));
    insta::assert_snapshot!(site.failure(&[]), @"
    error[untrusted-certificate]: east: could not be read: the certificate of 127.0.0.1:PORT is signed by an authority with the name of a trusted one but another key; snapshots/east.json was kept
    help: check `certificate-authority-data` in the kubeconfig
    ");
}

/// A server that knows the users of an authority.
fn exclusive(authority: &Authority) -> ApiServer {
    let setup = Setup::nodes(&nodes(1)).login(Login::Certificate);
    setup.tls_for(&authority.server(&HERE), authority).start()
}

#[test]
fn shows_its_certificate() {
    let authority = Authority::new("ours");
    let user = authority.user("ada");
    let site = Site::with(exclusive(&authority), |context| {
        context.trusting(&authority).identified_by(&user)
    });
    insta::assert_snapshot!(site.success(&[]), @"snapshots/east.json: 2 nodes, 2 usable, written");
}

#[test]
fn shows_a_certificate_from_files() {
    let authority = Authority::new("ours");
    let user = authority.user("ada");
    let site = Site::with(exclusive(&authority), |context| {
        context
            .trusting(&authority)
            .user("client-certificate", "pki/ada.crt")
            .user("client-key", "pki/ada.key")
    });
    site.folder.write("pki/ada.crt", &user.certificate);
    insta::assert_snapshot!(site.failure(&[]), @"
    error[invalid-kubeconfig]: east: could not be read: the file of `client-key` cannot be read: No such file or directory (os error 2) (kubeconfig); snapshots/east.json was kept
    help: check `kubectl config view`, or choose another kubeconfig with `--kubeconfig`, `KUBECONFIG` or the config
    ");
    site.folder.write("pki/ada.key", &user.key);
    let run = site.snapshot(&["east"]);
    assert_eq!(run.code, 0, "{}", run.stderr);
    site.folder
        .write("pki/ada.key", "-----BEGIN PRIVATE KEY-----\nc2VzYW1l\n-----END PRIVATE KEY-----\n");
    insta::assert_snapshot!(site.redacted(&site.snapshot(&["east"]).stderr), @"
    error[invalid-kubeconfig]: east: could not be read: the client key is not a valid RSA, ECDSA or Ed25519 key (the credentials for 127.0.0.1:PORT); snapshots/east.json was kept
    help: check `kubectl config view`, or choose another kubeconfig with `--kubeconfig`, `KUBECONFIG` or the config
    ");
}

#[test]
fn hears_that_its_certificate_is_not_taken() {
    let authority = Authority::new("ours");
    let stranger = Authority::new("theirs").user("eve");
    let site = Site::with(exclusive(&authority), |context| {
        context.trusting(&authority).identified_by(&stranger)
    });
    insta::assert_snapshot!(site.failure(&[]), @"
    error[untrusted-certificate]: east: could not be read: the certificate of 127.0.0.1:PORT is valid, but the server refuses our client certificate; snapshots/east.json was kept
    help: renew the client certificate in the kubeconfig if it has expired
    ");
    site.reach(|context| context.trusting(&authority));
    insta::assert_snapshot!(site.redacted(&site.snapshot(&["east"]).stderr), @"
    error[unauthorized]: east: could not be read: 127.0.0.1:PORT requires credentials, and user `east` of kubeconfig has none (401: Unauthorized); snapshots/east.json was kept
    help: add a token, a client certificate or a login plugin (`exec`) to user `east` of kubeconfig
    ");
}
