//! What `diff` prints, also as a comment on a pull request: no text of a node, a file or a cluster
//! becomes a link, a mention, an image or HTML, and none leaves its cell.

use pulldown_cmark::{CodeBlockKind, Event, Options, Parser, Tag, TagEnd};

use super::*;
use crate::cli::diff::Repository;

/// Pieces of text that mean something in a comment.
pub(in crate::cli) const MARKUP: &[&str] = &[
    "@all",
    "#1",
    "x/y#2",
    "[a](//b)",
    "![a](//b)",
    "<img src=//b>",
    "</details>",
    "</summary><!--",
    "https://b.example",
    "| a |",
    "\\|",
    "\\",
    "```",
    "`",
    "$`a`$",
    ":tada:",
    "\n\n# a\n",
    "\u{202e}",
    "\u{1b}[2J",
    "\n::error::x\n",
    "##[group]x",
];

fn markup() -> impl Strategy<Value = String> {
    prop::collection::vec(select(MARKUP), 1..6).prop_map(|pieces| pieces.concat())
}

/// Fails unless all markup of a page is ours: a heading, lists, what is folded, and tables with as
/// many cells in each row.
pub(in crate::cli) fn check_markdown(page: &str) -> Result<(), TestCaseError> {
    let options = Options::ENABLE_TABLES | Options::ENABLE_GFM | Options::ENABLE_STRIKETHROUGH;
    let (mut columns, mut cells) = (0, 0);
    for event in Parser::new_ext(page, options) {
        match event {
            Event::Start(Tag::Table(alignments)) => columns = alignments.len(),
            Event::Start(Tag::TableRow) => cells = 0,
            Event::Start(Tag::TableCell) => cells += 1,
            Event::End(TagEnd::TableRow) => prop_assert_eq!(cells, columns, "{}", page),
            Event::Start(
                Tag::Paragraph
                | Tag::Heading { .. }
                | Tag::List(_)
                | Tag::Item
                | Tag::Strong
                | Tag::TableHead
                | Tag::HtmlBlock,
            )
            | Event::End(_)
            | Event::Code(_)
            | Event::SoftBreak => {}
            Event::Start(Tag::CodeBlock(kind)) => {
                prop_assert_eq!(kind, CodeBlockKind::Fenced("mermaid".into()), "{}", page);
            }
            Event::Html(html) => {
                let html = html.trim();
                let name =
                    html.strip_prefix("<summary>").and_then(|it| it.strip_suffix("</summary>"));
                let is_ours = ["", "<details>", "</details>"].contains(&html)
                    || name.is_some_and(|it| !it.contains(['<', '@', '[', '`', '&']));
                prop_assert!(is_ours, "{}\n{}", html, page);
            }
            // Of the graph, which has only names of clusters.
            Event::Text(text) if text.starts_with("flowchart LR\n") => {}
            Event::Text(text) => {
                let is_ours = !text.contains(['@', '#', '<', '[', ']', '`', '\\', '$', '|'])
                    && !text.contains("//")
                    && !text.contains(":t");
                prop_assert!(is_ours, "{}\n{}", text, page);
            }
            other => prop_assert!(false, "{:?}\n{}", other, page),
        }
    }
    Ok(())
}

/// Runs `diff` in every format.
fn check_formats(repository: &Repository, arguments: &[&str]) -> Result<(), TestCaseError> {
    let summary = repository.folder.path("summary");
    for format in ["human", "markdown", "json", "github"] {
        let variables = [("GITHUB_STEP_SUMMARY", summary.to_str().unwrap())];
        std::fs::write(&summary, "").unwrap();
        let output = [&["--output", format], arguments].concat();
        let run = repository.diff_with(&variables, &output);
        prop_assert_eq!(run.code, 0, "{}", run.stderr);
        check("human", &run)?;
        match format {
            "markdown" => check_markdown(&run.stdout)?,
            "json" => check_strings(&run.json())?,
            "github" => check_markdown(&std::fs::read_to_string(&summary).unwrap())?,
            _ => {}
        }
    }
    Ok(())
}

/// A commit with a sound mesh in a file of a hostile name; then nodes, locations, settings and files
/// become hostile.
fn check_causes(text: &str) -> Result<(), TestCaseError> {
    let folder = Folder::mesh();
    let file = format!("meshes/{}.yaml", file_name(text));
    std::fs::create_dir(folder.path("meshes")).unwrap();
    std::fs::rename(folder.path("mesh.yaml"), folder.path(&file)).unwrap();
    prop_assert_eq!(folder.run(&["render"]).code, 0);
    let repository = Repository::of(folder);
    repository.commit();
    let folder = &repository.folder;
    folder.keep("east", &nodes(text));
    let mut west = [node(3, 1), node(3, 2), node(3, 3)];
    west[0]["annotations"]["kilo.squat.ai/location"] = json!(text);
    west[1]["annotations"]["kilo.squat.ai/granularity"] = json!("location");
    west[2]["name"] = json!(text);
    folder.keep("west", &west);
    folder.edit(&file, "10.102.0.0/24", "10.102.0.0/23");
    folder.edit(&file, "- name: west", "- name: west\n      granularity: Location");
    check_formats(&repository, &[])?;
    // And the other way round.
    repository.commit();
    folder.keep("east", &[node(1, 1), node(1, 2)]);
    folder.edit(&file, "10.102.0.0/23", "10.102.0.0/24");
    check_formats(&repository, &[])
}

/// Peers of a cluster of which every text is hostile.
fn check_peers(text: &str) -> Result<(), TestCaseError> {
    let repository = Repository::of(Folder::rendered());
    let folder = &repository.folder;
    let peer = |name: &str, spec: Value| {
        let labels = json!({ "kilo-clustermesh.io/source-cluster": text });
        let metadata = json!({ "annotations": labels, "labels": labels, "name": name });
        json!({ "apiVersion": "kilo.squat.ai/v1alpha1", "kind": "Peer", "metadata": metadata, "spec": spec })
    };
    let key = node(1, 1)["annotations"]["kilo.squat.ai/key"].clone();
    let endpoint = json!({ "dnsOrIP": { "dns": text }, "port": 1 });
    let items = json!([
        peer(
            "prod--east--n1",
            json!({ "allowedIPs": [text], "endpoint": endpoint, "publicKey": key })
        ),
        peer("prod--east--n2", json!({ "allowedIPs": ["10.1.2.0/24"], "publicKey": text })),
        peer(
            text,
            json!({ "allowedIPs": ["192.0.2.0/24"], "publicKey": key, "presharedKey": text })
        ),
        peer("laptop", json!({ "allowedIPs": ["192.0.2.0/24"], "publicKey": key })),
    ]);
    let file = format!("{}.json", file_name(text));
    let list = json!({ "apiVersion": "v1", "kind": "List", "items": items });
    folder.write(&file, list.to_string());
    check_formats(&repository, &["--peers", &format!("west={file}")])
}

/// Names of branches and folders, as far as git accepts them.
fn check_names(text: &str) -> Result<(), TestCaseError> {
    let is_refused = |it: char| it.is_ascii_control() || " ~^:?*[\\".contains(it);
    let name: String = text.chars().filter(|&it| !is_refused(it)).collect();
    let name = format!("1/a{name}b").replace("//", "/").replace("@{", "@");
    let repository = Repository::of(Folder::rendered());
    repository.commit();
    repository.git(&["branch", &name]);
    repository.remove_node();
    check_formats(&repository, &["--against", &name])?;
    crate::support::copy(
        &repository.folder.path("rendered"),
        &repository.folder.path(&format!("old/{name}")),
    );
    check_formats(&repository, &["--against", &format!("old/{name}")])
}

#[test]
fn causes_stay_in_their_cells() {
    runner(2).run(&markup(), |text| check_causes(&text)).unwrap();
    check_causes(&MARKUP.concat()).unwrap();
}

#[test]
fn peers_of_a_dump_stay_in_their_cells() {
    runner(2).run(&markup(), |text| check_peers(&text)).unwrap();
    check_peers(&MARKUP.concat()).unwrap();
}

#[test]
fn names_of_versions_stay_in_their_place() {
    check_names(&MARKUP.concat()).unwrap();
}
