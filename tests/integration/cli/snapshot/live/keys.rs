//! Keys: for any mistake in a key, in any field of a kubeconfig, no part of it is printed. The
//! libraries' own errors quote it.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rcgen::{KeyPair, PKCS_ECDSA_P256_SHA256, PKCS_ED25519};
use serde_json::json;

use super::several::many;
use super::{SNAPSHOT, Site, nodes};
use crate::api_server::{Authority, Context, Login, Setup};

/// An RSA key that is used nowhere else.
const RSA: &str = include_str!("rsa.pem");

/// How much of a key may be printed.
const RUN: usize = 8;

/// Where a text is put.
type Place = fn(Context, String) -> Context;

/// Fields that hold a text, and would not do so in base64.
const PLAIN: [Place; 12] = [
    |context, text| context.user("client-key", text),
    |context, text| context.user("client-certificate", text),
    |context, text| context.user("tokenFile", text),
    |context, text| context.user("token", text),
    |context, text| context.user("as", text),
    |context, text| context.user("username", text).user("password", "x"),
    |context, text| context.user("username", "x").user("password", text),
    |context, text| context.cluster("certificate-authority", text),
    |context, text| context.cluster("server", text),
    |context, text| context.cluster("proxy-url", text),
    |context, text| context.cluster("tls-server-name", text),
    |context, text| context.plugin("/bin/cat", &["/nowhere", &text]),
];

/// Fields that hold a text in base64.
const DATA: [Place; 4] = [
    |context, text| context.user("client-key-data", text),
    |context, text| {
        context.user("client-key-data", text.as_str()).user("client-certificate-data", text)
    },
    |context, text| context.user("client-certificate-data", text),
    |context, text| context.cluster("certificate-authority-data", text),
];

/// Fields that name a file.
const FILES: [Place; 4] = [
    |context, file| context.user("client-key", file.as_str()).user("client-certificate", file),
    |context, file| context.user("client-certificate", file),
    |context, file| context.user("tokenFile", file),
    |context, file| context.cluster("certificate-authority", file),
];

/// Returns a key in PEM, broken in several ways.
fn broken(key: &str) -> Vec<String> {
    let lines: Vec<&str> = key.lines().collect();
    let (begin, end) = (lines[0], lines[lines.len() - 1]);
    let body = lines[1..lines.len() - 1].join("\n");
    let joined = body.replace('\n', "");
    let half = &joined[..joined.len() / 2];
    vec![
        key.replace('\n', ""),
        key.replace('\n', "\\n"),
        key.replace('\n', " "),
        key.replace("-----", "----"),
        format!("{begin}{body}\n{end}\n"),
        format!("{begin}\n{body}\n"),
        format!("{begin}\n{body}{end}\n"),
        format!("{begin}\n{half}\n{end}\n"),
        format!("{begin}\n!{body}\n{end}\n"),
        format!("{begin}\n{body}=\n{end}\n"),
        format!("{end}\n{body}\n{begin}\n"),
        key.replace("PRIVATE KEY", "SECRET KEY"),
        key.replace("PRIVATE KEY", "ENCRYPTED PRIVATE KEY"),
        key.replace("PRIVATE KEY", "CERTIFICATE"),
        key.replace('\n', "\n  "),
        format!("-----BEGIN {body}-----\n{body}\n-----END {body}-----\n"),
        joined,
        STANDARD.encode(key),
    ]
}

/// Returns every run of a key that no output may have, as any library might write it.
fn runs(key: &str) -> BTreeSet<String> {
    let body: String = key.lines().filter(|it| !it.starts_with('-')).collect();
    let text = key.lines().filter(|it| !it.starts_with('-')).collect::<Vec<_>>().join("\n");
    let der = STANDARD.decode(&body).unwrap();
    let mut written = vec![body.clone(), STANDARD.encode(key), format!("{:?}", text)];
    for bytes in [der.as_slice(), text.as_bytes()] {
        let list = |form: fn(&u8) -> String, between: &str| {
            bytes.iter().map(form).collect::<Vec<_>>().join(between)
        };
        for between in ["", ":", " ", ", ", ","] {
            written.push(list(|it| format!("{it:02x}"), between));
            written.push(list(|it| format!("{it:02X}"), between));
        }
        for between in [", ", ",", " "] {
            written.push(list(u8::to_string, between));
        }
        written.push(list(|it| format!("\\x{it:02x}"), ""));
        written.push(bytes.escape_ascii().to_string());
        written.push(STANDARD.encode(bytes));
    }
    let mut runs = BTreeSet::new();
    for text in written {
        let characters: Vec<char> = text.chars().collect();
        runs.extend(characters.windows(RUN).map(|it| it.iter().collect::<String>()));
    }
    runs
}

fn assert_hidden(output: &str, key: &str) {
    let runs = runs(key);
    for line in output.lines() {
        let characters: Vec<char> = line.chars().collect();
        for run in characters.windows(RUN) {
            let run: String = run.iter().collect();
            assert!(!runs.contains(&run), "{run:?} is in {line}");
        }
    }
}

fn keys() -> [String; 3] {
    let generated = |kind| KeyPair::generate_for(kind).unwrap().serialize_pem();
    [RSA.to_owned(), generated(&PKCS_ED25519), generated(&PKCS_ECDSA_P256_SHA256)]
}

#[test]
fn are_never_printed() {
    let certificate = STANDARD.encode(Authority::new("ours").user("ada").certificate);
    for key in keys() {
        let mut cases: Vec<(Place, String)> = Vec::new();
        let mut files = Vec::new();
        for text in broken(&key) {
            let data = STANDARD.encode(&text);
            cases.extend(DATA.map(|place| (place, data.clone())));
            let name = format!("keys/{}", files.len());
            cases.extend(FILES.map(|place| (place, name.clone())));
            files.push((name, text));
        }
        let body: String = key.lines().filter(|it| !it.starts_with('-')).collect();
        for text in [&key, &key.replace('\n', ""), &STANDARD.encode(&key), &body] {
            cases.extend(DATA.map(|place| (place, text.clone())));
            cases.extend(PLAIN.map(|place| (place, text.clone())));
        }
        let output = report(&cases, &files, &certificate);
        assert_hidden(&output, &key);
    }
}

/// Returns the messages of a run about clusters, each of which has one of these fields.
fn report(cases: &[(Place, String)], files: &[(String, String)], certificate: &str) -> String {
    let mut report = String::new();
    // It has no TLS, which ends a connection without another attempt.
    let server = Setup::default().start();
    let url = format!("https://{}", server.address());
    for part in cases.chunks(200) {
        let (folder, names) = many(part.len(), |name| {
            let number: usize = name[1..].parse().unwrap();
            let (place, text) = &part[number];
            let context = Context::new(name, &url).user("client-certificate-data", certificate);
            place(context, text.clone())
        });
        for (name, text) in files {
            folder.write(name, text);
        }
        let run = folder.run_with(&[], &[&SNAPSHOT[..], &["--timeout", "9"]].concat());
        assert_eq!((run.code, run.stdout.as_str()), (2, ""), "{}", run.stderr);
        for name in names {
            let line = format!("]: {name}: could not be read: ");
            assert!(run.stderr.contains(&line), "{name}\n{}", run.stderr);
        }
        report.push_str(&run.stderr);
    }
    report
}

/// What would be printed without a sentence of our own: the test above can fail.
#[test]
fn would_be_recognised() {
    for key in keys() {
        for text in broken(&key) {
            let mut decimal = String::new();
            for byte in text.bytes().skip(40) {
                let _ = write!(decimal, "{byte}, ");
            }
            let report = [format!("{text:?}"), decimal];
            for report in report {
                let found = std::panic::catch_unwind(|| assert_hidden(&report, &key));
                assert!(found.is_err(), "{report}");
            }
        }
    }
}

/// A fixed sentence for every field.
#[test]
fn are_wrong_in_a_field_that_is_named() {
    let user = Authority::new("ours").user("ada");
    let (certificate, key) = (STANDARD.encode(&user.certificate), STANDARD.encode(&user.key));
    let said = |context: &dyn Fn(Context) -> Context| {
        let site = Site::new(Setup::nodes(&nodes(1)));
        site.folder.write("broken", user.key.replace('\n', ""));
        site.folder.write("ada.key", &user.key);
        let url = "https://127.0.0.1:1";
        site.reach(|it| context(it.cluster("server", url)));
        let run = site.snapshot(&["east"]);
        assert_eq!(run.code, 2);
        let line = run.stderr.lines().next().unwrap().to_owned();
        let report = line.split_once("could not be read: ").unwrap().1;
        report.rsplit_once("; snapshots").unwrap().0.to_owned()
    };
    let of_user = |fields: &[(&str, &str)]| {
        said(&|context| {
            fields.iter().fold(context, |context, (field, value)| context.user(field, *value))
        })
    };
    let sentences = [
        of_user(&[("client-certificate-data", "!"), ("client-key-data", &key)]),
        of_user(&[("client-certificate-data", &key), ("client-key-data", &key)]),
        of_user(&[("client-certificate", "broken"), ("client-key-data", &key)]),
        of_user(&[("client-certificate-data", &certificate), ("client-key-data", "!")]),
        of_user(&[("client-certificate-data", &certificate), ("client-key-data", &certificate)]),
        of_user(&[("client-certificate-data", &certificate), ("client-key", "broken")]),
        of_user(&[("client-certificate-data", &certificate), ("client-key", &key)]),
        of_user(&[("client-certificate-data", &certificate)]),
        of_user(&[("client-key", "ada.key")]),
        of_user(&[
            ("client-certificate-data", &certificate),
            ("client-key-data", &STANDARD.encode(&keys()[1])),
        ]),
        of_user(&[
            ("client-certificate-data", &certificate),
            (
                "client-key-data",
                &STANDARD
                    .encode("-----BEGIN PRIVATE KEY-----\nc2VzYW1l\n-----END PRIVATE KEY-----\n"),
            ),
        ]),
        of_user(&[("tokenFile", &key)]),
        of_user(&[("as", "ada\n")]),
        said(&|context| context.cluster("certificate-authority-data", "!")),
        said(&|context| context.cluster("certificate-authority-data", key.as_str())),
        said(&|context| context.cluster("certificate-authority", "broken")),
        said(&|context| context.cluster("certificate-authority", "nowhere")),
        said(&|context| {
            context.cluster(
                "certificate-authority-data",
                STANDARD
                    .encode("-----BEGIN CERTIFICATE-----\nc2VzYW1l\n-----END CERTIFICATE-----\n"),
            )
        }),
        said(&|context| context.cluster("tls-server-name", "not a name")),
    ];
    insta::assert_snapshot!(sentences.join("\n"), @"
    `client-certificate-data` is not valid base64 (kubeconfig)
    `client-certificate-data` contains no certificate in PEM (kubeconfig)
    `client-certificate` is not valid PEM (kubeconfig)
    `client-key-data` is not valid base64 (kubeconfig)
    `client-key-data` contains no private key in PEM; an encrypted one cannot be used (kubeconfig)
    `client-key` is not valid PEM (kubeconfig)
    the file of `client-key` cannot be read: File name too long (os error 36) (kubeconfig)
    `client-certificate-data` needs a client key (kubeconfig)
    `client-key` needs a client certificate (kubeconfig)
    the client key does not belong to the client certificate (the credentials for 127.0.0.1:1)
    the client key is not a valid RSA, ECDSA or Ed25519 key (the credentials for 127.0.0.1:1)
    the file of `tokenFile` cannot be read: File name too long (os error 36) (kubeconfig)
    `as`, `as-uid`, `as-groups` or `as-user-extra` contains characters that are not allowed in HTTP headers (the credentials for 127.0.0.1:1)
    `certificate-authority-data` is not valid base64 (kubeconfig)
    `certificate-authority-data` contains no certificate in PEM (kubeconfig)
    `certificate-authority` is not valid PEM (kubeconfig)
    the file of `certificate-authority` cannot be read: No such file or directory (os error 2) (kubeconfig)
    a certificate of the certificate authority is not valid, or the system has no trusted certificates (the credentials for 127.0.0.1:1)
    `tls-server-name` is not a host name (the credentials for 127.0.0.1:1)
    ");
}

/// As kubectl does: line ends in base64 count for nothing, and one file may hold both.
#[test]
fn are_used_as_kubectl_uses_them() {
    let authority = Authority::new("ours");
    let user = authority.user("ada");
    let setup = Setup::nodes(&nodes(1)).login(Login::Certificate);
    let server = setup.tls_for(&authority.server(&["127.0.0.1"]), &authority);
    let wrapped = |text: &str| {
        let text = STANDARD.encode(text);
        text.as_bytes()
            .chunks(76)
            .map(|line| str::from_utf8(line).unwrap())
            .collect::<Vec<_>>()
            .join("\n")
    };
    let site = Site::with(server.start(), |context| {
        context
            .trusting(&authority)
            .user("client-certificate-data", wrapped(&user.certificate))
            .user("client-key-data", wrapped(&user.key))
    });
    site.success(&[]);
    let both = format!("{}{}", user.certificate, user.key.trim_end());
    site.folder.write("both.pem", both);
    site.reach(|context| {
        context
            .trusting(&authority)
            .user("client-certificate", "both.pem")
            .user("client-key", "both.pem")
    });
    assert_eq!(site.snapshot(&["east"]).code, 0);
}

/// The keys that a login plugin prints are as secret.
#[test]
fn of_a_plugin_are_never_printed() {
    let certificate = Authority::new("ours").user("ada").certificate;
    for key in keys() {
        let mut cases: Vec<(Place, String)> = Vec::new();
        let mut files = Vec::new();
        for text in broken(&key) {
            let credentials = [
                json!({ "clientCertificateData": certificate, "clientKeyData": text }),
                json!({ "clientCertificateData": text, "clientKeyData": key }),
                json!({ "token": text }),
                json!({ "token": { "token": text } }),
            ];
            for status in credentials {
                let name = format!("keys/{}", files.len());
                let credential = json!({ "kind": "ExecCredential", "status": status });
                files.push((name.clone(), credential.to_string()));
                cases.push((|it, file| it.plugin("/bin/cat", &[&file]), name));
            }
        }
        let output = report(&cases, &files, "");
        assert_hidden(&output, &key);
    }
}
