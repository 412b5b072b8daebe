//! Places in a JSON message, and placeholders in the messages of the client.

use serde_json::Value;

use super::super::event::Fault;
use super::super::options::{OptionError, Options};

/// A place in a JSON message: names with dots between, and numbers of array elements in brackets, such as
/// `channel.alternatives[0].transcript`. Nothing else of JSONPath.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Path {
    name: &'static str,
    steps: Vec<Step>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Step {
    Name(&'static str),
    Index(usize),
}

impl Path {
    /// Reads a path. It is kept for the life of the process, because faults name it.
    ///
    /// # Errors
    /// If it is none.
    pub(super) fn parse(text: &str) -> Result<Self, OptionError> {
        let name: &'static str = String::leak(text.to_owned());
        let bad = || {
            OptionError::Template(format!(
                "{text:?} is no path; write names with dots between, and numbers in brackets, such as a.b[0].c"
            ))
        };
        let mut steps = Vec::new();
        for part in name.split('.') {
            let (field, mut rest) = part.split_at(part.find('[').unwrap_or(part.len()));
            if field.is_empty() {
                return Err(bad());
            }
            steps.push(Step::Name(field));
            while let Some(inner) = rest.strip_prefix('[') {
                let (number, after) = inner.split_once(']').ok_or_else(bad)?;
                steps.push(Step::Index(number.parse().map_err(|_| bad())?));
                rest = after;
            }
            if !rest.is_empty() {
                return Err(bad());
            }
        }
        Ok(Self { name, steps })
    }

    /// The path as it was written.
    pub(super) fn name(&self) -> &'static str {
        self.name
    }

    /// What is there; `None` too where it is `null`.
    pub(super) fn find<'v>(&self, message: &'v Value) -> Option<&'v Value> {
        let mut at = message;
        for step in &self.steps {
            at = match step {
                Step::Name(name) => at.as_object()?.get(*name)?,
                Step::Index(index) => at.as_array()?.get(*index)?,
            };
        }
        (!at.is_null()).then_some(at)
    }

    /// What must be there.
    pub(super) fn need<'v>(&self, message: &'v Value) -> Result<&'v Value, Fault> {
        self.find(message).ok_or(Fault::Missing(self.name))
    }
}

/// Placeholders that are filled in later, once for each session or message.
const LATER: [&str; 3] = ["session", "last_seq", "audio"];

/// A JSON message with its placeholders filled in; what is filled in is written as JSON text has it.
pub(super) fn fill(text: &str, options: &Options) -> Result<String, OptionError> {
    replaced(text, options, |value| {
        let quoted = Value::from(value).to_string();
        quoted[1..quoted.len() - 1].to_owned()
    })
}

/// A field of the query or a header with its placeholders filled in.
pub(super) fn plain(text: &str, options: &Options) -> Result<String, OptionError> {
    replaced(text, options, ToOwned::to_owned)
}

/// A placeholder is a name in braces: lower-case letters, `_` and one colon. Other braces are text.
fn replaced(
    text: &str,
    options: &Options,
    written: impl Fn(&str) -> String,
) -> Result<String, OptionError> {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(start) = rest.find('{') {
        let (before, from) = rest.split_at(start);
        out.push_str(before);
        let end = from.find('}');
        let name = end.map(|end| &from[1..end]).filter(|name| is_name(name));
        let Some(name) = name else {
            out.push('{');
            rest = &from[1..];
            continue;
        };
        rest = &from[name.len() + 2..];
        if LATER.contains(&name) {
            out.push_str(&from[..name.len() + 2]);
        } else {
            out.push_str(&written(value_of(name, options)?));
        }
    }
    out.push_str(rest);
    Ok(out)
}

fn is_name(name: &str) -> bool {
    let is_ours = |c: char| c.is_ascii_lowercase() || c == '_' || c == ':';
    !name.is_empty() && name.chars().all(is_ours)
}

fn value_of<'o>(name: &str, options: &'o Options) -> Result<&'o str, OptionError> {
    let needs = |what: String| OptionError::Template(format!("the template needs {what}"));
    match name {
        "language" => Ok(&options.language),
        "model" => options
            .model
            .as_deref()
            .ok_or_else(|| needs("a model; give --model".to_owned())),
        "key" => {
            let key = options.key.as_ref();
            key.map(|key| key.value.expose())
                .ok_or_else(|| needs("a key; give one".to_owned()))
        }
        _ => match name.strip_prefix("param:") {
            Some(param) => options
                .param(param)
                .ok_or_else(|| needs(format!("a parameter; give --param {param}=VALUE"))),
            None => Err(OptionError::Template(format!(
                "{{{name}}} is no placeholder; there are {{model}}, {{language}}, {{key}}, {{param:NAME}}, {{session}}, {{last_seq}} and {{audio}}"
            ))),
        },
    }
}
