use clustermesh::yaml;

use super::super::Roots;
use super::super::tree::survey;
use super::*;

fn ours(text: &str) -> String {
    format!("{}\n{text}\n", yaml::HEADER)
}

fn files(files: &[(&str, &str)]) -> WantedFiles {
    let file = |&(path, text): &(&str, &str)| (path.to_owned(), ours(text).into());
    files.iter().map(file).collect()
}

/// The content of a folder: the text of each file, none for a folder.
fn on_disk(root: &Path) -> BTreeMap<PathBuf, Option<String>> {
    let mut on_disk = BTreeMap::new();
    for entry in fs::read_dir(root).into_iter().flatten() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            on_disk.extend(self::on_disk(&path));
            on_disk.insert(path, None);
        } else {
            let text = fs::read_to_string(&path).unwrap();
            on_disk.insert(path, Some(text));
        }
    }
    on_disk
}

fn put(root: &Path, wanted: &WantedFiles) -> anyhow::Result<()> {
    let survey = survey(&Roots::anywhere(), root, wanted)?;
    apply(root, wanted, &survey, &Beside::default())
}

fn assert_stands(root: &Path, wanted: &WantedFiles) {
    let there = on_disk(root).into_iter().filter_map(|(path, text)| {
        let path = path.strip_prefix(root).unwrap().to_str()?.to_owned();
        Some((path, text?.into()))
    });
    assert_eq!(there.collect::<WantedFiles>(), *wanted);
}

#[test]
fn makes_a_tree_and_then_the_next() {
    let folder = TempDir::new().unwrap();
    let root = folder.path().join("deep/rendered");
    let old = files(&[("west/a.yaml", "1"), ("west/b.yaml", "1"), ("east/a.yaml", "1")]);
    put(&root, &old).unwrap();
    assert_stands(&root, &old);
    let new = files(&[("west/a.yaml", "1"), ("west/b.yaml", "2"), ("north/a.yaml", "1")]);
    put(&root, &new).unwrap();
    assert_stands(&root, &new);
    assert!(!root.join("east").exists());
    put(&root, &files(&[])).unwrap();
    assert_eq!(on_disk(&root), BTreeMap::new());
}

#[test]
#[cfg(unix)]
fn touches_only_what_differs() {
    use std::os::unix::fs::MetadataExt as _;
    let root = TempDir::new().unwrap();
    put(root.path(), &files(&[("west/a.yaml", "1"), ("west/b.yaml", "1")])).unwrap();
    let seen = |path: &str| {
        let metadata = fs::metadata(root.path().join(path)).unwrap();
        (metadata.ino(), metadata.mtime_nsec(), metadata.ctime_nsec(), metadata.mode() & 0o777)
    };
    let (a, top) = (seen("west/a.yaml"), seen(""));
    put(root.path(), &files(&[("west/a.yaml", "1"), ("west/b.yaml", "1")])).unwrap();
    assert_eq!(seen(""), top);
    put(root.path(), &files(&[("west/a.yaml", "1"), ("west/b.yaml", "2")])).unwrap();
    assert_eq!(seen("west/a.yaml"), a);
    assert_eq!(a.3 | 0o044, 0o644);
}

#[test]
fn leaves_alone_what_is_not_ours() {
    let root = TempDir::new().unwrap();
    put(root.path(), &files(&[("west/a.yaml", "1"), ("east/a.yaml", "1")])).unwrap();
    fs::write(root.path().join("west/notes.txt"), "mine").unwrap();
    fs::write(root.path().join("README.md"), "mine").unwrap();
    put(root.path(), &files(&[])).unwrap();
    let left: Vec<Option<String>> = on_disk(root.path()).into_values().collect();
    assert_eq!(left, [Some("mine".into()), None, Some("mine".into())]);
}

#[test]
#[cfg(unix)]
fn writes_through_no_link() {
    let (root, outside) = (TempDir::new().unwrap(), TempDir::new().unwrap());
    fs::write(outside.path().join("a.yaml"), ours("theirs")).unwrap();
    std::os::unix::fs::symlink(outside.path(), root.path().join("west")).unwrap();
    let wanted = files(&[("west/a.yaml", "1"), ("east/a.yaml", "1")]);
    assert!(put(root.path(), &wanted).is_err());
    assert!(!root.path().join("east").exists());
    assert_stands(outside.path(), &files(&[("a.yaml", "theirs")]));
}

/// A folder that comes into the way after the survey fails the run in its middle.
#[test]
fn puts_everything_back_when_it_fails() {
    for trap in ["west/m.yaml", "west/c.yaml", "west/s.yaml"] {
        let root = TempDir::new().unwrap();
        let old = [("west/b.yaml", "1"), ("west/c.yaml", "1"), ("gone/a.yaml", "1")];
        put(root.path(), &files(&[&old[..], &[("west/s.yaml", "1")]].concat())).unwrap();
        let new = [("new/a.yaml", "2"), ("west/b.yaml", "2"), ("west/c.yaml", "2")];
        let wanted = files(&[&new[..], &[("west/m.yaml", "2")]].concat());
        let survey = survey(&Roots::anywhere(), root.path(), &wanted).unwrap();
        assert_eq!((survey.missing.len(), survey.changed.len(), survey.stale.len()), (2, 2, 2));
        let path = root.path().join(trap);
        if path.exists() {
            fs::remove_file(&path).unwrap();
        }
        fs::create_dir(&path).unwrap();
        fs::write(path.join("mine"), "mine").unwrap();
        let before = on_disk(root.path());
        let error = apply(root.path(), &wanted, &survey, &Beside::default()).unwrap_err();
        assert!(format!("{error:#}").contains(trap), "{error:#}");
        assert_eq!(on_disk(root.path()), before);
    }
}

#[test]
fn unmakes_folders_when_it_fails() {
    let folder = TempDir::new().unwrap();
    let root = folder.path().join("deep/rendered");
    let mut survey = survey(&Roots::anywhere(), &root, &files(&[("west/a.yaml", "1")])).unwrap();
    survey.missing.push("west/unknown.yaml".to_owned());
    assert!(apply(&root, &files(&[("west/a.yaml", "1")]), &survey, &Beside::default()).is_err());
    assert_eq!(on_disk(folder.path()), BTreeMap::new());
}

/// A run that is killed between two steps must find in its list what it has yet to remove.
#[test]
fn removes_before_it_forgets() {
    let root = TempDir::new().unwrap();
    let [old, list] = ["old", "list"].map(|name| root.path().join(name));
    fs::write(&old, "").unwrap();
    let mut swap = Swap {
        staging: TempDir::new_in(root.path()).unwrap(),
        waiting: Waiting::default(),
        steps: Vec::new(),
        done: 0,
    };
    let beside =
        Beside { remove: vec![old], write: vec![(list, "nothing".into())], ..Beside::default() };
    swap.stage_beside(&beside).unwrap();
    assert!(matches!(swap.steps[..], [SwapStep::Remove { .. }, SwapStep::Make { .. }]));
}

#[test]
fn clears_away_what_a_killed_run_left() {
    let root = TempDir::new().unwrap();
    let wanted = files(&[("west/a.yaml", "1")]);
    put(root.path(), &wanted).unwrap();
    let staging = root.path().join(".clustermesh-tmp-a1B2c3");
    fs::create_dir(&staging).unwrap();
    fs::write(staging.join(".old-0"), &yaml::HEADER[..9]).unwrap();
    fs::write(staging.join(".old-12"), "an output").unwrap();
    fs::create_dir(staging.join("west")).unwrap();
    fs::write(root.path().join(".clustermesh-tmp-d4E5f6"), "half of a record").unwrap();
    fs::create_dir(root.path().join("gone")).unwrap();
    fs::write(staging.join("west/b.yaml"), ours("2")).unwrap();
    put(root.path(), &wanted).unwrap();
    assert_stands(root.path(), &wanted);
    let left = fs::read_dir(root.path()).unwrap().map(|it| it.unwrap().file_name());
    assert_eq!(left.collect::<Vec<_>>(), ["west"]);
}
