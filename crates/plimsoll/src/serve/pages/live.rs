//! The page of a running command. The page is a frame; its script fills it from the events, and inserts everything from
//! outside as text.

use plimsoll_report::html::Html;

use super::frame;
use crate::serve::{Answer, Site, folder, page, url};

pub(in crate::serve) fn answer(site: &Site, name: &str) -> Answer {
    folder::known(site, name)?;
    Ok(page(html(name)))
}

/// The page of a folder.
pub(in crate::serve) fn html(folder: &str) -> String {
    let title = format!("Live: {folder}");
    frame::page_with_script(&title, "/assets/live.js", |html| {
        let (events, result) = (url::events(folder), url::result(folder));
        let main = [
            ("id", "live"),
            ("data-events", events.as_str()),
            ("data-test", "live"),
        ];
        html.inside("main", &main, |html| {
            html.element("h1", &[("id", "what"), ("data-test", "live-what")], folder);
            let state = [
                ("id", "state"),
                ("role", "status"),
                ("data-test", "live-state"),
            ];
            html.element("p", &state, "connecting");
            html.inside("p", &[("id", "over"), ("hidden", "")], |html| {
                let link = [("href", result.as_str()), ("data-test", "result-link")];
                html.element("a", &link, "The result");
            });
            html.element(
                "noscript",
                &[],
                "This page is drawn by a script. The result is in the history once the command has ended.",
            );
            section(html, "trial", "Trial");
            section(html, "gates", "Gates");
            section(html, "bracket", "Load line");
            section(html, "seconds", "Second by second");
            section(html, "trials", "Trials that ended");
        });
    })
}

fn section(html: &mut Html, id: &'static str, title: &str) {
    let (heading, test) = (format!("{id}-title"), format!("live-{id}"));
    html.inside("section", &[("aria-labelledby", &heading)], |html| {
        html.element("h2", &[("id", &heading)], title);
        html.inside("div", &[("id", id), ("data-test", &test)], |_| ());
    });
}
