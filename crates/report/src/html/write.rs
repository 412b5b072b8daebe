//! Writes HTML: we define the names of elements and attributes, and text is always escaped.

use std::fmt::Write;

use crate::xml::escape;

/// An attribute: its name, which we define, and its value, which may be from outside.
pub type Attribute<'a> = (&'static str, &'a str);

/// A page under construction. Text enters only through [`Html::text`] and as attribute values, and both are escaped.
#[derive(Debug, Default)]
pub struct Html {
    text: String,
}

impl Html {
    /// An element with the content that `inside` writes.
    pub fn inside(
        &mut self,
        name: &'static str,
        attributes: &[Attribute<'_>],
        inside: impl FnOnce(&mut Self),
    ) {
        self.open(name, attributes);
        inside(self);
        self.push(format_args!("</{name}>\n"));
    }

    /// An element that contains text.
    pub fn element(&mut self, name: &'static str, attributes: &[Attribute<'_>], text: &str) {
        self.inside(name, attributes, |html| html.text(text));
    }

    /// An element within a line of text.
    pub fn inline(&mut self, name: &'static str, attributes: &[Attribute<'_>], text: &str) {
        self.open(name, attributes);
        self.text(text);
        self.push(format_args!("</{name}>"));
    }

    /// An element with neither content nor end tag, such as `meta`. An attribute with an empty value is written without
    /// one: `hidden`.
    pub fn open(&mut self, name: &'static str, attributes: &[Attribute<'_>]) {
        self.push(format_args!("<{name}"));
        for (attribute, value) in attributes {
            match *value {
                "" => self.push(format_args!(" {attribute}")),
                value => self.push(format_args!(" {attribute}=\"{}\"", escape(value))),
            }
        }
        self.text.push('>');
    }

    /// Text, on one line.
    pub fn text(&mut self, text: &str) {
        self.text.push_str(&escape(text));
    }

    /// A drawing from [`crate::chart`], which escapes its text. Within a page it needs no namespace. No drawing has an
    /// `id`, so one page can hold many.
    pub fn drawing(&mut self, svg: &str) {
        debug_assert!(
            svg.starts_with("<svg ") && !svg.contains(" id=\""),
            "our own drawing"
        );
        self.text.push_str(&svg.replacen(NAMESPACE, "", 1));
    }

    /// Our own style or script, known at compile time.
    pub fn own(&mut self, name: &'static str, content: &'static str) {
        self.push(format_args!("<{name}>{content}</{name}>\n"));
    }

    /// JSON for scripts and for programs that read the page: a data block, which no browser executes. Nothing in the
    /// JSON can end the block.
    pub fn data(&mut self, id: &str, json: &str) {
        let id = escape(id);
        let json = harmless(json);
        self.push(format_args!(
            "<script type=\"application/json\" id=\"{id}\">{json}</script>\n"
        ));
    }

    /// The current length, in bytes.
    pub(super) fn len(&self) -> usize {
        self.text.len()
    }

    /// Appends HTML that was written separately.
    pub(super) fn append(&mut self, other: &Self) {
        self.text.push_str(&other.text);
    }

    /// The page, with the line that every page begins with.
    pub fn finish(self) -> String {
        format!("<!doctype html>\n{}", self.text)
    }

    fn push(&mut self, text: std::fmt::Arguments<'_>) {
        // Writing to a string cannot fail.
        let _ = self.text.write_fmt(text);
    }
}

const NAMESPACE: &str = " xmlns=\"http://www.w3.org/2000/svg\"";

/// JSON in which no character can end a script element or begin a comment. All of these characters occur only within
/// strings, where JSON allows escapes.
pub(super) fn harmless(json: &str) -> String {
    let mut escaped = String::with_capacity(json.len());
    for c in json.chars() {
        match c {
            '<' | '>' | '&' | '\u{2028}' | '\u{2029}' => {
                // Writing to a string cannot fail.
                let _ = write!(escaped, "\\u{:04x}", u32::from(c));
            }
            c => escaped.push(c),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use scraper::{Html as Parsed, Selector};

    use super::*;
    use crate::words::plain;

    fn page(write: impl FnOnce(&mut Html)) -> Parsed {
        let mut html = Html::default();
        html.inside("html", &[("lang", "en")], |html| {
            html.inside("body", &[], write);
        });
        Parsed::parse_document(&html.finish())
    }

    /// On one line, and without the two characters that XML does not allow. The page is escaped in the same way as
    /// charts.
    fn readable(text: &str) -> String {
        plain(text).replace(['\u{fffe}', '\u{ffff}'], "\u{fffd}")
    }

    fn elements(parsed: &Parsed) -> Vec<String> {
        let all = Selector::parse("body *").unwrap();
        let names = parsed.select(&all).map(|element| element.value().name());
        names.map(str::to_owned).collect()
    }

    proptest! {
        #[test]
        fn any_text_is_read_as_it_was_given(text: String) {
            let parsed = page(|html| html.element("p", &[("title", &text)], &text));
            prop_assert_eq!(elements(&parsed), ["p"]);
            let found = Selector::parse("p").unwrap();
            let found = parsed.select(&found).next().unwrap();
            prop_assert_eq!(found.text().collect::<String>(), readable(&text));
            prop_assert_eq!(found.value().attr("title").unwrap_or(""), readable(&text));
        }

        #[test]
        fn any_json_is_read_as_it_was_given(text: String) {
            let value = serde_json::json!({ &text: [&text] });
            let parsed = page(|html| html.data("raw", &value.to_string()));
            prop_assert_eq!(elements(&parsed), ["script"]);
            let found = Selector::parse("#raw").unwrap();
            let json: String = parsed.select(&found).next().unwrap().text().collect();
            prop_assert_eq!(serde_json::from_str::<serde_json::Value>(&json).unwrap(), value);
        }
    }

    #[test]
    fn nothing_ends_the_element_that_it_stands_in() {
        let hostile = "</script><img src=x onerror=alert(1)> --> <!-- \" ' &lt;";
        let parsed = page(|html| {
            html.element("p", &[("title", hostile)], hostile);
            html.data("raw", &serde_json::json!(hostile).to_string());
        });
        assert_eq!(elements(&parsed), ["p", "script"]);
    }

    #[test]
    fn an_attribute_without_a_value_is_there() {
        let mut html = Html::default();
        html.open("button", &[("hidden", ""), ("type", "button")]);
        assert_eq!(html.text, "<button hidden type=\"button\">");
    }
}
