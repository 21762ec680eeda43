//! The shape of the inside, held by a test because the compiler does not.
//!
//! It reads text: comments and the `mod tests` at the foot of a file are left out, and what a
//! person would not write (`use crate as …`) is not looked for.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use clustermesh::rules;
use regex::Regex;

use crate::support::project;

/// Every module of the core in reading order, and which of them it may use.
const MODULES: &[(&str, &str)] = &[
    // Words
    ("text", ""),
    ("id", ""),
    ("name", ""),
    ("net", "id"),
    ("wireguard", "name net"),
    ("granularity", ""),
    ("port", ""),
    ("place", ""),
    ("diagnostic", "text name place"),
    ("string_map", "diagnostic"),
    ("selector", "name string_map"),
    ("schema", ""),
    ("yaml", "diagnostic"),
    // Gates
    ("document", "text place diagnostic schema"),
    ("mesh", "text name net wireguard granularity port selector place diagnostic schema document"),
    ("snapshot", "text name net wireguard port place diagnostic string_map schema"),
    ("config", "text name place diagnostic schema document mesh"),
    ("policy", "text name place diagnostic schema document mesh"),
    ("expectations", "name net selector place diagnostic schema document mesh config"),
    // Kilo
    (
        "kilo",
        "id name net wireguard granularity place selector diagnostic schema yaml mesh snapshot",
    ),
    // Members of a mesh, and the plan
    ("membership", "name net wireguard granularity selector place mesh snapshot kilo"),
    ("guard", "name mesh snapshot config kilo membership"),
    ("fleet", "id name net wireguard place string_map mesh snapshot kilo membership"),
    ("plan", "id name net wireguard granularity place mesh kilo membership fleet"),
    // Views
    ("host_config", "text name net wireguard schema mesh plan"),
    ("dns_config", "name net schema mesh fleet plan"),
    ("firewall", "name net wireguard granularity schema mesh snapshot kilo fleet plan"),
    ("node_changes", "text name diagnostic schema kilo mesh yaml"),
    ("template", "diagnostic yaml"),
    ("manifest", "name net wireguard diagnostic yaml document kilo plan template"),
    (
        "mirror",
        "name net port place yaml mesh snapshot expectations kilo fleet plan template manifest",
    ),
    ("tree_diff", "name net place diagnostic config kilo plan manifest"),
    ("engine", "name document"),
    // What the manifests do: none of these knows the plan whose mistakes they are to find
    (
        "agent",
        "text name net wireguard granularity place diagnostic document mesh snapshot config kilo",
    ),
    (
        "admission",
        "text name net wireguard diagnostic document mesh kilo fleet plan template agent",
    ),
    ("packet", "text name net wireguard granularity place diagnostic mesh snapshot kilo agent"),
    (
        "proof",
        "text name net wireguard granularity place diagnostic document mesh snapshot config policy expectations kilo agent packet",
    ),
    (
        "capacity",
        "name net wireguard granularity diagnostic mesh config kilo fleet plan manifest tree_diff agent",
    ),
    ("joining", "text name diagnostic mesh config kilo fleet plan manifest capacity"),
    (
        "changes",
        "name net wireguard granularity port place diagnostic mesh config kilo fleet mirror engine agent packet proof \
         capacity",
    ),
    (
        "outage",
        "name net diagnostic document mesh snapshot expectations kilo agent packet proof changes",
    ),
    // Files of users
    (
        "proposal",
        "name net wireguard granularity place diagnostic text document mesh snapshot kilo yaml",
    ),
    (
        "outputs",
        "text name net wireguard place diagnostic string_map schema mesh config fleet plan yaml firewall template \
         manifest agent packet proof capacity",
    ),
    // Judgement
    (
        "rules",
        "text name net wireguard granularity place diagnostic document mesh snapshot config kilo membership \
         guard fleet plan yaml manifest mirror tree_diff agent admission packet proof capacity changes proposal",
    ),
    (
        "controls",
        "text name net place diagnostic mesh config policy expectations agent admission proof rules",
    ),
    // Results
    ("report", "text diagnostic schema"),
    (
        "results",
        "text name net wireguard place diagnostic schema yaml document mesh snapshot config expectations kilo manifest mirror agent packet proof capacity joining changes outage rules controls report",
    ),
    (
        "node_gates",
        "text net name place diagnostic schema mesh config kilo membership fleet plan rules report results",
    ),
    (
        "graph",
        "text name net diagnostic schema mesh kilo membership fleet plan agent proof rules report",
    ),
    (
        "html_report",
        "text net diagnostic mesh config proof capacity changes rules report results graph",
    ),
];

/// The most lines of a file, its tests included. One with more than 400 is split when it is next
/// changed; this is the limit for those that wait.
const LINES: usize = 450;

/// Crates that only the shell may use.
const SHELL: &[&str] = &["anstream", "anyhow", "clap", "k8s_openapi", "kube", "tempfile", "tokio"];

/// Parts of `std` that only the shell may use.
const WORLD: &[&str] = &["env", "fs", "os", "process", "thread"];

/// Types and traits of any crate that only the shell may use.
const SOCKETS: &[&str] = &["TcpListener", "TcpStream", "ToSocketAddrs", "UdpSocket"];

#[test]
fn modules_stand_in_reading_order() {
    let lib = production_code(&src().join("lib.rs"));
    let listed: Vec<&str> =
        lib.lines().filter_map(|line| line.strip_prefix("pub mod ")?.strip_suffix(';')).collect();
    assert_eq!(listed, modules(), "lib.rs has its own order");
}

#[test]
fn arrows_point_up() {
    for (depth, (module, may_use)) in MODULES.iter().enumerate() {
        for used in may_use.split_whitespace() {
            assert!(modules()[..depth].contains(&used), "{module} → {used}");
        }
    }
}

#[test]
fn modules_use_what_they_may() {
    let mut wrong = Vec::new();
    for (module, may_use) in MODULES {
        for file in files_of(module) {
            let source = production_code(&file);
            for used in uses(&source, &file) {
                let may = may_use.split_whitespace().any(|it| it == used);
                if used != *module && !may {
                    wrong.push(format!("{} → {used}", shown(&file)));
                }
            }
        }
    }
    assert_eq!(wrong, Vec::<String>::new());
}

/// The order of `lib.rs` leaves out circles at the top of the library. Here, that parts of a module
/// have none either, nor has the shell.
#[test]
fn no_circles_in_folders() {
    for folder in folders_under(&src()) {
        let circle = circle(uses_in(&folder));
        assert!(circle.is_empty(), "{}: {circle:?}", shown(&folder));
    }
}

/// A file has one noun; one that grows past the limit usually has two.
#[test]
fn files_are_short() {
    for file in files_under(&src()) {
        let lines = fs::read_to_string(&file).unwrap().lines().count();
        let file = shown(&file);
        assert!(lines <= LINES, "{file} has {lines} lines");
    }
}

#[test]
fn nothing_goes_around_the_arrows() {
    for file in core_files() {
        let source = production_code(&file);
        for dodge in ["crate::{", "crate::*", "super::super", "#[path"] {
            assert!(!source.contains(dodge), "{dodge} in {}", shown(&file));
        }
    }
}

#[test]
fn the_core_stays_pure() {
    let mut wrong = Vec::new();
    for file in core_files() {
        let source = production_code(&file);
        let words: Vec<&str> = words(&source).collect();
        let from_std = names_after(&source, "std::");
        let used = SHELL
            .iter()
            .filter(|name| !names_after(&source, &format!("{name}::")).is_empty())
            .chain(WORLD.iter().filter(|name| from_std.contains(name)))
            .chain(SOCKETS.iter().filter(|name| words.contains(name)));
        wrong.extend(used.map(|name| format!("{name} in {}", shown(&file))));
    }
    assert_eq!(wrong, Vec::<String>::new());
}

/// `.ci/run` draws random worlds with one set of features only, since the library is the same with any.
#[test]
fn the_library_has_no_features() {
    let has_features = |file: &PathBuf| production_code(file).contains("feature = ");
    assert_eq!(core_files().into_iter().find(has_features), None);
}

/// If a message is worded otherwise, the program must do the same, above all in what it shows of strangers' files.
#[test]
fn no_text_of_a_message_decides() {
    let text = r"\bmessage\s*\.(shown|to_string)\(\)";
    let search = r"\s*(\.(contains|ends_with|find|split|starts_with|strip_)|[=!]=)";
    let decision = Regex::new(&format!(r#"{text}{search}|\bname\(\)\s*[=!]=\s*""#)).unwrap();
    assert!(decision.is_match("it.message.shown().contains(file)"));
    assert!(decision.is_match("it.rule.name() != \"no-mesh\""));
    let files = files_under(&src());
    let sources = files.iter().map(|it| (shown(it), production_code(it)));
    let found = sources.filter_map(|(file, source)| {
        let found = decision.find(&source)?;
        Some(format!("{file}: {}", found.as_str()))
    });
    assert_eq!(found.collect::<Vec<_>>(), Vec::<String>::new());
}

/// The compiler holds that each finding has its rule; here, that each rule is in the manual, and that
/// something finds it.
#[test]
fn every_rule_is_in_the_manual_and_found() {
    let sources: Vec<String> =
        files_under(&src()).iter().map(|file| production_code(file)).collect();
    let declared: BTreeMap<&str, &str> = sources.iter().flat_map(|it| declared(it)).collect();
    let names: Vec<&str> = rules::all().iter().map(|rule| rule.name()).collect();
    let listed: BTreeSet<&str> = names.iter().copied().collect();
    assert_eq!(listed.len(), names.len(), "a rule is listed twice");
    assert_eq!(declared.values().copied().collect::<BTreeSet<_>>(), listed);
    let mut uses: BTreeMap<&str, usize> = declared.keys().map(|rule| (*rule, 0)).collect();
    for word in sources.iter().flat_map(|source| words(source)) {
        if let Some(count) = uses.get_mut(word) {
            *count += 1;
        }
    }
    for (rule, name) in declared {
        assert!(1 < uses[rule], "nothing finds {name}");
    }
}

/// Files of the shell that access the disk themselves: the only way in and out, the search for the
/// config, and the credentials of clusters, which are where a kubeconfig names them.
const DISK: &[&str] = &["disk.rs", "disk/", "settings/surroundings.rs", "cluster/"];

/// Calls that read, look or write without asking whether they may.
const CALLS: &[&str] = &[
    "fs::",
    "File::open",
    "File::create",
    "OpenOptions",
    ".read_dir(",
    ".is_file()",
    ".is_dir()",
    ".exists()",
    ".try_exists()",
    ".metadata()",
    ".symlink_metadata()",
    ".canonicalize()",
    ".read_link()",
];

/// A rule about what may be read holds only if there is no way around it.
#[test]
fn only_the_disk_touches_files() {
    let shell = src().join("bin/clustermesh");
    let mut wrong = Vec::new();
    for file in files_under(&shell) {
        let name = file.strip_prefix(&shell).unwrap().to_str().unwrap();
        if DISK.iter().any(|it| name.starts_with(it)) {
            continue;
        }
        let source = production_code(&file);
        for (number, line) in source.lines().enumerate() {
            // A `FileType` comes from the disk module.
            let line = line
                .replace("use std::fs::FileType;", "")
                .replace("file_type.is_file()", "")
                .replace("file_type.is_dir()", "");
            let calls = CALLS.iter().filter(|call| line.contains(**call));
            wrong.extend(calls.map(|call| format!("{call} in {name}, {}", number + 1)));
        }
    }
    assert_eq!(wrong, Vec::<String>::new());
}

/// Programs that run: the login plugins of kubeconfigs, this program itself to fill in templates, and git.
#[test]
fn only_three_files_start_programs() {
    let shell = src().join("bin/clustermesh");
    let starts = |file: &PathBuf| {
        let source = production_code(file).replace("clap::Command::new(", "");
        source.contains("Command::new(")
    };
    let files: Vec<PathBuf> = files_under(&shell).into_iter().filter(starts).collect();
    let expected = ["cluster/login.rs", "git.rs", "template_process.rs"].map(|it| shell.join(it));
    assert_eq!(files, expected);
}

/// What a comment cites as "`kilo.md` §2.5" can be read in this repository.
#[test]
fn every_cited_section_exists() {
    let page = project().join("docs/internals/kilo.md");
    let page = fs::read_to_string(page).unwrap();
    let sections: Vec<&str> = page
        .lines()
        .filter(|line| line.starts_with('#'))
        .filter_map(|line| line.trim_start_matches('#').trim().split(' ').next())
        .map(|number| number.trim_end_matches('.'))
        .collect();
    let mut cited = 0;
    for folder in ["src", "tests", "benches"] {
        for file in files_under(&project().join(folder)) {
            let source = fs::read_to_string(&file).unwrap();
            for rest in source.split("kilo.md` §").skip(1) {
                let end =
                    rest.find(|it: char| !it.is_ascii_digit() && it != '.').unwrap_or(rest.len());
                let section = rest[..end].trim_end_matches('.');
                // A placeholder in a text that is made.
                if section.is_empty() {
                    continue;
                }
                cited += 1;
                assert!(sections.contains(&section), "§{section} in {}", file.display());
            }
        }
    }
    assert!(20 < cited, "{cited}");
}

/// So that a search for `crate::net` finds only this module.
#[test]
fn no_name_begins_another() {
    for left in modules() {
        for right in modules() {
            assert!(left == right || !right.starts_with(left), "{left}, {right}");
        }
    }
}

/// A name that needs its module to be understood is not a name.
#[test]
fn no_type_name_recurs() {
    let mut files: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for file in files_under(&src()) {
        let source = production_code(&file);
        for name in source.lines().filter_map(declared_type) {
            let files = files.entry(name.to_owned()).or_default();
            files.insert(shown(&file));
        }
    }
    assert!(500 < files.len(), "{}", files.len());
    files.retain(|_, files| 1 < files.len());
    assert_eq!(files, BTreeMap::new());
}

#[test]
fn reads_source_as_it_should() {
    assert_eq!(declared_type("pub(super) struct A<'a> {"), Some("A"));
    assert_eq!(declared_type("type B = A;"), Some("B"));
    assert_eq!(declared_type("    type Err = A;"), None);
    let source =
        "use std::{collections::{fs, X}, env, fmt::Write}; my_std::process; std::thread::x";
    assert_eq!(names_after(source, "std::"), ["collections", "env", "fmt", "thread"]);
    assert_eq!(names_after("(crate) $crate::a; crate::b::c", "crate::"), ["a", "b"]);
}

/// Returns the modules that are in a circle, or between two circles, given which use which.
fn circle(mut uses: BTreeMap<String, BTreeSet<String>>) -> Vec<String> {
    loop {
        let targets: BTreeSet<String> = uses.values().flatten().cloned().collect();
        let before = uses.len();
        uses.retain(|name, others| targets.contains(name) && !others.is_empty());
        if uses.len() == before {
            return uses.into_keys().collect();
        }
        let left: BTreeSet<String> = uses.keys().cloned().collect();
        for others in uses.values_mut() {
            others.retain(|it| left.contains(it));
        }
    }
}

/// Returns which modules of a folder each of them uses, by name.
fn uses_in(folder: &Path) -> BTreeMap<String, BTreeSet<String>> {
    let files = files_under(folder);
    let names: BTreeSet<String> =
        files.iter().map(|file| module_in(folder, file).to_owned()).collect();
    let prefix = path_of(folder);
    let mut uses: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for file in &files {
        let source = production_code(file);
        let depth = file.strip_prefix(folder).unwrap().components().count();
        let above = "super::".repeat(depth);
        let mut mentioned = names_after(&source, &prefix);
        mentioned.extend(names_after(&source, &above));
        let module = module_in(folder, file);
        let siblings = mentioned
            .into_iter()
            .filter(|name| *name != module && names.contains(*name))
            .map(str::to_owned);
        uses.entry(module.to_owned()).or_default().extend(siblings);
    }
    uses
}

/// Returns the module of a folder in which a file is.
fn module_in<'a>(folder: &Path, file: &'a Path) -> &'a str {
    let first = file.strip_prefix(folder).unwrap().components().next();
    let name = Path::new(first.unwrap().as_os_str()).file_stem().unwrap();
    name.to_str().unwrap()
}

/// Returns the path of the module that a folder is.
fn path_of(folder: &Path) -> String {
    let path = folder.strip_prefix(src()).unwrap();
    let path = path.strip_prefix("bin/clustermesh").unwrap_or(path);
    let mut text = "crate::".to_owned();
    for name in path {
        text.push_str(name.to_str().unwrap());
        text.push_str("::");
    }
    text
}

fn folders_under(folder: &Path) -> Vec<PathBuf> {
    let mut folders: Vec<PathBuf> = files_under(folder)
        .iter()
        .map(|file| file.parent().unwrap().to_owned())
        .filter(|it| *it != src())
        .collect();
    folders.sort();
    folders.dedup();
    folders
}

#[test]
fn finds_circles() {
    let circle = |uses: &[(&str, &str)]| {
        let mut map: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
        for (from, to) in uses {
            map.entry((*from).to_owned()).or_default().insert((*to).to_owned());
            map.entry((*to).to_owned()).or_default();
        }
        circle(map)
    };
    assert!(circle(&[("a", "b"), ("b", "c"), ("a", "c")]).is_empty());
    assert_eq!(circle(&[("a", "b"), ("b", "c"), ("c", "b"), ("c", "d")]), ["b", "c"]);
    let uses = uses_in(&src().join("plan"));
    assert!(uses["anchor"].contains("carrier") && uses["range_network"].contains("carrier"));
}

fn modules() -> Vec<&'static str> {
    MODULES.iter().map(|(module, _)| *module).collect()
}

/// Which modules of the core a file names. In the file of a module itself, `super` is the root.
fn uses<'a>(source: &'a str, file: &Path) -> Vec<&'a str> {
    let mut used = names_after(source, "crate::");
    if file.parent() == Some(&src()) {
        let above = names_after(source, "super::");
        used.extend(above.iter().filter(|name| modules().contains(name)));
    }
    used
}

/// The first name after each occurrence of a path, and each first name of a list in braces there.
fn names_after<'a>(source: &'a str, path: &str) -> Vec<&'a str> {
    let mut names = Vec::new();
    for (start, _) in source.match_indices(path) {
        // In `super::super::x`, `x` is in the folder above.
        if source[..start].ends_with(is_word) || source[..start].ends_with("super::") {
            continue;
        }
        let rest = &source[start + path.len()..];
        match rest.strip_prefix('{') {
            Some(list) => names.extend(first_names(list)),
            None => names.extend(words(rest).next()),
        }
    }
    names
}

/// What each entry of a list begins with, up to the brace that closes it.
fn first_names(list: &str) -> Vec<&str> {
    let mut names = Vec::new();
    let mut depth = 1;
    let mut entry = 0;
    for (at, letter) in list.char_indices() {
        match letter {
            '{' => depth += 1,
            '}' => depth -= 1,
            _ => {}
        }
        if depth == 0 || depth == 1 && letter == ',' {
            names.extend(words(&list[entry..at]).next());
            entry = at + 1;
        }
        if depth == 0 {
            break;
        }
    }
    names
}

/// The rules that a file declares: `RULE = "name" Severity …;`.
fn declared(source: &str) -> impl Iterator<Item = (&str, &str)> {
    source.lines().filter_map(|line| {
        let (rule, rest) = line.trim().split_once(" = \"")?;
        let (name, severity) = rest.split_once("\" ")?;
        let severities = ["Error", "Warning", "Notice"];
        let is_severity = severities.iter().any(|it| severity.starts_with(it));
        (is_severity && rule.chars().all(|it| it.is_ascii_uppercase() || it == '_'))
            .then_some((rule, name))
    })
}

/// The type that a line declares; not that of an implementation, which is indented.
fn declared_type(line: &str) -> Option<&str> {
    let mut words = words(line).skip_while(|it| ["pub", "crate", "super"].contains(it));
    let keywords = ["struct", "enum", "trait", "type"];
    let is_declaration = !line.starts_with(' ') && keywords.contains(&words.next()?);
    words.next().filter(|_| is_declaration)
}

fn words(source: &str) -> impl Iterator<Item = &str> {
    source.split(|letter| !is_word(letter)).filter(|word| !word.is_empty())
}

fn is_word(letter: char) -> bool {
    letter.is_alphanumeric() || letter == '_'
}

fn src() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("src")
}

fn shown(file: &Path) -> String {
    file.strip_prefix(src()).unwrap().display().to_string()
}

/// `module.rs` and what is in `module/`.
fn files_of(module: &str) -> Vec<PathBuf> {
    let belongs = |file: &PathBuf| {
        let path = file.strip_prefix(src()).unwrap().with_extension("");
        path.starts_with(module)
    };
    core_files().into_iter().filter(belongs).collect()
}

fn core_files() -> Vec<PathBuf> {
    let mut files = files_under(&src());
    files.retain(|file| !file.starts_with(src().join("bin")));
    files
}

fn files_under(folder: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            files.extend(files_under(&path));
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            files.push(path);
        }
    }
    files.sort();
    files
}

/// A file without comments and without the tests at its end. Clippy makes sure that they are at the
/// end (`items_after_test_module`).
fn production_code(file: &Path) -> String {
    let folders = file.strip_prefix(src()).unwrap().components();
    if file.ends_with("tests.rs") || folders.into_iter().any(|it| it.as_os_str() == "tests") {
        return String::new();
    }
    let source = fs::read_to_string(file).unwrap();
    let mut code = String::new();
    for line in source.lines().take_while(|line| *line != "mod tests {") {
        if !line.trim_start().starts_with("//") {
            code.push_str(line);
            code.push('\n');
        }
    }
    code
}
