//! Links lead somewhere: those of Markdown, and every `docs/….md` that a message or a comment names.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use pulldown_cmark::{Event, Options, Parser, Tag, TagEnd};
use regex::Regex;

use super::{files, has_extension, shown};
use crate::support::project;

/// The links of a page, and what links to it can name.
#[derive(Default)]
struct Page {
    links: Vec<String>,
    anchors: BTreeSet<String>,
}

impl Page {
    fn parse(text: &str) -> Self {
        let id = Regex::new(r#"(?:id|name)="([^"]+)""#).unwrap();
        let mut page = Self::default();
        let mut heading = None;
        let options = Options::ENABLE_TABLES | Options::ENABLE_HEADING_ATTRIBUTES;
        for event in Parser::new_ext(text, options) {
            match event {
                Event::Start(Tag::Link { dest_url, .. } | Tag::Image { dest_url, .. }) => {
                    page.links.push(dest_url.to_string());
                }
                Event::Start(Tag::Heading { id, .. }) => {
                    page.anchors.extend(id.map(|it| it.to_string()));
                    heading = Some(String::new());
                }
                Event::End(TagEnd::Heading(_)) => {
                    let slug = slug(&heading.take().unwrap_or_default());
                    page.add(&slug);
                }
                Event::Text(text) | Event::Code(text) => {
                    if let Some(heading) = &mut heading {
                        heading.push_str(&text);
                    }
                }
                Event::Html(html) | Event::InlineHtml(html) => {
                    let ids = id.captures_iter(&html).map(|it| it[1].to_owned());
                    page.anchors.extend(ids);
                }
                _ => {}
            }
        }
        page
    }

    /// Adds the anchor of a heading; the second of the same name ends in `-1`.
    fn add(&mut self, slug: &str) {
        let mut numbered = (1..).map(|it| format!("{slug}-{it}"));
        let mut anchor = slug.to_owned();
        while !self.anchors.insert(anchor) {
            anchor = numbered.next().unwrap();
        }
    }
}

/// The anchor that GitHub and mdBook give a heading.
fn slug(heading: &str) -> String {
    let letters = heading.trim().to_lowercase();
    let kept = letters.chars().filter_map(|it| match it {
        ' ' => Some('-'),
        '-' | '_' => Some(it),
        _ => it.is_alphanumeric().then_some(it),
    });
    kept.collect()
}

/// Returns why a link leads nowhere, if so. `file` is the file that a relative link begins at.
fn dead(pages: &BTreeMap<String, Page>, file: &str, link: &str) -> Option<String> {
    if link.contains("://") || link.starts_with("mailto:") {
        return None;
    }
    let (path, anchor) = link.split_once('#').unwrap_or((link, ""));
    let target = if path.is_empty() {
        file.to_owned()
    } else {
        let folder = project().join(file);
        let target = folder.parent().unwrap().join(path);
        let Ok(target) = target.canonicalize() else {
            return Some(format!("{file}: `{link}` does not exist"));
        };
        shown(&target)
    };
    let has = |page: &Page| anchor.is_empty() || page.anchors.contains(anchor);
    let is_there = pages.get(&target).is_none_or(has);
    (!is_there).then(|| format!("{file}: `{link}`: the page has no heading `{anchor}`"))
}

fn pages() -> BTreeMap<String, Page> {
    let pages = files().into_iter().filter(|it| has_extension(it, &["md"]));
    pages.map(|it| (shown(&it), Page::parse(&fs::read_to_string(&it).unwrap()))).collect()
}

#[test]
fn links_lead_somewhere() {
    let pages = pages();
    let links = pages.iter().flat_map(|(file, page)| {
        let links = page.links.iter();
        links.map(move |link| (file.as_str(), link.as_str()))
    });
    let found: Vec<String> = links.filter_map(|(file, link)| dead(&pages, file, link)).collect();
    assert!(found.is_empty(), "{}", found.join("\n"));
}

#[test]
fn named_pages_exist() {
    let pages = pages();
    let named = Regex::new(r"\bdocs/[\w/-]+\.md(#[\w-]+)?").unwrap();
    let mut found = Vec::new();
    let mut count = 0;
    for path in files() {
        let file = shown(&path);
        let Ok(text) = fs::read_to_string(&path) else {
            continue;
        };
        // Tests name pages of made-up repositories.
        if Path::new(&file).starts_with("tests") {
            continue;
        }
        for name in named.find_iter(&text) {
            count += 1;
            let dead = dead(&pages, "README.md", name.as_str());
            found.extend(dead.map(|it| format!("{file}: {it}")));
        }
    }
    assert!(10 < count, "{count}");
    assert!(found.is_empty(), "{}", found.join("\n"));
}

#[test]
fn sees_dead_links() {
    let text =
        "# A `b` c, d!\n## Twice\n## Twice\n[a](#a-b-c-d) [b](#twice-1) [c](other.md) [d](#none)\n";
    let pages = BTreeMap::from([("README.md".to_owned(), Page::parse(text))]);
    let links = &pages["README.md"].links;
    let found: Vec<String> = links.iter().filter_map(|it| dead(&pages, "README.md", it)).collect();
    assert_eq!(
        found,
        [
            "README.md: `other.md` does not exist",
            "README.md: `#none`: the page has no heading `none`"
        ]
    );
}
