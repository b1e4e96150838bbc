//! Terminal of a live view: stderr, since stdout belongs to the result.
//!
//! Raw mode and the alternate screen are always left again: on drop, and before a panic prints its message.
//! In raw mode the terminal sends no signal for Ctrl-C, so it is read as a key. The caller decides how to
//! stop; nothing here ends the process.

use std::io::{self, Stderr};
use std::panic::PanicHookInfo;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crossterm::cursor::Show;
use crossterm::event::{self, Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use crossterm::execute;
use crossterm::terminal::{EnterAlternateScreen, LeaveAlternateScreen, disable_raw_mode, enable_raw_mode};
use ratatui::Terminal;
use ratatui::backend::CrosstermBackend;

use super::view::LiveView;

/// Failure to take over the terminal, to draw on it, or to read it.
#[derive(Debug, thiserror::Error)]
#[error("the terminal cannot be {done}")]
pub struct TerminalError {
    /// Action that failed: `drawn on`.
    done: &'static str,
    source: io::Error,
}

type Hook = Box<dyn Fn(&PanicHookInfo<'_>) + Send + Sync>;

/// Terminal that shows a live view until it is dropped.
pub struct LiveTerminal {
    terminal: Terminal<CrosstermBackend<Stderr>>,
    /// True if a panic has to restore the terminal; false after the drop.
    shown: Arc<AtomicBool>,
}

impl std::fmt::Debug for LiveTerminal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("LiveTerminal").finish_non_exhaustive()
    }
}

impl LiveTerminal {
    /// Takes over stderr, which must be a terminal.
    ///
    /// # Errors
    /// If it is not one, or refuses. It is unchanged then.
    pub fn open() -> Result<Self, TerminalError> {
        let failed = |source| TerminalError { done: "taken over", source };
        let shown = Arc::new(AtomicBool::new(true));
        enable_raw_mode().map_err(failed)?;
        restore_before_panics(Arc::clone(&shown));
        let made = execute!(io::stderr(), EnterAlternateScreen)
            .and_then(|()| Terminal::new(CrosstermBackend::new(io::stderr())));
        match made {
            Ok(terminal) => Ok(Self { terminal, shown }),
            Err(source) => {
                shown.store(false, Ordering::SeqCst);
                restore();
                Err(failed(source))
            }
        }
    }

    /// Draws `view` at the current size of the terminal. Does nothing after a panic, which has restored the
    /// terminal.
    ///
    /// # Errors
    /// If the terminal is gone.
    pub fn draw(&mut self, view: &LiveView) -> Result<(), TerminalError> {
        if !self.shown.load(Ordering::SeqCst) {
            return Ok(());
        }
        self.terminal
            .draw(|frame| view.draw(frame))
            .map_err(|source| TerminalError { done: "drawn on", source })?;
        Ok(())
    }

    /// Returns true if the user requested a stop (q or Ctrl-C) since the last call. Waits at most `wait` for
    /// a key. A change of size ends the wait as well, so that the view is redrawn soon.
    ///
    /// # Errors
    /// If the terminal cannot be read.
    pub fn asks_to_stop(&mut self, wait: Duration) -> Result<bool, TerminalError> {
        let failed = |source| TerminalError { done: "read", source };
        let mut wait = wait;
        while event::poll(wait).map_err(failed)? {
            match event::read().map_err(failed)? {
                Event::Key(key) if is_stop(key) => return Ok(true),
                _ => wait = Duration::ZERO,
            }
        }
        Ok(false)
    }
}

impl Drop for LiveTerminal {
    fn drop(&mut self) {
        if self.shown.swap(false, Ordering::SeqCst) {
            restore();
        }
    }
}

/// Returns true if a key requests a stop: q, Escape, Ctrl-C.
pub(super) fn is_stop(key: KeyEvent) -> bool {
    let control = key.modifiers.contains(KeyModifiers::CONTROL);
    let stops = match key.code {
        KeyCode::Char('q' | 'Q') | KeyCode::Esc => !control,
        KeyCode::Char('c' | 'C') => control,
        _ => false,
    };
    stops && key.kind == KeyEventKind::Press
}

/// Makes every later panic restore the terminal while it is `shown`, before the previous panic hook runs.
fn restore_before_panics(shown: Arc<AtomicBool>) {
    let said: Hook = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        if shown.swap(false, Ordering::SeqCst) {
            restore();
        }
        said(panic);
    }));
}

/// Restores the terminal. If it is gone, the error cannot be reported.
fn restore() {
    let raw = disable_raw_mode();
    let screen = execute!(io::stderr(), LeaveAlternateScreen, Show);
    drop((raw, screen));
}
