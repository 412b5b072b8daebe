//! One description of an object for both outputs: a tree whose leaves may be settings.

use crate::settings::Settings;

/// A value that is chosen: by a flag of the command, or in the values of the chart.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Setting {
    /// What the chart writes between `{{` and `}}`.
    pub(crate) helm: &'static str,
    /// What the command writes.
    pub(crate) literal: fn(&Settings) -> String,
}

/// Whether a part is there.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Condition {
    /// What the chart writes after `if`.
    pub(crate) helm: &'static str,
    /// What the command asks.
    pub(crate) holds: fn(&Settings) -> bool,
}

/// A list of texts that is chosen.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Lines {
    /// What the chart ranges over.
    pub(crate) helm: &'static str,
    /// What the command writes.
    pub(crate) literal: fn(&Settings) -> Vec<String>,
}

/// Environment variables that are chosen.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Pairs {
    /// What the chart ranges over: a map, which it sorts by name.
    pub(crate) helm: &'static str,
    /// What the command writes, sorted by name.
    pub(crate) literal: fn(&Settings) -> Vec<(String, String)>,
}

/// A part of a text.
#[derive(Debug, Clone)]
pub(crate) enum Piece {
    /// As it is.
    Fixed(&'static str),
    /// A setting. In a text of several pieces its value must need no quotes.
    Of(Setting),
}

impl From<&'static str> for Piece {
    fn from(text: &'static str) -> Self {
        Self::Fixed(text)
    }
}

impl From<Setting> for Piece {
    fn from(setting: Setting) -> Self {
        Self::Of(setting)
    }
}

/// A part of an object.
#[derive(Debug, Clone)]
pub(crate) enum Node {
    /// A map.
    Map(Vec<Entry>),
    /// A list.
    List(Vec<Item>),
    /// A text.
    Text(Vec<Piece>),
    /// A text that was made here.
    Made(String),
    /// A whole number.
    Number(i64),
    /// A number with a fraction.
    Decimal(f64),
    /// A number or a truth, without quotes.
    Bare(Setting),
    /// Whether.
    Bool(bool),
    /// What the chart's values say, as it is. The command has no flag for it, so it stands behind a [`Condition`] that
    /// does not hold there.
    Given(&'static str),
}

/// A part of a map.
#[derive(Debug, Clone)]
pub(crate) enum Entry {
    /// A field.
    Field(String, Node),
    /// Fields that are there if the condition holds.
    When(Condition, Vec<Entry>),
}

/// A part of a list.
#[derive(Debug, Clone)]
pub(crate) enum Item {
    /// One item.
    One(Node),
    /// Items that are there if the condition holds.
    When(Condition, Vec<Item>),
    /// A text for each line.
    Each(Lines),
    /// A variable of the environment for each pair.
    Variables(Pairs),
}

/// An object, in a file of the chart.
#[derive(Debug, Clone)]
pub(crate) struct Object {
    /// The name of the file without its end.
    pub(crate) file: &'static str,
    /// Whether it is there.
    pub(crate) when: Option<Condition>,
    /// What it is.
    pub(crate) node: Node,
}

/// A text of pieces.
macro_rules! text {
    ($($piece:expr),+ $(,)?) => {
        $crate::node::Node::Text(vec![$($crate::node::Piece::from($piece)),+])
    };
}

/// A map: `"name" => node`.
macro_rules! map {
    ($($name:literal => $node:expr),* $(,)?) => {
        $crate::node::Node::Map($crate::node::fields!($($name => $node),*))
    };
}

/// The entries of a map.
macro_rules! fields {
    ($($name:literal => $node:expr),* $(,)?) => {
        vec![$($crate::node::Entry::Field($name.to_owned(), $crate::node::Node::from($node))),*]
    };
}

/// A list of nodes.
macro_rules! list {
    ($($node:expr),* $(,)?) => {
        $crate::node::Node::List(vec![$($crate::node::Item::One($crate::node::Node::from($node))),*])
    };
}

pub(crate) use {fields, list, map, text};

impl From<&'static str> for Node {
    fn from(text: &'static str) -> Self {
        Self::Text(vec![Piece::Fixed(text)])
    }
}

impl From<Setting> for Node {
    fn from(setting: Setting) -> Self {
        Self::Text(vec![Piece::Of(setting)])
    }
}

impl From<i64> for Node {
    fn from(number: i64) -> Self {
        Self::Number(number)
    }
}

impl From<bool> for Node {
    fn from(truth: bool) -> Self {
        Self::Bool(truth)
    }
}

/// Values of a file of values.
impl From<&serde_json::Value> for Node {
    fn from(value: &serde_json::Value) -> Self {
        use serde_json::Value;
        match value {
            Value::Null => Self::Made(String::new()),
            Value::Bool(truth) => Self::Bool(*truth),
            Value::Number(number) => match number.as_i64() {
                Some(number) => Self::Number(number),
                None => Self::Decimal(number.as_f64().unwrap_or_default()),
            },
            Value::String(text) => Self::Made(text.clone()),
            Value::Array(items) => {
                Self::List(items.iter().map(|item| Item::One(item.into())).collect())
            }
            Value::Object(fields) => {
                let entry =
                    |(name, value): (&String, &Value)| Entry::Field(name.clone(), value.into());
                Self::Map(fields.iter().map(entry).collect())
            }
        }
    }
}

/// The same value with its fields sorted by name, whatever the library does with their order.
pub(crate) fn sorted(value: serde_json::Value) -> serde_json::Value {
    use serde_json::Value;
    match value {
        Value::Array(items) => items.into_iter().map(sorted).collect(),
        Value::Object(fields) => {
            let fields = fields
                .into_iter()
                .map(|(name, value)| (name, sorted(value)));
            let fields: std::collections::BTreeMap<_, _> = fields.collect();
            Value::Object(fields.into_iter().collect())
        }
        scalar => scalar,
    }
}
