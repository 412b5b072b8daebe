//! The outputs: two threads, one for the terminal and one for `live.json`, so that neither waits for the other.

use std::io::Write;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Once};
use std::thread::JoinHandle;

use plimsoll_core::record::Live;
use plimsoll_host::isolation::CpuList;
use plimsoll_report::ResultFolder;

use super::shared::Shared;
use super::terminal::{Facts, Screen, Size, size_of_stderr};
use super::view;
use crate::output;

/// The output threads of a command, which end with it.
#[derive(Debug)]
pub(crate) struct Outlets {
    shared: Arc<Shared>,
    file: Option<JoinHandle<()>>,
    terminal: Option<JoinHandle<()>>,
}

impl Outlets {
    /// Starts them on these CPUs, which are the client's: never where the target runs. Without a folder, or if its
    /// thread cannot start, there is no `live.json`. If the terminal's thread cannot start, [`Outlets::has_terminal`]
    /// is false.
    pub(crate) fn start(
        shared: &Arc<Shared>,
        folder: Option<&ResultFolder>,
        cpus: &CpuList,
        view: bool,
    ) -> Self {
        let file = folder.cloned().and_then(|folder| {
            start("live-file", shared, cpus, move |shared| {
                write_file(shared, &folder, plimsoll_host::timestamp::now);
            })
        });
        if view {
            note_panics();
        }
        // From now on others may wait for what it writes.
        shared.shown(Some(0));
        let terminal = start("live-terminal", shared, cpus, move |shared| {
            let color = output::no_color_unset();
            write_terminal(shared, &mut Stderr { view }, color);
        });
        if terminal.is_none() {
            shared.shown(None);
        }
        Self {
            shared: Arc::clone(shared),
            file,
            terminal,
        }
    }

    /// Whether a thread writes the lines that stay.
    pub(crate) fn has_terminal(&self) -> bool {
        self.terminal.is_some()
    }
}

impl Drop for Outlets {
    fn drop(&mut self) {
        self.shared.end();
        // The file first: a blocked terminal must not delay its removal.
        for thread in [self.file.take(), self.terminal.take()]
            .into_iter()
            .flatten()
        {
            // A panic of the thread has already been reported.
            let _ = thread.join();
        }
    }
}

fn start(
    name: &str,
    shared: &Arc<Shared>,
    cpus: &CpuList,
    work: impl FnOnce(&Shared) + Send + 'static,
) -> Option<JoinHandle<()>> {
    let (shared, cpus) = (Arc::clone(shared), cpus.clone());
    let run = move || {
        // The measuring thread is bound to the same CPUs, and reports it if that fails.
        let _ = cpus.bind_this_thread();
        work(&shared);
    };
    std::thread::Builder::new()
        .name(name.to_owned())
        .spawn(run)
        .ok()
}

/// Removes `live.json`, however its writer ends.
struct RemovedAtTheEnd<'a>(&'a ResultFolder);

impl Drop for RemovedAtTheEnd<'_> {
    fn drop(&mut self) {
        // A file that remains does no harm: the time in it is soon old.
        let _ = self.0.remove_live();
    }
}

/// Writes `live.json` after each change, at least once a second, until the command ends. An error is reported once and
/// stops nothing.
pub(super) fn write_file(shared: &Shared, folder: &ResultFolder, now: fn() -> String) {
    let _removed = RemovedAtTheEnd(folder);
    let (mut seen, mut told) = (0, false);
    loop {
        let news = shared.news(seen, now);
        if news.ended {
            return;
        }
        seen = news.version;
        let Some(live) = news.live else { continue };
        if let Err(error) = folder.write_live(&live)
            && !told
        {
            told = true;
            shared.say(format!(
                "plimsoll: {error}; the measurement goes on, but `plimsoll serve` cannot show it live"
            ));
        }
    }
}

/// Where frames are written: stderr, or something else in tests.
pub(super) trait Output {
    /// The size available for a view; `None` if there is no view, only lines that stay.
    fn size(&self) -> Option<Size>;
    /// Writes a frame or, if nothing may be drawn in place any more, only its lines that stay.
    fn write(&mut self, frame: &str, staying: &str);
}

/// Tells [`Shared`] that nobody writes any more, even after a panic. Otherwise a waiting thread would wait for ever.
struct Gone<'a>(&'a Shared);

impl Drop for Gone<'_> {
    fn drop(&mut self) {
        self.0.shown(None);
    }
}

/// Writes every line that stays, in order, and the latest view below them, until the command ends.
pub(super) fn write_terminal(shared: &Shared, output: &mut impl Output, color: bool) {
    let _gone = Gone(shared);
    let mut screen = Screen::default();
    let mut seen = 0;
    loop {
        let (news, lines) = shared.news_and_lines(seen);
        seen = news.version;
        let visible = !news.resting && !news.ended;
        let live = news.live.as_ref().filter(|live| visible && begun(live));
        let staying: String = lines.iter().map(|line| format!("{line}\n")).collect();
        if let Some(size) = output.size() {
            let (columns, rows) = Screen::room(size);
            let view = live.map_or_else(Vec::new, |live| view::lines(live, columns, rows));
            if !(lines.is_empty() && view.is_empty() && screen.is_clear()) {
                let frame = screen.frame(&lines, &view, size.columns, color);
                output.write(&frame, &staying);
            }
        } else if !lines.is_empty() {
            output.write(&staying, &staying);
        }
        shared.shown(Some(seen));
        if news.ended {
            return;
        }
    }
}

/// Before the first trial there is nothing to view.
fn begun(live: &Live) -> bool {
    live.trial.is_some() || !live.trials.is_empty()
}

struct Stderr {
    view: bool,
}

impl Output for Stderr {
    fn size(&self) -> Option<Size> {
        let size = || size_of_stderr().unwrap_or(Size::USUAL);
        self.view.then(size)
    }

    fn write(&mut self, frame: &str, staying: &str) {
        let mut stderr = std::io::stderr().lock();
        // Read while stderr is locked, so that a panic whose message came before this frame is seen here.
        let text = if PANICKED.load(Ordering::Relaxed) {
            staying
        } else {
            frame
        };
        // If this fails, there is nowhere left to report it.
        let _ = stderr
            .write_all(text.as_bytes())
            .and_then(|()| stderr.flush());
    }
}

/// Whether any thread has panicked. Its message is then below the view, and drawing the view again would erase it.
static PANICKED: AtomicBool = AtomicBool::new(false);

fn note_panics() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let before = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            PANICKED.store(true, Ordering::Relaxed);
            before(panic);
        }));
    });
}

/// Whether stderr is a terminal that a view can be drawn on.
pub(crate) fn can_draw() -> bool {
    Facts::of_stderr().can_draw()
}
