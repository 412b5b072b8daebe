//! A page of Markdown as GitHub reads it.

use std::collections::BTreeSet;
use std::path::Path;

use pulldown_cmark::{CodeBlockKind, Event, Options, Parser, Tag, TagEnd};

/// A block of code.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Block {
    /// The info string; `None` for an indented block.
    pub(crate) info: Option<String>,
    pub(crate) text: String,
}

/// What is checked of a page.
#[derive(Debug, Default)]
pub(crate) struct Page {
    /// Its path from the root of the repository.
    pub(crate) name: String,
    /// Targets of its links and pictures.
    pub(crate) links: Vec<String>,
    /// Anchors that a link to it may use.
    pub(crate) anchors: BTreeSet<String>,
    pub(crate) blocks: Vec<Block>,
    /// Inline code.
    pub(crate) spans: Vec<String>,
}

impl Page {
    pub(crate) fn read(root: &Path, name: &str) -> Self {
        let text = std::fs::read_to_string(root.join(name)).expect(name);
        Self::parse(name, &text)
    }

    pub(crate) fn parse(name: &str, text: &str) -> Self {
        let mut page = Self {
            name: name.to_owned(),
            ..Self::default()
        };
        let mut heading: Option<String> = None;
        let mut in_block = false;
        let options = Options::ENABLE_TABLES | Options::ENABLE_FOOTNOTES | Options::ENABLE_GFM;
        for event in Parser::new_ext(text, options) {
            match event {
                Event::Start(Tag::Link { dest_url, .. } | Tag::Image { dest_url, .. }) => {
                    page.links.push(dest_url.into_string());
                }
                Event::Start(Tag::Heading { .. }) => heading = Some(String::new()),
                Event::End(TagEnd::Heading(_)) => {
                    let words = heading.take().unwrap_or_default();
                    page.add_anchor(&words);
                }
                Event::Start(Tag::CodeBlock(kind)) => {
                    let info = match kind {
                        CodeBlockKind::Fenced(info) => Some(info.into_string()),
                        CodeBlockKind::Indented => None,
                    };
                    let text = String::new();
                    page.blocks.push(Block { info, text });
                    in_block = true;
                }
                Event::End(TagEnd::CodeBlock) => in_block = false,
                Event::Text(words) => match (&mut heading, page.blocks.last_mut()) {
                    (Some(heading), _) => heading.push_str(&words),
                    (None, Some(block)) if in_block => block.text.push_str(&words),
                    _ => {}
                },
                Event::Code(words) => {
                    if let Some(heading) = &mut heading {
                        heading.push_str(&words);
                    }
                    page.spans.push(words.into_string());
                }
                Event::Html(html) | Event::InlineHtml(html) => page.read_html(&html),
                _ => {}
            }
        }
        page
    }

    /// GitHub's rule: lower case, no punctuation except `-` and `_`, spaces as dashes, and a number if the anchor
    /// already exists.
    fn add_anchor(&mut self, heading: &str) {
        let mut anchor = String::new();
        for c in heading.trim().to_lowercase().chars() {
            match c {
                ' ' => anchor.push('-'),
                '-' | '_' => anchor.push(c),
                c if c.is_alphanumeric() => anchor.push(c),
                _ => {}
            }
        }
        let numbered = (1..).map(|number| format!("{anchor}-{number}"));
        let free = std::iter::once(anchor.clone())
            .chain(numbered)
            .find(|anchor| !self.anchors.contains(anchor));
        self.anchors.extend(free);
    }

    fn read_html(&mut self, html: &str) {
        for attribute in ["href=\"", "src=\"", "srcset=\""] {
            let values = html.split(attribute).skip(1);
            let values = values.filter_map(|rest| rest.split('"').next());
            self.links.extend(values.map(str::to_owned));
        }
        for attribute in ["id=\"", "name=\""] {
            let values = html.split(attribute).skip(1);
            let values = values.filter_map(|rest| rest.split('"').next());
            self.anchors.extend(values.map(str::to_owned));
        }
    }
}

#[test]
fn a_page_is_read_as_github_reads_it() {
    let page = Page::parse(
        "p.md",
        "# `send-lag`: why, and how (p99.9)\n## Twice\n## Twice\n[a](b.md#c) ![d](e.png) <img src=\"f.svg\"> `--flag`\n\n    indented\n\n```sh example\nls\n```\n",
    );
    let anchors: Vec<&str> = page.anchors.iter().map(String::as_str).collect();
    assert_eq!(anchors, ["send-lag-why-and-how-p999", "twice", "twice-1"]);
    assert_eq!(page.links, ["b.md#c", "e.png", "f.svg"]);
    assert_eq!(page.spans, ["send-lag", "--flag"]);
    let infos: Vec<Option<&str>> = page.blocks.iter().map(|b| b.info.as_deref()).collect();
    assert_eq!(infos, [None, Some("sh example")]);
    assert_eq!(page.blocks[1].text, "ls\n");
}
