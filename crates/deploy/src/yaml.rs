//! Writes a tree as YAML: with literal values, or with the expressions of Helm's templates in their place. No library
//! writes the second, and one writer for both keeps them the same.

use crate::node::{Condition, Entry, Item, Node, Object, Piece};
use crate::settings::Settings;

/// Which of the two.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Output<'a> {
    /// The values of these settings.
    Literal(&'a Settings),
    /// Expressions.
    Helm,
}

/// The objects that are there, each a document.
pub(crate) fn documents(objects: &[Object], settings: &Settings) -> String {
    let there = objects
        .iter()
        .filter(|object| object.when.is_none_or(|when| (when.holds)(settings)));
    let texts = there.map(|object| text(&object.node, Output::Literal(settings)));
    texts.map(|text| format!("---\n{text}")).collect()
}

/// A node as the only document.
pub(crate) fn text(node: &Node, output: Output<'_>) -> String {
    let mut writer = Writer {
        output,
        lines: Vec::new(),
    };
    writer.block(node, 0);
    let mut text = writer.lines.join("\n");
    text.push('\n');
    text
}

/// The text of a scalar with quotes where YAML could read something else: JSON's, which YAML reads alike.
fn quoted(text: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./".contains(c);
    let starts_well = text.starts_with(|c: char| c.is_ascii_alphabetic() || c == '/');
    let word = ["true", "false", "null", "yes", "no", "on", "off", "y", "n"];
    let is_word = word.iter().any(|word| text.eq_ignore_ascii_case(word));
    if starts_well && text.chars().all(plain) && !is_word {
        return text.to_owned();
    }
    serde_json::Value::from(text).to_string()
}

struct Writer<'a> {
    output: Output<'a>,
    lines: Vec<String>,
}

impl Writer<'_> {
    fn line(&mut self, indent: usize, text: &str) {
        self.lines.push(format!("{:indent$}{text}", ""));
    }

    /// A map or a list, from this column on.
    fn block(&mut self, node: &Node, indent: usize) {
        match node {
            Node::Map(entries) => self.entries(entries, indent),
            Node::List(items) => self.items(items, indent),
            scalar => {
                let text = self.scalar(scalar);
                self.line(indent, &text);
            }
        }
    }

    fn entries(&mut self, entries: &[Entry], indent: usize) {
        for entry in entries {
            match entry {
                Entry::Field(name, node) => self.field(&quoted(name), node, indent),
                Entry::When(condition, entries) => {
                    if self.begins(*condition, indent) {
                        self.entries(entries, indent);
                        self.ends(indent);
                    }
                }
            }
        }
    }

    fn items(&mut self, items: &[Item], indent: usize) {
        for item in items {
            match item {
                Item::One(node) => self.item(node, indent),
                Item::When(condition, items) => {
                    if self.begins(*condition, indent) {
                        self.items(items, indent);
                        self.ends(indent);
                    }
                }
                Item::Each(lines) => match self.output {
                    Output::Literal(settings) => {
                        for line in (lines.literal)(settings) {
                            self.line(indent, &format!("- {}", quoted(&line)));
                        }
                    }
                    Output::Helm => {
                        self.line(indent, &format!("{{{{- range $line := {} }}}}", lines.helm));
                        self.line(indent, "- {{ $line | quote }}");
                        self.ends(indent);
                    }
                },
                Item::Variables(pairs) => match self.output {
                    Output::Literal(settings) => {
                        for (name, value) in (pairs.literal)(settings) {
                            self.line(indent, &format!("- name: {}", quoted(&name)));
                            self.line(indent + 2, &format!("value: {}", quoted(&value)));
                        }
                    }
                    Output::Helm => {
                        let range = format!("{{{{- range $name, $value := {} }}}}", pairs.helm);
                        self.line(indent, &range);
                        self.line(indent, "- name: {{ $name | quote }}");
                        self.line(indent + 2, "value: {{ $value | quote }}");
                        self.ends(indent);
                    }
                },
            }
        }
    }

    /// The head of a part behind a condition; false if the part is not written at all.
    fn begins(&mut self, condition: Condition, indent: usize) -> bool {
        match self.output {
            Output::Literal(settings) => (condition.holds)(settings),
            Output::Helm => {
                self.line(indent, &format!("{{{{- if {} }}}}", condition.helm));
                true
            }
        }
    }

    fn ends(&mut self, indent: usize) {
        if matches!(self.output, Output::Helm) {
            self.line(indent, "{{- end }}");
        }
    }

    fn field(&mut self, name: &str, node: &Node, indent: usize) {
        if self.is_empty(node) {
            let empty = if matches!(node, Node::List(_)) {
                "[]"
            } else {
                "{}"
            };
            return self.line(indent, &format!("{name}: {empty}"));
        }
        match node {
            Node::Map(_) | Node::List(_) => {
                self.line(indent, &format!("{name}:"));
                self.block(node, indent + 2);
            }
            Node::Given(helm) => {
                let deeper = indent + 2;
                self.line(indent, &format!("{name}:"));
                self.line(
                    deeper,
                    &format!("{{{{- toYaml {helm} | nindent {deeper} }}}}"),
                );
            }
            scalar => {
                let text = self.scalar(scalar);
                self.line(indent, &format!("{name}: {text}"));
            }
        }
    }

    /// Whether nothing of it is written. What stands behind a condition always is, in a template.
    fn is_empty(&self, node: &Node) -> bool {
        let Output::Literal(settings) = self.output else {
            return match node {
                Node::Map(entries) => entries.is_empty(),
                Node::List(items) => items.is_empty(),
                _ => false,
            };
        };
        match node {
            Node::Map(entries) => entries.iter().all(|entry| match entry {
                Entry::Field(..) => false,
                Entry::When(condition, _) => !(condition.holds)(settings),
            }),
            Node::List(items) => items.iter().all(|item| match item {
                Item::One(_) => false,
                Item::When(condition, _) => !(condition.holds)(settings),
                Item::Each(lines) => (lines.literal)(settings).is_empty(),
                Item::Variables(pairs) => (pairs.literal)(settings).is_empty(),
            }),
            _ => false,
        }
    }

    /// An item: its block, with the dash in the first line's indentation.
    fn item(&mut self, node: &Node, indent: usize) {
        let first = self.lines.len();
        self.block(node, indent + 2);
        if let Some(line) = self.lines.get_mut(first) {
            line.replace_range(indent..=indent, "-");
        }
    }

    fn scalar(&self, node: &Node) -> String {
        match (node, self.output) {
            (Node::Text(pieces), Output::Literal(settings)) => {
                let texts = pieces.iter().map(|piece| match piece {
                    Piece::Fixed(text) => (*text).to_owned(),
                    Piece::Of(setting) => (setting.literal)(settings),
                });
                quoted(&texts.collect::<String>())
            }
            (Node::Text(pieces), Output::Helm) => in_template(pieces),
            (Node::Made(text), _) => quoted(text),
            (Node::Number(number), _) => number.to_string(),
            (Node::Decimal(number), _) => number.to_string(),
            (Node::Bool(truth), _) => truth.to_string(),
            (Node::Bare(setting), Output::Literal(settings)) => (setting.literal)(settings),
            (Node::Bare(setting), Output::Helm) => format!("{{{{ {} }}}}", setting.helm),
            (Node::Given(_) | Node::Map(_) | Node::List(_), _) => "{}".to_owned(),
        }
    }
}

fn in_template(pieces: &[Piece]) -> String {
    match pieces {
        [Piece::Fixed(text)] => quoted(text),
        [Piece::Of(setting)] => format!("{{{{ {} | quote }}}}", setting.helm),
        pieces => {
            let texts = pieces.iter().map(|piece| match piece {
                Piece::Fixed(text) => (*text).to_owned(),
                Piece::Of(setting) => format!("{{{{ {} }}}}", setting.helm),
            });
            format!("\"{}\"", texts.collect::<String>())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::node::{Lines, Pairs, Setting, fields, list, map, text};

    const NAME: Setting = Setting {
        helm: ".Release.Name",
        literal: |settings| settings.name.clone(),
    };
    const YES: Condition = Condition {
        helm: ".Values.yes",
        holds: |_| true,
    };
    const NO: Condition = Condition {
        helm: ".Values.no",
        holds: |_| false,
    };

    fn literal(node: &Node) -> String {
        let settings = Settings::default();
        super::text(node, Output::Literal(&settings))
    }

    #[test]
    fn a_tree_is_written_in_both_ways() {
        let node = map! {
            "name" => text!(NAME, "-x"),
            "whole" => NAME,
            "list" => Node::List(vec![
                Item::One(map! { "a" => 1, "b" => list!["c", "d e"] }),
                Item::When(YES, vec![Item::One("there".into())]),
                Item::When(NO, vec![Item::One("not".into())]),
                Item::Each(Lines { helm: ".Values.lines", literal: |_| vec!["--x".to_owned()] }),
                Item::Variables(Pairs {
                    helm: ".Values.env",
                    literal: |_| vec![("A".to_owned(), "1".to_owned())],
                }),
            ]),
            "empty" => Node::Map(vec![Entry::When(NO, fields! { "selector" => Node::Given(".Values.selector") })]),
            "last" => true,
        };
        assert_eq!(
            literal(&node),
            "name: plimsoll-x\nwhole: plimsoll\nlist:\n  - a: 1\n    b:\n      - c\n      - \"d e\"\n  - there\n  - \"--x\"\n  - name: A\n    value: \"1\"\nempty: {}\nlast: true\n"
        );
        assert_eq!(
            super::text(&node, Output::Helm),
            "name: \"{{ .Release.Name }}-x\"\nwhole: {{ .Release.Name | quote }}\nlist:\n  - a: 1\n    b:\n      - c\n      - \"d e\"\n  {{- if .Values.yes }}\n  - there\n  {{- end }}\n  {{- if .Values.no }}\n  - not\n  {{- end }}\n  {{- range $line := .Values.lines }}\n  - {{ $line | quote }}\n  {{- end }}\n  {{- range $name, $value := .Values.env }}\n  - name: {{ $name | quote }}\n    value: {{ $value | quote }}\n  {{- end }}\nempty:\n  {{- if .Values.no }}\n  selector:\n    {{- toYaml .Values.selector | nindent 4 }}\n  {{- end }}\nlast: true\n"
        );
    }

    #[test]
    fn what_yaml_could_read_otherwise_is_quoted() {
        for (text, written) in [
            ("plain", "plain"),
            ("/results/run", "/results/run"),
            ("yes", "\"yes\""),
            ("NO", "\"NO\""),
            ("1", "\"1\""),
            ("0x1", "\"0x1\""),
            ("a: b", "\"a: b\""),
            ("a#b", "\"a#b\""),
            ("", "\"\""),
            ("-", "\"-\""),
            ("~", "\"~\""),
            ("é\n\"", "\"é\\n\\\"\""),
        ] {
            assert_eq!(quoted(text), written);
        }
    }
}
