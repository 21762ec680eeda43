//! Examples: what people and other programs find in this repository, against its schema.

use super::*;

const MODELINE: &str = "# yaml-language-server: $schema=";

/// The schema of a document, as `kubeconform` finds it.
fn schema_of(document: &Value) -> Option<(String, Value)> {
    let (group, version) = document["apiVersion"].as_str()?.split_once('/')?;
    let kind = document["kind"].as_str()?.to_lowercase();
    let file = format!("{group}/{kind}_{version}.json");
    let is_there = folder().join(&file).is_file();
    is_there.then(|| (file.clone(), schema(&file)))
}

fn examples() -> Vec<PathBuf> {
    let mut files = files_under(&project().join("examples"));
    files.retain(|path| {
        let extension = path.extension().and_then(|it| it.to_str());
        extension.is_some_and(|it| ["json", "yaml", "yml"].contains(&it))
    });
    files
}

/// A file that shows mistakes need not please a schema, but what is right must.
#[test]
fn every_example_fits_its_schema() {
    let strict = schema("kilo.squat.ai/peer-strict_v1alpha1.json");
    let mut held = [0; 3];
    for path in examples() {
        for document in documents(&fs::read_to_string(&path).unwrap()) {
            let Some((file, schema)) = schema_of(&document) else {
                continue;
            };
            let kind = document["kind"].as_str().unwrap();
            let is_right = match kind {
                "NodeSnapshot" => {
                    let cluster = path.file_stem().unwrap().to_str().unwrap();
                    Snapshot::read(&cluster.parse().unwrap(), &document.to_string()).is_ok()
                }
                _ => is_taken(kind, &document),
            };
            let place = format!("{} and {file}", path.display());
            if is_right {
                assert_eq!(violations(&schema, &document), [""; 0], "{place}");
            }
            if kind == "Peer" {
                assert_eq!(violations(&strict, &document), [""; 0], "{place}");
            }
            let count = ["ClusterMesh", "NodeSnapshot", "Peer"].map(|it| kind == it && is_right);
            for (held, counts) in held.iter_mut().zip(count) {
                *held += usize::from(counts);
            }
        }
    }
    let [meshes, snapshots, peers] = held;
    assert!(3 <= meshes && 10 <= snapshots && 20 <= peers, "{held:?}");
}

#[test]
fn every_file_that_people_write_names_its_schema() {
    let mut held = 0;
    for path in examples() {
        let text = fs::read_to_string(&path).unwrap();
        let is_ours = |kind: &str| text.lines().any(|line| line == format!("kind: {kind}"));
        if !["ClusterMesh", "Config", "Expectations"].into_iter().any(is_ours) {
            continue;
        }
        let named = text
            .lines()
            .next()
            .and_then(|it| it.strip_prefix(MODELINE))
            .unwrap_or_else(|| panic!("{} names no schema", path.display()));
        let found = path.parent().unwrap().join(named).canonicalize().unwrap();
        for document in documents(&text) {
            let (file, _) = schema_of(&document).unwrap();
            assert_eq!(found, folder().join(file).canonicalize().unwrap());
        }
        held += 1;
    }
    assert!(3 <= held, "{held}");
}

/// Pages of rules show mistakes, so they are left out.
#[test]
fn what_the_book_shows_fits_its_schema() {
    let mut pages = files_under(&project().join("docs"));
    pages.push(project().join("README.md"));
    pages.retain(|it| {
        it.extension().is_some_and(|it| it == "md")
            && !it.starts_with(project().join("docs/reference/rules"))
    });
    let mut kinds = BTreeMap::new();
    for page in pages {
        let text = fs::read_to_string(&page).unwrap();
        for block in text.split("```yaml\n").skip(1) {
            let block = block.split("```").next().unwrap();
            // Kilo's Peers as they are rendered, and whole documents of our formats; no templates
            // of other kinds.
            let kind = block.lines().find_map(|it| it.trim().strip_prefix("kind: "));
            let Some(kind) =
                kind.filter(|it| ["ClusterMesh", "Config", "Expectations", "Peer"].contains(it))
            else {
                continue;
            };
            for document in documents(block) {
                let (file, schema) = schema_of(&document).unwrap();
                assert!(kind == "Peer" || is_taken(kind, &document), "{}: {block}", page.display());
                assert_eq!(violations(&schema, &document), [""; 0], "{file}\n{block}");
                let is_plain = |it: &str| block.contains(&format!(": {it},"));
                assert!(!is_plain("off"), "a boolean to readers of YAML 1.1");
                *kinds.entry(kind.to_owned()).or_insert(0) += 1;
            }
        }
    }
    assert_eq!(kinds.len(), 4, "{kinds:?}");
}
