//! The blocks of a document as HTML.

use super::timelines::Timelines;
use super::write::{Attribute, Html};
use crate::document::{
    Answer, Block, Blocks, Column, Detail, Document, Fact, Figure, List, Section, Shown, Span,
    Table, Text, Tone,
};
use crate::render::{self, Chart};

/// The parts of a page, from which the reader can jump to one.
#[derive(Debug, Default)]
pub(super) struct Contents {
    parts: Vec<(String, String)>,
}

impl Contents {
    pub(super) fn push(&mut self, id: &str, title: &str) {
        self.parts.push((id.to_owned(), title.to_owned()));
    }

    /// The ids and titles.
    pub(super) fn iter(&self) -> impl Iterator<Item = &(String, String)> {
        self.parts.iter()
    }
}

/// Levels of headings: of a result and of its sections.
#[derive(Debug, Clone, Copy)]
pub(super) struct Levels {
    result: &'static str,
    section: &'static str,
}

impl Levels {
    /// For the first result of a page.
    pub(super) const FIRST: Self = Self {
        result: "h1",
        section: "h2",
    };
    /// For the other results.
    pub(super) const FURTHER: Self = Self {
        result: "h2",
        section: "h3",
    };
}

/// Writes documents onto a page.
#[derive(Clone, Copy)]
pub(super) struct Writer<'a> {
    pub(super) charts: &'a [Chart],
    pub(super) timelines: &'a Timelines,
    pub(super) levels: Levels,
}

/// A document under way: its id, and the table of contents that names its sections.
struct Place<'a> {
    id: &'a str,
    contents: Option<&'a mut Contents>,
}

impl Writer<'_> {
    /// Writes a document. Its sections are named in `contents`, if there is one.
    pub(super) fn document(
        self,
        html: &mut Html,
        document: &Document,
        contents: Option<&mut Contents>,
    ) {
        let claim = format!("{}-claim", document.id);
        let attributes = [
            ("aria-labelledby", claim.as_str()),
            ("id", document.id.as_str()),
        ];
        let mut place = Place {
            id: &document.id,
            contents,
        };
        html.inside("article", &attributes, |html| {
            self.answer(html, &document.answer, &mut place);
            self.blocks(html, &document.evidence, &mut place);
        });
    }

    /// The first screen: the claim, what bounds it, and the figure.
    fn answer(self, html: &mut Html, answer: &Answer, place: &mut Place<'_>) {
        html.inside("div", &[("class", "answer")], |html| {
            html.inside("div", &[], |html| {
                if let Some((word, tone)) = &answer.verdict {
                    pill(html, word, *tone);
                }
                let id = format!("{}-claim", place.id);
                let heading = [("id", id.as_str()), ("data-test", "claim")];
                html.element(self.levels.result, &heading, &answer.claim);
                if !answer.bounds.is_empty() {
                    html.element("p", &[], &format!("{}.", answer.bounds));
                }
                self.blocks(html, &answer.blocks, place);
            });
            if let Some(figure) = &answer.figure {
                self.figure(html, figure);
            }
        });
    }

    fn blocks(self, html: &mut Html, blocks: &Blocks, place: &mut Place<'_>) {
        let has_figure = |stem: &str| self.chart(stem).is_some();
        let shown = Shown {
            detail: Detail::Full,
            has_figure: &has_figure,
            timelines: true,
        };
        for block in blocks.shown(shown) {
            self.block(html, block, place);
        }
    }

    fn block(self, html: &mut Html, block: &Block, place: &mut Place<'_>) {
        match block {
            Block::Paragraph(text) => html.inside("p", &[], |html| inline(html, text)),
            Block::Note(text) => note(html, text),
            Block::List(items) => list(html, items),
            Block::Facts(facts) => terms(html, facts),
            Block::Table(found) => table(html, found),
            Block::Figure(found) => self.figure(html, found),
            Block::Timelines(stems) => self.timelines.write(html, stems),
            Block::Command(command) => html.inside("pre", &[("tabindex", "0")], |html| {
                html.element("code", &[], command);
            }),
            Block::Section(section) => self.section(html, section, place),
            Block::Folded(title, blocks) => html.inside("details", &[], |html| {
                html.element("summary", &[], title);
                self.blocks(html, blocks, place);
            }),
        }
    }

    fn section(self, html: &mut Html, section: &Section, place: &mut Place<'_>) {
        let id = format!("{}-{}", place.id, section.id);
        if let Some(contents) = place.contents.as_mut().filter(|_| section.is_listed) {
            contents.push(&id, &section.title);
        }
        let title_id = format!("{id}-title");
        let attributes = [
            ("id", id.as_str()),
            ("aria-labelledby", title_id.as_str()),
            ("data-test", section.id),
        ];
        html.inside("section", &attributes, |html| {
            html.element(self.levels.section, &[("id", &title_id)], &section.title);
            self.blocks(html, &section.blocks, place);
        });
    }

    /// The chart with that stem of its file names.
    fn chart(&self, stem: &str) -> Option<&str> {
        let found = self.charts.iter().find(|chart| chart.stem == stem);
        found.map(|chart| chart.svg.as_str())
    }

    /// A drawing with its caption; nothing where there is no such chart.
    fn figure(self, html: &mut Html, figure: &Figure) {
        if let Some(svg) = self.chart(&figure.stem) {
            html.inside("figure", &[("data-test", figure.hook)], |html| {
                html.drawing(svg);
                html.element("figcaption", &[], &figure.caption);
            });
        }
    }
}

/// The verdict in a word or two.
fn pill(html: &mut Html, word: &str, tone: Tone) {
    let class = match tone {
        Tone::Good => "pill good",
        Tone::Bad => "pill bad",
        Tone::Open => "pill",
    };
    html.element("p", &[("class", class), ("data-test", "verdict")], word);
}

/// A side note.
pub(super) fn note(html: &mut Html, text: &Text) {
    html.inside("p", &[("class", "note")], |html| inline(html, text));
}

fn list(html: &mut Html, list: &List) {
    let mut attributes: Vec<Attribute<'_>> = Vec::new();
    if list.bad {
        attributes.push(("class", "bad"));
    }
    attributes.extend(hook(list.hook));
    html.inside("ul", &attributes, |html| {
        for item in &list.items {
            html.inside("li", &[], |html| inline(html, item));
        }
    });
}

/// The attribute by which tests find an element.
fn hook(hook: &'static str) -> Option<Attribute<'static>> {
    (!hook.is_empty()).then_some(("data-test", hook))
}

fn terms(html: &mut Html, facts: &[Fact]) {
    html.inside("dl", &[("class", "facts")], |html| {
        for fact in facts {
            html.element("dt", &[], &fact.term);
            let attributes: Vec<_> = hook(fact.hook).into_iter().collect();
            html.inside("dd", &attributes, |html| inline(html, &fact.value));
        }
    });
}

fn inline(html: &mut Html, text: &Text) {
    for span in &text.0 {
        match span {
            Span::Plain(text) => html.text(text),
            Span::Strong(text) => html.inline("strong", &[], text),
            Span::Code(text) => html.inline("code", &[], text),
            Span::Toned(text, Tone::Good) => html.inline("strong", &[("class", "good")], text),
            Span::Toned(text, Tone::Bad) => html.inline("strong", &[("class", "bad")], text),
            Span::Toned(text, Tone::Open) => html.text(text),
            Span::Folder(path, text) => {
                let page = relative(&format!("{path}/{}", render::REPORT));
                html.inline("a", &[("href", &page)], text);
            }
        }
    }
}

/// On a narrow screen the table scrolls within the page.
fn table(html: &mut Html, table: &Table) {
    let shown = table.shown(Detail::Full);
    let columns: Vec<&Column> = shown.iter().map(|index| &table.columns[*index]).collect();
    let mut scroll = vec![
        ("class", "scroll"),
        ("role", "region"),
        ("aria-label", table.caption.as_str()),
        ("tabindex", "0"),
    ];
    scroll.extend(hook(table.hook));
    html.inside("div", &scroll, |html| {
        html.inside("table", &[], |html| {
            html.element("caption", &[], &table.caption);
            html.inside("thead", &[], |html| {
                html.inside("tr", &[], |html| {
                    for column in &columns {
                        let attributes = [("scope", "col"), ("class", "number")];
                        let attributes = &attributes[..1 + usize::from(column.is_number)];
                        html.element("th", attributes, &column.name);
                    }
                });
            });
            html.inside("tbody", &[], |html| {
                for cells in &table.rows {
                    let cells = shown.iter().map(|index| &cells[*index]);
                    html.inside("tr", &[], |html| {
                        row(html, columns.iter().copied().zip(cells))
                    });
                }
            });
        });
    });
}

fn row<'a>(html: &mut Html, cells: impl Iterator<Item = (&'a Column, &'a Text)>) {
    for (index, (column, cell)) in cells.enumerate() {
        let mut attributes = Vec::new();
        if index == 0 {
            attributes.push(("scope", "row"));
        }
        if column.is_number {
            attributes.push(("class", "number"));
        }
        let name = if index == 0 { "th" } else { "td" };
        html.inside(name, &attributes, |html| inline(html, cell));
    }
}

/// A path beside this page as a link. Whatever the path contains, it cannot lead to another scheme or host.
fn relative(path: &str) -> String {
    let mut link = "./".to_owned();
    for byte in path.bytes() {
        if byte.is_ascii_alphanumeric() || b"-_./".contains(&byte) {
            link.push(char::from(byte));
        } else {
            link.push_str(&format!("%{byte:02X}"));
        }
    }
    link
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_is_a_path_whatever_it_is() {
        assert_eq!(relative("rust-axum/report.html"), "./rust-axum/report.html");
        assert_eq!(
            relative("javascript:alert(1)"),
            "./javascript%3Aalert%281%29"
        );
        assert_eq!(relative("//host/é?x#y"), ".///host/%C3%A9%3Fx%23y");
    }
}
