//! What a document is made of.

use crate::text::{Text, Tone};

/// How much room a block needs, and so which renderings show it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Detail {
    /// Only the terminal and the step summary, in place of something longer.
    Brief,
    /// Only the summary and the page.
    Full,
    /// All renderings.
    Both,
}

impl Detail {
    /// Whether a rendering of this detail shows a block of `other`.
    #[must_use]
    pub fn shows(self, other: Self) -> bool {
        self == other || self == Self::Both || other == Self::Both
    }
}

/// One result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Document {
    /// Unique on a page. Ids of its sections begin with it.
    pub id: String,
    /// The entry in a table of contents: `Load line`.
    pub entry: String,
    /// What a reader sees first.
    pub answer: Answer,
    /// What the answer rests on.
    pub evidence: Blocks,
}

/// The answer of a result: what a reader sees first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answer {
    /// What was asked: `Load line of rust-axum`.
    pub title: String,
    /// The verdict in a word or two.
    pub verdict: Option<(String, Tone)>,
    /// The answer in one sentence, without its full stop.
    pub claim: String,
    /// What bounds it; may be empty.
    pub bounds: String,
    /// What belongs to it.
    pub blocks: Blocks,
    /// The figure beside it.
    pub figure: Option<Figure>,
}

/// Blocks in order, each with the detail that it is for.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Blocks(Vec<(Detail, Block)>);

impl Blocks {
    /// For all renderings.
    pub fn push(&mut self, block: impl Into<Block>) {
        self.0.push((Detail::Both, block.into()));
    }

    /// For the summary and the page.
    pub fn full(&mut self, block: impl Into<Block>) {
        self.0.push((Detail::Full, block.into()));
    }

    /// For the terminal and the step summary.
    pub fn brief(&mut self, block: impl Into<Block>) {
        self.0.push((Detail::Brief, block.into()));
    }

    /// Sentences.
    pub fn paragraph(&mut self, text: impl Into<Text>) {
        self.push(Block::Paragraph(text.into()));
    }

    /// A side note.
    pub fn note(&mut self, text: impl Into<Text>) {
        self.push(Block::Note(text.into()));
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The blocks that a rendering of this detail shows, if it can show figures with the stems for which `has_figure`
    /// says so, and timelines.
    pub fn shown(&self, by: Shown<'_>) -> impl Iterator<Item = &Block> {
        let of_detail = self
            .0
            .iter()
            .filter(move |(detail, _)| by.detail.shows(*detail));
        of_detail
            .map(|(_, block)| block)
            .filter(move |block| block.is_shown(by))
    }
}

/// What a writer can show.
#[derive(Clone, Copy)]
pub struct Shown<'a> {
    /// How much room it has.
    pub detail: Detail,
    /// Whether there is a figure with this stem of its file names.
    pub has_figure: &'a dyn Fn(&str) -> bool,
    /// Whether it shows timelines.
    pub timelines: bool,
}

/// A block.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Block {
    /// Sentences.
    Paragraph(Text),
    /// A side note.
    Note(Text),
    /// Sentences as a list.
    List(List),
    /// Terms and their values.
    Facts(Vec<Fact>),
    /// A table.
    Table(Table),
    /// A chart of the folder.
    Figure(Figure),
    /// The trials with these stems, second by second.
    Timelines(Vec<String>),
    /// A shell command.
    Command(String),
    /// Blocks under a heading.
    Section(Section),
    /// Blocks under a title, folded away where a rendering can fold.
    Folded(String, Blocks),
}

impl Block {
    /// Whether there is something to show. A section of figures is empty without its figures.
    fn is_shown(&self, by: Shown<'_>) -> bool {
        match self {
            Self::Figure(figure) => (by.has_figure)(&figure.stem),
            Self::Timelines(_) => by.timelines,
            Self::List(list) => !list.items.is_empty(),
            Self::Facts(facts) => !facts.is_empty(),
            Self::Section(section) => section.blocks.shown(by).next().is_some(),
            Self::Folded(_, blocks) => blocks.shown(by).next().is_some(),
            Self::Paragraph(_) | Self::Note(_) | Self::Table(_) | Self::Command(_) => true,
        }
    }
}

impl From<List> for Block {
    fn from(list: List) -> Self {
        Self::List(list)
    }
}

impl From<Table> for Block {
    fn from(table: Table) -> Self {
        Self::Table(table)
    }
}

impl From<Figure> for Block {
    fn from(figure: Figure) -> Self {
        Self::Figure(figure)
    }
}

impl From<Section> for Block {
    fn from(section: Section) -> Self {
        Self::Section(section)
    }
}

impl From<Vec<Fact>> for Block {
    fn from(facts: Vec<Fact>) -> Self {
        Self::Facts(facts)
    }
}

/// Sentences as a list.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct List {
    /// By which tests find it; may be empty.
    pub hook: &'static str,
    /// Whether it is bad news.
    pub bad: bool,
    /// The sentences.
    pub items: Vec<Text>,
}

impl List {
    /// A list of these sentences.
    pub fn of<T: Into<Text>>(items: impl IntoIterator<Item = T>) -> Self {
        Self {
            items: items.into_iter().map(Into::into).collect(),
            ..Self::default()
        }
    }

    /// With the name by which tests find it.
    #[must_use]
    pub fn hooked(mut self, hook: &'static str) -> Self {
        self.hook = hook;
        self
    }
}

/// A term and its value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fact {
    /// The term.
    pub term: String,
    /// Its value.
    pub value: Text,
    /// By which tests find it; may be empty.
    pub hook: &'static str,
}

impl Fact {
    /// A term and its value.
    pub fn new(term: impl Into<String>, value: impl Into<Text>) -> Self {
        Self {
            term: term.into(),
            value: value.into(),
            hook: "",
        }
    }

    /// With the name by which tests find it.
    #[must_use]
    pub fn hooked(mut self, hook: &'static str) -> Self {
        self.hook = hook;
        self
    }
}

/// A table. The first cell of a row names the row.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Table {
    /// What it shows.
    pub caption: String,
    /// By which tests find it; may be empty.
    pub hook: &'static str,
    /// Its columns.
    pub columns: Vec<Column>,
    /// Its rows, each with a cell for every column.
    pub rows: Vec<Vec<Text>>,
}

impl Table {
    /// A table with these columns. The name of a column of numbers begins with `>`.
    pub fn new<S: AsRef<str>>(
        caption: impl Into<String>,
        columns: impl IntoIterator<Item = S>,
    ) -> Self {
        Self {
            caption: caption.into(),
            columns: columns
                .into_iter()
                .map(|name| Column::new(name.as_ref()))
                .collect(),
            ..Self::default()
        }
    }

    /// With the name by which tests find it.
    #[must_use]
    pub fn hooked(mut self, hook: &'static str) -> Self {
        self.hook = hook;
        self
    }

    /// Adds a row.
    pub fn row<T: Into<Text>>(&mut self, cells: impl IntoIterator<Item = T>) {
        let row: Vec<Text> = cells.into_iter().map(Into::into).collect();
        debug_assert_eq!(row.len(), self.columns.len(), "one cell per column");
        self.rows.push(row);
    }

    /// With these rows at its end.
    #[must_use]
    pub fn with_rows<T: Into<Text>, R: IntoIterator<Item = T>>(
        mut self,
        rows: impl IntoIterator<Item = R>,
    ) -> Self {
        for row in rows {
            self.row(row);
        }
        self
    }

    /// Names and values, as they are.
    pub fn of_facts(caption: &str, facts: impl IntoIterator<Item = (String, String)>) -> Self {
        let rows = facts.into_iter().map(|(name, value)| [name, value]);
        Self::new(caption, ["what", "value"]).with_rows(rows)
    }

    /// Which columns a rendering of this detail shows.
    #[must_use]
    pub fn shown(&self, by: Detail) -> Vec<usize> {
        let columns = self.columns.iter().enumerate();
        let shown = columns.filter(|(_, column)| by.shows(column.detail));
        shown.map(|(index, _)| index).collect()
    }
}

/// A column of a table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Column {
    /// Its name.
    pub name: String,
    /// The name where there is little room, such as in a terminal.
    pub short: String,
    /// Whether its cells are numbers, which stand to the right.
    pub is_number: bool,
    /// Which renderings show it.
    pub detail: Detail,
}

impl Column {
    /// A column for all renderings. The name of a column of numbers begins with `>`.
    #[must_use]
    pub fn new(name: &str) -> Self {
        let is_number = name.starts_with('>');
        let name = name.trim_start_matches('>').to_owned();
        Self {
            short: name.clone(),
            name,
            is_number,
            detail: Detail::Both,
        }
    }

    /// With this name where there is little room.
    #[must_use]
    pub fn short(mut self, short: impl Into<String>) -> Self {
        self.short = short.into();
        self
    }

    /// For renderings of this detail only.
    #[must_use]
    pub fn only(mut self, detail: Detail) -> Self {
        self.detail = detail;
        self
    }
}

/// A chart of the folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Figure {
    /// The stem of its file names.
    pub stem: String,
    /// By which tests find it.
    pub hook: &'static str,
    /// What it shows, for those who do not see it.
    pub alt: String,
    /// What it shows, in words.
    pub caption: String,
}

/// Blocks under a heading.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Section {
    /// Unique in its document; tests find the section by it.
    pub id: &'static str,
    /// Its heading.
    pub title: String,
    /// Whether a table of contents names it.
    pub is_listed: bool,
    /// What it says.
    pub blocks: Blocks,
}

impl Section {
    /// Blocks under a heading.
    pub fn new(id: &'static str, title: impl Into<String>, blocks: Blocks) -> Self {
        Self {
            id,
            title: title.into(),
            is_listed: true,
            blocks,
        }
    }

    /// One block under a heading.
    pub fn of(id: &'static str, title: impl Into<String>, block: impl Into<Block>) -> Self {
        let mut blocks = Blocks::default();
        blocks.push(block);
        Self::new(id, title, blocks)
    }

    /// Not named in a table of contents.
    #[must_use]
    pub fn unlisted(mut self) -> Self {
        self.is_listed = false;
        self
    }
}
