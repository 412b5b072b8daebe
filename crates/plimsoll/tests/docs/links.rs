//! Links within the repository.

use std::collections::{BTreeMap, BTreeSet};

use crate::page::Page;

/// The broken links, each with its page.
pub(crate) fn broken(pages: &[Page], files: &BTreeSet<String>) -> Vec<String> {
    let by_name: BTreeMap<&str, &Page> = pages.iter().map(|p| (p.name.as_str(), p)).collect();
    let mut broken = Vec::new();
    for page in pages {
        for link in &page.links {
            if let Err(why) = follow(page, link, &by_name, files) {
                broken.push(format!("{}: {link} ({why})", page.name));
            }
        }
    }
    broken
}

fn follow(
    page: &Page,
    link: &str,
    pages: &BTreeMap<&str, &Page>,
    files: &BTreeSet<String>,
) -> Result<(), &'static str> {
    if link.contains("://") || link.starts_with("mailto:") {
        return Ok(());
    }
    let (path, anchor) = link.split_once('#').unwrap_or((link, ""));
    let name = match path {
        "" => page.name.clone(),
        path => resolve(&page.name, path).ok_or("outside of the repository")?,
    };
    let folder = format!("{name}/");
    let is_folder = name.is_empty() || files.iter().any(|file| file.starts_with(&folder));
    if !is_folder && !files.contains(&name) {
        return Err("no such file in the repository");
    }
    match pages.get(name.as_str()) {
        Some(to) if !anchor.is_empty() && !to.anchors.contains(anchor) => Err("no such heading"),
        _ => Ok(()),
    }
}

/// Resolves a path relative to a page. The result is relative to the repository's root.
fn resolve(page: &str, path: &str) -> Option<String> {
    let mut parts: Vec<&str> = page.split('/').collect();
    parts.pop();
    if path.starts_with('/') {
        parts.clear();
    }
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop()?;
            }
            part => parts.push(part),
        }
    }
    Some(parts.join("/"))
}

#[test]
fn a_broken_link_is_found() {
    let pages = [
        Page::parse(
            "a/one.md",
            "# Here\n[1](two.md#there) [2](#here) [3](../x.rs) [4](../a) [5](https://h/)",
        ),
        Page::parse(
            "a/two.md",
            "# There\n[1](one.md#there) [2](three.md) [3](../../x.rs)",
        ),
    ];
    let files = ["a/one.md", "a/two.md", "x.rs"].map(str::to_owned).into();
    assert_eq!(
        broken(&pages, &files),
        [
            "a/two.md: one.md#there (no such heading)",
            "a/two.md: three.md (no such file in the repository)",
            "a/two.md: ../../x.rs (outside of the repository)",
        ]
    );
}
