//! Documents as Markdown: `summary.md`, and `step-summary.md`, the result in brief for GitHub to show on the page of a
//! workflow run (`GITHUB_STEP_SUMMARY`). Nothing from outside is markup in them.

use crate::document::{
    Answer, Block, Blocks, Detail, Document, Fact, Figure, Part, Section, Shown, Span, Table, Text,
    Tone,
};
use crate::render::{self, Chart};
use crate::words::{capital, plain};

/// The summary: the answer first, then whether you can believe it, then the evidence, then how to repeat it.
pub(crate) fn summary(parts: &[Part], charts: &[Chart]) -> String {
    Writer {
        detail: Detail::Full,
        level: 1,
        charts,
    }
    .of(parts)
}

/// The step summary: the verdict in one line, doubts with their remedies, and the evidence folded away.
pub(crate) fn step_summary(parts: &[Part]) -> String {
    Writer {
        detail: Detail::Brief,
        level: 3,
        charts: &[],
    }
    .of(parts)
}

/// Writes documents as Markdown.
#[derive(Clone, Copy)]
struct Writer<'a> {
    detail: Detail,
    /// The level of a result's heading.
    level: usize,
    charts: &'a [Chart],
}

impl Writer<'_> {
    fn of(self, parts: &[Part]) -> String {
        let mut page = Page::default();
        for part in parts {
            self.document(&mut page, part.document());
        }
        page.text
    }

    fn document(self, page: &mut Page, document: &Document) {
        self.answer(page, &document.answer);
        self.blocks(page, &document.evidence);
    }

    /// Where there is little room, the claim is the heading.
    fn answer(self, page: &mut Page, answer: &Answer) {
        let claim = match &answer.verdict {
            Some((word, _)) => format!("{word}: {}", answer.claim),
            None => answer.claim.clone(),
        };
        let bounds = match answer.bounds.as_str() {
            "" => String::new(),
            bounds => format!("{}.", escape(&capital(bounds))),
        };
        if self.detail == Detail::Brief {
            page.heading(self.level, &escape(&claim));
            if !bounds.is_empty() {
                page.block(&bounds);
            }
        } else {
            page.heading(self.level, &escape(&answer.title));
            let claim = escape(&capital(&claim));
            page.block(format!("**{claim}.** {bounds}").trim_end());
        }
        self.blocks(page, &answer.blocks);
        if let Some(figure) = &answer.figure {
            self.figure(page, figure);
        }
    }

    fn blocks(self, page: &mut Page, blocks: &Blocks) {
        let has_figure = |stem: &str| self.has_chart(stem);
        let shown = Shown {
            detail: self.detail,
            has_figure: &has_figure,
            timelines: false,
        };
        for block in blocks.shown(shown) {
            self.block(page, block);
        }
    }

    fn block(self, page: &mut Page, block: &Block) {
        match block {
            Block::Paragraph(text) | Block::Note(text) => page.block(&self.inline(text)),
            Block::List(list) => page.list(list.items.iter().map(|item| self.inline(item))),
            Block::Facts(facts) => page.list(facts.iter().map(|fact| self.fact(fact))),
            Block::Table(table) => self.table(page, table),
            Block::Figure(figure) => self.figure(page, figure),
            // The page shows them.
            Block::Timelines(_) => {}
            Block::Command(command) => page.block(&format!("```sh\n{command}\n```")),
            Block::Section(section) => self.section(page, section),
            Block::Folded(title, blocks) => self.folded(page, title, blocks),
        }
    }

    fn section(self, page: &mut Page, section: &Section) {
        page.heading(self.level + 1, &escape(&section.title));
        self.blocks(page, &section.blocks);
    }

    /// GitHub shows it folded. The summary has room for all of it.
    fn folded(self, page: &mut Page, title: &str, blocks: &Blocks) {
        if self.detail == Detail::Brief {
            let title = escape(title);
            page.block(&format!("<details>\n<summary>{title}</summary>"));
            self.blocks(page, blocks);
            page.block("</details>");
        } else {
            page.block(&format!("{}:", escape(title)));
            self.blocks(page, blocks);
        }
    }

    fn fact(self, fact: &Fact) -> String {
        let value = self.inline(&fact.value);
        match fact.term.as_str() {
            "" => value,
            term => format!("{}: {value}", escape(term)),
        }
    }

    /// The heading right above a table says what its caption says.
    fn table(self, page: &mut Page, table: &Table) {
        if !page.ends_with_heading() {
            page.block(&format!("{}:", escape(&table.caption)));
        }
        let shown = table.shown(self.detail);
        let columns = || shown.iter().map(|index| &table.columns[*index]);
        let line = |cells: Vec<String>| format!("| {} |", cells.join(" | "));
        let mut lines = vec![
            line(columns().map(|column| escape(&column.name)).collect()),
            line(
                columns()
                    .map(|column| if column.is_number { "---:" } else { "---" }.to_owned())
                    .collect(),
            ),
        ];
        for row in &table.rows {
            let cells = shown.iter().map(|index| self.inline(&row[*index]));
            lines.push(line(cells.collect()));
        }
        page.block(&lines.join("\n"));
    }

    fn has_chart(self, stem: &str) -> bool {
        self.charts.iter().any(|chart| chart.stem == stem)
    }

    fn figure(self, page: &mut Page, figure: &Figure) {
        if self.has_chart(&figure.stem) {
            let Figure { stem, alt, .. } = figure;
            page.block(&format!("![{}]({stem}.svg)", escape(alt)));
        }
    }

    fn inline(self, text: &Text) -> String {
        let spans = text.0.iter().map(|span| match span {
            Span::Plain(text) | Span::Toned(text, Tone::Good | Tone::Open) => escape(text),
            Span::Strong(text) | Span::Toned(text, Tone::Bad) => format!("**{}**", escape(text)),
            Span::Code(text) => format!("`{}`", code(text)),
            // Nothing lies beside a step summary.
            Span::Folder(_, text) if self.detail == Detail::Brief => escape(text),
            Span::Folder(path, text) => {
                format!("[{}]({}/{})", escape(text), escape(path), render::SUMMARY)
            }
        });
        spans.collect()
    }
}

/// A page under construction: blocks separated by one empty line.
#[derive(Debug, Default)]
struct Page {
    text: String,
    ends_with_heading: bool,
}

impl Page {
    fn heading(&mut self, level: usize, text: &str) {
        self.block(&format!("{} {text}", "#".repeat(level)));
        self.ends_with_heading = true;
    }

    fn ends_with_heading(&self) -> bool {
        self.ends_with_heading
    }

    fn list(&mut self, items: impl Iterator<Item = String>) {
        let lines: Vec<_> = items.map(|item| format!("- {item}")).collect();
        self.block(&lines.join("\n"));
    }

    fn block(&mut self, text: &str) {
        if !self.text.is_empty() {
            self.text.push('\n');
        }
        self.text.push_str(text);
        self.text.push('\n');
        self.ends_with_heading = false;
    }
}

/// Text from outside as Markdown text: on one line, with all markup escaped. An underscore within a word is not markup.
fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    let mut in_word = false;
    let plain = plain(text);
    let mut chars = plain.chars().peekable();
    while let Some(c) = chars.next() {
        let word_goes_on = chars.peek().is_some_and(|next| next.is_alphanumeric());
        match c {
            '_' if in_word && word_goes_on => escaped.push(c),
            '\\' | '`' | '*' | '_' | '[' | ']' | '|' | '#' | '~' | '$' => {
                escaped.extend(['\\', c]);
            }
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '&' => escaped.push_str("&amp;"),
            c => escaped.push(c),
        }
        in_word = c.is_alphanumeric();
    }
    escaped
}

/// Text from outside within a code span: on one line, and nothing in it can end the span or a table's cell.
fn code(text: &str) -> String {
    plain(text).replace(['`', '|'], "'")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use pulldown_cmark::{Event, Options, Parser, Tag};

    use super::*;

    const WRITER: Writer<'static> = Writer {
        detail: Detail::Full,
        level: 1,
        charts: &[],
    };

    /// What a reader of GitHub's Markdown sees: the kinds of elements, and the text.
    fn read(markdown: &str) -> (Vec<String>, String) {
        let options = Options::ENABLE_TABLES
            | Options::ENABLE_STRIKETHROUGH
            | Options::ENABLE_TASKLISTS
            | Options::ENABLE_FOOTNOTES
            | Options::ENABLE_MATH
            | Options::ENABLE_GFM;
        let mut kinds = Vec::new();
        let mut text = String::new();
        for event in Parser::new_ext(markdown, options) {
            match event {
                Event::Text(found) | Event::Code(found) => text.push_str(&found),
                Event::Start(Tag::Table(_)) => kinds.push("table".to_owned()),
                Event::Start(tag) => kinds.push(format!("{tag:?}")),
                Event::End(_) => {}
                other => kinds.push(format!("{other:?}")),
            }
        }
        (kinds, text)
    }

    proptest! {
        #[test]
        fn any_text_is_read_as_it_was_given(text in "[ -~\\PC\n]{0,40}") {
            let (kinds, read_back) = read(&format!("a {} z\n", escape(&text)));
            prop_assert_eq!(kinds, ["Paragraph"]);
            prop_assert_eq!(read_back, format!("a {} z", plain(&text)));
        }

        #[test]
        fn any_text_stays_in_its_cell(text in "[ -~\\PC\n]{0,40}") {
            let mut table = Table::new("", ["one", "two"]);
            table.row([Text::from(format!("a {text} z")), Text::code(format!("a {text} z"))]);
            let mut page = Page { ends_with_heading: true, ..Page::default() };
            WRITER.table(&mut page, &table);
            let (kinds, read_back) = read(&page.text);
            prop_assert_eq!(
                kinds,
                ["table", "TableHead", "TableCell", "TableCell", "TableRow", "TableCell", "TableCell"]
            );
            let in_code = plain(&text).replace(['`', '|'], "'");
            prop_assert_eq!(read_back, format!("onetwoa {} za {in_code} z", plain(&text)));
        }
    }

    #[test]
    fn nothing_from_outside_is_markup() {
        assert_eq!(
            escape("a|b\n<c> **d** `e`"),
            "a\\|b &lt;c&gt; \\*\\*d\\*\\* \\`e\\`"
        );
        assert_eq!(code("a`b|c\nd"), "a'b'c d");
        assert_eq!(escape("oldest_p95_ms"), "oldest_p95_ms");
        assert_eq!(escape("_so_ $x$"), "\\_so\\_ \\$x\\$");
    }
}
