use super::StepOrder::{AppliesFirst, DeletesFirst, Mixed};
use super::*;

fn read(text: &str) -> Vec<ArgoApplication> {
    ArgoApplication::all("app.yaml", text)
}

/// Returns the order of the only Application that delivers a cluster.
fn order(text: &str, cluster: &str) -> Option<StepOrder> {
    let all = read(text);
    let mut delivering = all.iter().filter(|it| it.delivers("rendered", cluster));
    let first = delivering.next().map(|it| it.order);
    assert_eq!(delivering.next(), None);
    first
}

fn application(path: &str, options: &str) -> String {
    format!(
        "apiVersion: argoproj.io/v1alpha1\nkind: Application\nspec:\n  source: {{ path: '{path}' }}\n  syncPolicy: \
         {{ syncOptions: [{options}] }}\n"
    )
}

#[test]
fn files_of_this_repository_delete_first() {
    let files = [
        include_str!("../../argocd/application.yaml"),
        include_str!("../../argocd/applicationset.yaml"),
        include_str!("../../argocd/applicationset-directories.yaml"),
        include_str!("../../argocd/plugin/application.yaml"),
    ];
    for text in files {
        assert_eq!(order(text, "west"), Some(StepOrder::DeletesFirst), "{text}");
        let foreground = text.replace("=background", "=foreground");
        assert_eq!(order(&foreground, "west"), Some(StepOrder::Mixed));
    }
    assert_eq!(order(files[0], "east"), None);
    assert_eq!(order(include_str!("../../argocd/project.yaml"), "west"), None);
    // The Services of a cluster are not its Peers.
    assert_eq!(order(include_str!("../../argocd/services-application.yaml"), "west"), None);
}

#[test]
fn options_give_the_order() {
    for (options, expected) in [
        ("", StepOrder::Mixed),
        ("PrunePropagationPolicy=foreground", StepOrder::Mixed),
        // The garbage collector removes the finalizer `orphan`, as it removes that of `foreground`.
        ("PrunePropagationPolicy=orphan", StepOrder::Mixed),
        ("PrunePropagationPolicy=Background", StepOrder::Mixed),
        ("PrunePropagationPolicy=background", StepOrder::DeletesFirst),
        ("PrunePropagationPolicy=background, PruneLast=true", StepOrder::AppliesFirst),
        ("PruneLast=true", StepOrder::AppliesFirst),
    ] {
        let text = application("rendered/west", options);
        assert_eq!(order(&text, "west"), Some(expected), "{options}");
    }
}

#[test]
fn paths_give_the_clusters() {
    for (path, clusters) in [
        ("rendered/west", &["west"][..]),
        ("./mesh/rendered/west/", &["west"]),
        ("rendered/{{.name}}", &["east", "west"]),
        ("rendered/{{ target }}-1", &["west-1"]),
        ("other/west", &[]),
        ("west", &[]),
        ("{{.path.path}}", &[]),
        ("", &[]),
    ] {
        let text = application(path, "");
        let known = ["east", "west", "west-1"];
        let delivered = known.iter().filter(|it| order(&text, it).is_some());
        let expected = clusters.iter().filter(|it| known.contains(it));
        let is_open = path == "rendered/{{.name}}";
        let expected: Vec<_> = if is_open { known.iter().collect() } else { expected.collect() };
        assert_eq!(delivered.collect::<Vec<_>>(), expected, "{path}");
    }
    let several = application("rendered/west", "").replace(
        "source: { path: 'rendered/west' }",
        "sources: [{ chart: a }, { path: rendered/west }, { path: rendered/east }]",
    );
    assert_eq!(order(&several, "east"), Some(StepOrder::Mixed));
    let nested = "apiVersion: argoproj.io/v1alpha1\nkind: ApplicationSet\nspec:\n  generators:\n  - matrix:\n      \
                  generators:\n      - git: { directories: [{ path: 'net/rendered/*' }] }\n  template: { spec: { source: \
                  { path: '{{.path.path}}' } } }\n";
    assert_eq!(order(nested, "east"), Some(StepOrder::Mixed));
    assert_eq!(order(&nested.replace("rendered", "apps"), "east"), None);
}

#[test]
fn other_texts_have_none() {
    for text in [
        "",
        "a: [",
        "argoproj.io/",
        "apiVersion: argoproj.io/v1alpha1\nkind: AppProject\nspec: {}\n",
        "apiVersion: v1\nkind: Application\nspec: { source: { path: rendered/west } } # argoproj.io/\n",
        "apiVersion: [argoproj.io/v1alpha1]\nkind: Application\n",
    ] {
        assert_eq!(read(text), [], "{text}");
    }
}

#[test]
fn without_an_application_argo_cd_has_no_order() {
    let west: ClusterName = "west".parse().unwrap();
    let orders = |applied_by, known: &[StepOrder]| {
        let argo_cd = known.iter().map(|it| (west.clone(), *it)).collect();
        let engines = Engines { applied_by, argo_cd };
        engines.orders(&west).into_iter().collect::<Vec<_>>()
    };
    assert_eq!(orders(Some(Engine::Flux), &[]), [AppliesFirst]);
    assert_eq!(orders(Some(Engine::ArgoCd), &[]), [Mixed]);
    assert_eq!(orders(Some(Engine::ArgoCd), &[DeletesFirst]), [DeletesFirst]);
    assert_eq!(orders(None, &[]), [AppliesFirst, Mixed]);
    assert_eq!(orders(None, &[DeletesFirst]), [AppliesFirst, DeletesFirst]);
}
