//! `report.html` as a browser reads it, and what must hold for every such page.
#![allow(dead_code, reason = "every test file uses its own part of this")]

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use crate::example::TELLERS;
use plimsoll_core::record::{Bracket, Second, Trial};
use plimsoll_report::{IntervalHistograms, ResultFolder, html, load, render_all};
use scraper::{ElementRef, Html, Selector};
use serde_json::Value;

/// Text that tries to become markup wherever it appears.
pub(crate) const HOSTILE: &str =
    "</script><img src=x onerror=alert(1)>\" onclick='alert(2)' <!-- &amp; ]]>";

/// The most bytes that a page may have.
pub(crate) const BYTES_MAX: usize = 1_000_000;

pub(crate) fn folder_of(
    trials: &[Trial],
    bracket: Option<&Bracket>,
    seconds: &[Second],
    intervals: &[IntervalHistograms],
) -> tempfile::TempDir {
    let place = tempfile::tempdir().unwrap();
    let folder = ResultFolder::create(place.path()).unwrap();
    for trial in trials {
        folder.write_trial(trial, seconds, intervals).unwrap();
    }
    if let Some(bracket) = bracket {
        folder.write_bracket(bracket).unwrap();
    }
    place
}

/// The page as `render_all` writes it.
pub(crate) fn page_of(folder: &Path) -> String {
    render_all(folder, TELLERS).unwrap();
    let page = fs::read_to_string(folder.join("report.html")).unwrap();
    assert_eq!(page, html::of(&load(folder, TELLERS).unwrap()).unwrap());
    page
}

pub(crate) fn found<'a>(page: &'a Html, selector: &str) -> Vec<ElementRef<'a>> {
    page.select(&Selector::parse(selector).unwrap()).collect()
}

pub(crate) fn text(element: ElementRef<'_>) -> String {
    let text: String = element.text().collect();
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[track_caller]
pub(crate) fn text_of(page: &Html, selector: &str) -> String {
    let found = found(page, selector);
    text(*found.first().unwrap_or_else(|| panic!("no {selector}")))
}

pub(crate) fn raw(page: &Html) -> Value {
    let json: String = found(page, "#raw-json")[0].text().collect();
    serde_json::from_str(&json).unwrap()
}

/// A record after it was written and read back.
pub(crate) fn written(record: &impl serde::Serialize) -> Value {
    serde_json::from_str(&serde_json::to_string(record).unwrap()).unwrap()
}

/// Asserts what must hold for every page.
#[track_caller]
pub(crate) fn assert_sound(source: &str) -> Html {
    let page = Html::parse_document(source);
    assert!(page.errors.is_empty(), "{:?}", page.errors);
    assert!(source.len() < BYTES_MAX, "{} bytes", source.len());
    assert_asks_for_nothing(source, &page);
    assert_can_be_walked(&page);
    page
}

#[track_caller]
pub(crate) fn assert_asks_for_nothing(source: &str, page: &Html) {
    assert!(
        found(
            page,
            "link, iframe, object, embed, base, form, video, audio, image, use"
        )
        .is_empty()
    );
    assert!(found(page, "[src], [srcset], [style], [ping], [action]").is_empty());
    for link in found(page, "[href]") {
        let href = link.value().attr("href").unwrap();
        assert!(href.starts_with('#') || href.starts_with("./"), "{href}");
    }
    for element in found(page, "*") {
        for (name, _) in element.value().attrs() {
            assert!(
                !name.starts_with("on"),
                "<{} {name}>",
                element.value().name()
            );
        }
    }
    // One data block, and the script that the policy names.
    let scripts: Vec<_> = found(page, "script")
        .iter()
        .map(|s| s.value().attr("type"))
        .collect();
    assert_eq!(scripts, [Some("application/json"), None]);
    let policy = found(page, "meta[http-equiv=Content-Security-Policy]")[0];
    let policy = policy.value().attr("content").unwrap();
    assert!(policy.starts_with("default-src 'none'; "), "{policy}");
    assert!(
        policy.contains("script-src 'sha256-") && !policy.contains("unsafe-eval"),
        "{policy}"
    );
    let style = text_of(page, "style");
    assert!(!style.contains("url(") && !style.contains("@import"));
    assert!(!source.contains("xmlns"));
}

/// Asserts that the page works with a keyboard, with a screen reader, on a narrow screen and in the dark.
#[track_caller]
pub(crate) fn assert_can_be_walked(page: &Html) {
    assert_eq!(found(page, "html[lang=en]").len(), 1);
    assert_eq!(found(page, "body > a.skip[href='#main']").len(), 1);
    let ids: Vec<&str> = found(page, "[id]")
        .iter()
        .filter_map(|e| e.value().id())
        .collect();
    let unique: BTreeSet<&str> = ids.iter().copied().collect();
    assert_eq!(ids.len(), unique.len(), "an id twice among {ids:?}");
    for element in found(page, "[aria-labelledby]") {
        let label = element.value().attr("aria-labelledby").unwrap();
        assert!(unique.contains(label), "{label}");
    }
    for link in found(page, "a[href^='#']") {
        let id = link.value().attr("href").unwrap().trim_start_matches('#');
        assert!(unique.contains(id), "{id}");
    }
    assert_eq!(found(page, "h1").len(), 1);
    let mut level = 0;
    for heading in found(page, "h1, h2, h3, h4") {
        let next: u32 = heading.value().name()[1..].parse().unwrap();
        assert!(
            next <= level + 1,
            "{} after h{level}",
            heading.value().name()
        );
        level = next;
    }
    for table in found(page, "table") {
        let inside = |selector: &str| table.select(&Selector::parse(selector).unwrap()).count();
        assert_eq!(inside("caption"), 1);
        assert_eq!(inside("thead th"), inside("thead th[scope=col]"));
        assert_eq!(inside("tbody tr"), inside("tbody th[scope=row]"));
    }
    assert_eq!(
        found(page, ".scroll[tabindex='0'] table").len(),
        found(page, "table").len()
    );
    let style = text_of(page, "style");
    for svg in found(page, "svg") {
        assert_eq!(svg.value().attr("role"), Some("img"));
        let children: Vec<_> = svg
            .child_elements()
            .map(|child| child.value().name())
            .collect();
        assert_eq!(children[..2], ["title", "desc"]);
    }
    for kind in ["fill", "stroke"] {
        for element in found(page, &format!("svg [{kind}^='#']")) {
            let color = element.value().attr(kind).unwrap();
            let rule = format!("svg [{kind}=\"{color}\"]");
            assert!(style.contains(&rule), "no dark {rule}");
        }
    }
}
