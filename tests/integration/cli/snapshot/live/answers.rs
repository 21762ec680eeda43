//! Answers that arrive, perhaps late.

use std::time::{Duration, Instant};

use super::{Site, nodes};
use crate::api_server::{Answer, NODES, Reply, Setup};
use crate::cli::{SOON, api_node};

/// A failure of the server that passes.
fn passing(failure: impl Fn() -> Reply + Send + Sync + 'static) -> Setup {
    Setup::nodes(&nodes(1)).fault(move |_, number| (number == 1).then(&failure))
}

#[test]
fn asks_only_for_nodes_and_says_who_asks() {
    let site = Site::new(Setup::nodes(&nodes(1)));
    insta::assert_snapshot!(site.success(&[]), @"snapshots/east.json: 2 nodes, 2 usable, written");
    let requests = site.east.requests();
    let [request] = requests.as_slice() else {
        panic!("{requests:?}");
    };
    assert_eq!((request.method.as_str(), request.path.as_str()), ("GET", NODES));
    assert_eq!(request.query["limit"], "250");
    assert_eq!(request.header("accept"), Some("application/json"));
    assert_eq!(request.header("accept-encoding"), Some("gzip"));
    assert_eq!(request.header("authorization"), None);
    let agent = request.header("user-agent").unwrap();
    assert_eq!(agent, concat!("clustermesh/", env!("CARGO_PKG_VERSION")));
    assert_eq!(site.east.connections(), 1);

    let before = site.folder.touches("snapshots");
    let run = site.snapshot(&[]);
    insta::assert_snapshot!(run.stderr, @"
    snapshots/east.json: 2 nodes, 2 usable, unchanged
    snapshots/north.json: 2 nodes, 2 usable, unchanged
    snapshots/west.json: 2 nodes, 2 usable, unchanged
    ");
    assert_eq!(site.folder.touches("snapshots"), before);
}

#[test]
fn reads_page_by_page() {
    let mut many: Vec<_> = (1..=1250_u16)
        .map(|number| {
            let mut node = api_node(1, 1);
            node["metadata"]["name"] = format!("n{number:04}").into();
            node["metadata"]["uid"] = number.to_string().into();
            node
        })
        .collect();
    many.reverse();
    let site = Site::new(Setup::nodes(&many));
    let run = site.snapshot(&["--accept", "east"]);
    assert_eq!(run.code, 0, "{}", run.stderr);
    let kept = site.kept("east");
    assert_eq!(kept.as_array().unwrap().len(), 1250);
    assert_eq!(kept[1249]["name"], "n1250");
    let pages: Vec<_> = site
        .east
        .requests()
        .iter()
        .map(|request| (request.query["limit"].clone(), request.query.contains_key("continue")))
        .collect();
    let page = |more| ("250".to_owned(), more);
    let mut expected = vec![page(false)];
    expected.resize(5, page(true));
    assert_eq!(pages, expected);
    // One that is not yet back when the next page is asked for is not waited for.
    assert!(site.east.connections() < 4);
}

#[test]
fn begins_again_when_the_list_expires() {
    let mut many = vec![api_node(1, 1); 400];
    for (node, number) in many.iter_mut().zip(0_u16..) {
        node["metadata"]["name"] = format!("n{number}").into();
    }
    let setup =
        Setup::nodes(&many).fault(move |_, number| (number == 2).then(|| Answer::expired().into()));
    let site = Site::new(setup);
    let run = site.snapshot(&["--accept", "east"]);
    assert_eq!(run.code, 0, "{}", run.stderr);
    assert_eq!(site.kept("east").as_array().unwrap().len(), 400);
    let begun: Vec<bool> =
        site.east.requests().iter().map(|it| !it.query.contains_key("continue")).collect();
    assert_eq!(begun, [true, false, true, false]);

    let setup = Setup::nodes(&many).fault(move |request, _| {
        request.query.contains_key("continue").then(|| Answer::expired().into())
    });
    let site = Site::new(setup);
    insta::assert_snapshot!(site.failure(&[]), @"
    error[refused-request]: east: could not be read: the server responded 3 times with 410: the list expired before it was read completely; snapshots/east.json was kept
    help: try again later; check the API server and the load balancer in front of it
    ");
    assert_eq!(site.east.requests().len(), 6);
}

#[test]
fn comes_again_when_it_is_reported() {
    let site = Site::new(passing(|| Answer::too_many("1").into()));
    let start = Instant::now();
    insta::assert_snapshot!(site.success(&[]), @"snapshots/east.json: 2 nodes, 2 usable, written");
    assert!(Duration::from_secs(1) <= start.elapsed());
    assert_eq!(site.east.requests().len(), 2);

    let site = Site::new(passing(|| Answer::too_many("86400").into()));
    insta::assert_snapshot!(site.failure(&[]), @"
    error[refused-request]: east: could not be read: the server responded with 429; snapshots/east.json was kept
    help: try again later; check the API server and the load balancer in front of it
    ");
    assert_eq!(site.east.requests().len(), 1);
}

#[test]
fn is_patient_with_a_server_that_has_too_much_to_do() {
    let busy = |times: usize| {
        Setup::nodes(&nodes(1))
            .fault(move |_, number| (number <= times).then(|| Answer::too_many("1").into()))
    };
    // More often than it asks again after other errors.
    let site = Site::new(busy(6));
    site.success(&["--timeout", "20"]);
    assert_eq!(site.east.requests().len(), 7);

    let site = Site::new(busy(100));
    let start = Instant::now();
    let failure = site.failure(&["--timeout", "3"]);
    let took = start.elapsed();
    assert!(took < SOON, "{took:?}");
    // After 0, 1 and 2 seconds. On a slow machine, the third one may be too late.
    let asked = site.east.requests().len();
    assert!((2..=3).contains(&asked), "{asked}");
    insta::assert_snapshot!(failure.replace(&asked.to_string(), "N"), @"
    error[refused-request]: east: could not be read: the server responded N times with 429; snapshots/east.json was kept
    help: try again later; check the API server and the load balancer in front of it
    ");
}

#[test]
fn asks_again_after_what_may_pass() {
    let failures: [fn() -> Reply; 6] = [
        || Answer::failure(500, "InternalError", "etcd has no leader").into(),
        || Answer::new(503, "text/plain", "no healthy upstream").into(),
        || Reply::Cut(crate::api_server::list(&nodes(1), None)),
        || Reply::CutChunks(crate::api_server::list(&nodes(1), None)),
        || Reply::CutToFit(crate::api_server::list(&nodes(1), None)),
        || Reply::HangUp,
    ];
    for failure in failures {
        let site = Site::new(passing(failure));
        assert_eq!(site.success(&[]), "snapshots/east.json: 2 nodes, 2 usable, written\n");
        assert_eq!(site.east.requests().len(), 2);
    }
}

#[test]
fn goes_on_where_a_page_broke_off() {
    let mut many = vec![api_node(1, 1); 400];
    for (node, number) in many.iter_mut().zip(0_u16..) {
        node["metadata"]["name"] = format!("n{number}").into();
    }
    let setup = Setup::nodes(&many).fault(|_, number| (number == 2).then_some(Reply::HangUp));
    let site = Site::new(setup);
    let run = site.snapshot(&["--accept", "east"]);
    assert_eq!(run.code, 0, "{}", run.stderr);
    assert_eq!(site.kept("east").as_array().unwrap().len(), 400);
    assert_eq!(site.east.requests().len(), 3);
}
