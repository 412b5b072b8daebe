//! How long a target's source is, in lines that are neither blank nor comment. The number is for comparison with other
//! targets; it measures nothing else.
//!
//! The count includes files in the languages that targets are written in. It leaves out what else a target's folder
//! holds: hidden folders, what builds and package managers put there ([`BUILT`]), tests ([`TESTS`] and names such as
//! `gateway_test.go`), and in Rust the test module at the end of a file. It also leaves out markup, manifests and
//! scripts.

use std::ffi::OsStr;
use std::fs;
use std::io;
use std::path::Path;

use crate::manifest::Manifest;

/// Folders that builds and package managers create.
const BUILT: [&str; 11] = [
    "_build",
    "bin",
    "build",
    "deps",
    "dist",
    "node_modules",
    "obj",
    "out",
    "target",
    "vendor",
    "venv",
];
/// Folders of tests and benchmarks.
const TESTS: [&str; 6] = ["bench", "benches", "spec", "test", "tests", "__tests__"];

/// How a language writes comments.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Comments {
    /// `//` to the end of the line, and `/* … */`.
    Slashes,
    /// `#` to the end of the line, and triple-quoted text that is a statement by itself.
    Hash,
}

/// How a file's language writes comments; `None` if the language is not counted.
fn comments_in(file: &Path) -> Option<Comments> {
    match file.extension()?.to_str()? {
        "rs" | "c" | "cc" | "cpp" | "h" | "hpp" | "java" | "scala" | "go" | "ts" | "js" | "mjs"
        | "kt" => Some(Comments::Slashes),
        "py" | "ex" | "exs" | "erl" => Some(Comments::Hash),
        _ => None,
    }
}

/// Counts a target's lines of code.
///
/// # Errors
/// Its source cannot be read.
pub fn of(manifest: &Manifest) -> io::Result<u64> {
    let mut lines = 0;
    for source in &manifest.source {
        let path = manifest.folder().join(source);
        lines += if path.is_dir() {
            in_folder(&path)?
        } else {
            in_file(&path)?
        };
    }
    Ok(lines)
}

fn in_folder(folder: &Path) -> io::Result<u64> {
    let mut lines = 0;
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let name = entry.file_name();
        let name = name.to_string_lossy();
        let kind = entry.file_type()?;
        if kind.is_dir() {
            let passed_over = name.starts_with('.')
                || BUILT.contains(&name.as_ref())
                || TESTS.contains(&name.as_ref());
            if !passed_over {
                lines += in_folder(&entry.path())?;
            }
        } else if kind.is_file() && !is_test(&entry.path()) {
            lines += in_file(&entry.path())?;
        }
    }
    Ok(lines)
}

fn is_test(file: &Path) -> bool {
    let stem = file.file_stem().map(OsStr::to_string_lossy);
    let stem = stem.unwrap_or_default();
    let marked =
        |mark: &str| stem.starts_with(&format!("{mark}_")) || stem.ends_with(&format!("_{mark}"));
    stem == "tests"
        || marked("test")
        || marked("tests")
        || stem.ends_with(".test")
        || stem.ends_with(".spec")
}

fn in_file(file: &Path) -> io::Result<u64> {
    let Some(comments) = comments_in(file) else {
        return Ok(0);
    };
    let text = fs::read(file)?;
    let text = String::from_utf8_lossy(&text);
    let is_rust = file.extension().is_some_and(|extension| extension == "rs");
    let text = if is_rust {
        before_test_module(&text)
    } else {
        &text
    };
    Ok(match comments {
        Comments::Slashes => with_slashes(text),
        Comments::Hash => with_hash(text),
    })
}

/// By convention, the tests come last in a Rust file.
fn before_test_module(text: &str) -> &str {
    let begins = text.find("\n#[cfg(test)]\nmod ");
    begins.map_or(text, |begins| &text[..=begins])
}

fn with_slashes(text: &str) -> u64 {
    let mut lines = 0;
    let mut in_comment = false;
    for line in text.lines() {
        let mut rest = line.trim();
        let mut code = false;
        while !rest.is_empty() {
            if in_comment {
                let Some((_, after)) = rest.split_once("*/") else {
                    break;
                };
                in_comment = false;
                rest = after.trim_start();
            } else if rest.starts_with("//") {
                break;
            } else if let Some(after) = rest.strip_prefix("/*") {
                in_comment = true;
                rest = after;
            } else {
                // The line has code, whatever follows. A comment that begins after the code and continues on the next
                // line is rare, so a look at its opening is enough.
                code = true;
                in_comment = rest.rfind("/*").is_some_and(|at| {
                    !rest[at..].contains("*/") && !rest[..at].contains(['"', '\''])
                });
                break;
            }
        }
        lines += u64::from(code);
    }
    lines
}

fn with_hash(text: &str) -> u64 {
    let mut lines = 0;
    let mut quoted_by: Option<&str> = None;
    for line in text.lines() {
        let line = line.trim();
        if let Some(quote) = quoted_by {
            if line.contains(quote) {
                quoted_by = None;
            }
            continue;
        }
        if line.is_empty() || line.starts_with('#') || line.starts_with('%') {
            continue;
        }
        if let Some((quote, rest)) = document(line) {
            if !rest.contains(quote) {
                quoted_by = Some(quote);
            }
            continue;
        }
        lines += 1;
    }
    lines
}

/// Recognises documentation text that stands by itself: Python's `"""…`, Elixir's `@doc """…`. Returns its quote and
/// the rest of the line after it.
fn document(line: &str) -> Option<(&'static str, &str)> {
    let attributes = ["@moduledoc", "@doc", "@typedoc"];
    let text = attributes
        .iter()
        .find_map(|attribute| line.strip_prefix(attribute))
        .unwrap_or(line)
        .trim_start_matches([' ', 'r', '~', 'S']);
    for quote in ["\"\"\"", "'''"] {
        if let Some(rest) = text.strip_prefix(quote) {
            return Some((quote, rest));
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blank_lines_and_comments_do_not_count() {
        let text = "// one\n\nlet a = 1; // two\n/* three\n four */ let b = 2;\n/* five */\n  }\n";
        assert_eq!(with_slashes(text), 3);
        assert_eq!(with_slashes("let url = \"http://x/*\";\nlet b = 1;\n"), 2);
        assert_eq!(
            with_slashes("let a = 1; /* long\nstill */\nlet b = 2;\n"),
            2
        );
    }

    #[test]
    fn texts_that_document_do_not_count() {
        let python = "\"\"\"A module.\n\nMore.\n\"\"\"\nimport os  # yes\n\ndef f():\n    \"\"\"One line.\"\"\"\n    return 1\n";
        assert_eq!(with_hash(python), 3);
        let elixir = "defmodule A do\n  @moduledoc \"\"\"\n  Text.\n  \"\"\"\n  # why\n  def f, do: 1\nend\n";
        assert_eq!(with_hash(elixir), 3);
    }

    #[test]
    fn the_test_module_of_a_rust_file_does_not_count() {
        let place = tempfile::tempdir().unwrap();
        let file = place.path().join("a.rs");
        fs::write(
            &file,
            "fn a() {}\n\n#[cfg(test)]\nmod tests {\n    fn b() {}\n}\n",
        )
        .unwrap();
        assert_eq!(in_file(&file).unwrap(), 1);
    }

    #[test]
    fn what_is_beside_the_source_does_not_count() {
        let place = tempfile::tempdir().unwrap();
        for (file, text) in [
            ("src/a.go", "package a\n"),
            ("src/a_test.go", "package a\n"),
            ("tests/b.py", "x = 1\n"),
            ("node_modules/x/index.js", "x\n"),
            (".cache/x.py", "x\n"),
            ("README.md", "text\n"),
            ("src/deep/b.ts", "let x\n"),
            ("src/b.test.ts", "let x\n"),
            ("build.sh", "true\n"),
        ] {
            let file = place.path().join(file);
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            fs::write(file, text).unwrap();
        }
        assert_eq!(in_folder(place.path()).unwrap(), 2);
    }
}
