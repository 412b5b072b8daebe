//! What all pages share.

use plimsoll_report::html::Html;

/// A page of the site with its title, a link back to the history, and what `body` writes.
pub(in crate::serve) fn page(title: &str, body: impl FnOnce(&mut Html)) -> String {
    framed(title, None, |html| {
        html.inside("header", &[], |html| {
            html.element("a", &[("href", "/"), ("class", "home")], "Plimsoll");
        });
        html.inside("main", &[], body);
    })
}

/// A page with one of our scripts.
pub(in crate::serve) fn page_with_script(
    title: &str,
    script: &'static str,
    body: impl FnOnce(&mut Html),
) -> String {
    framed(title, None, |html| {
        html.inside("header", &[], |html| {
            html.element("a", &[("href", "/"), ("class", "home")], "Plimsoll");
        });
        body(html);
        let attributes = [("src", script), ("defer", "")];
        html.inside("script", &attributes, |_| ());
    })
}

/// A page with only what `body` writes, and one extra `meta` element.
pub(in crate::serve) fn bare(
    title: &str,
    meta: &[(&'static str, &str)],
    body: impl FnOnce(&mut Html),
) -> String {
    framed(title, Some(meta), body)
}

fn framed(
    title: &str,
    meta: Option<&[(&'static str, &str)]>,
    body: impl FnOnce(&mut Html),
) -> String {
    let mut html = Html::default();
    html.inside("html", &[("lang", "en")], |html| {
        html.inside("head", &[], |html| {
            html.open("meta", &[("charset", "utf-8")]);
            let viewport = "width=device-width, initial-scale=1";
            html.open("meta", &[("name", "viewport"), ("content", viewport)]);
            html.open(
                "meta",
                &[("name", "color-scheme"), ("content", "light dark")],
            );
            if let Some(meta) = meta {
                html.open("meta", meta);
            }
            html.element("title", &[], title);
            html.open(
                "link",
                &[("rel", "stylesheet"), ("href", "/assets/style.css")],
            );
            // Without it, a browser asks for an icon.
            html.open("link", &[("rel", "icon"), ("href", "data:,")]);
        });
        html.inside("body", &[], body);
    });
    html.finish()
}

/// The head of a table. A column whose name begins with `>` holds numbers.
pub(super) fn head(html: &mut Html, columns: &[&str]) {
    html.inside("thead", &[], |html| {
        html.inside("tr", &[], |html| {
            for column in columns {
                let (class, name) = match column.strip_prefix('>') {
                    Some(name) => ("number", name),
                    None => ("text", *column),
                };
                html.element("th", &[("scope", "col"), ("class", class)], name);
            }
        });
    });
}

/// A cell with a number.
pub(super) fn number(html: &mut Html, text: &str) {
    html.element("td", &[("class", "number")], text);
}

/// A cell with text.
pub(super) fn cell(html: &mut Html, text: &str) {
    html.element("td", &[], text);
}

/// A link.
pub(super) fn link(html: &mut Html, to: &str, text: &str) {
    html.element("a", &[("href", to)], text);
}
