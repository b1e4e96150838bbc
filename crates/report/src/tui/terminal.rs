//! The terminal that a live view is drawn on: stderr, for stdout is the result's.
//!
//! Raw mode and the alternate screen are left again on every way out: when the value is dropped, and before a
//! panic prints its message. In raw mode the terminal sends no signal for Ctrl-C, so it is read as a key:
//! whoever runs the load decides what a wish to stop means; nothing here ends the process.

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

/// The terminal could not be taken over, drawn on, or read.
#[derive(Debug, thiserror::Error)]
#[error("the terminal cannot be {done}")]
pub struct TerminalError {
    /// Attempted action: `drawn on`.
    done: &'static str,
    source: io::Error,
}

type Hook = Box<dyn Fn(&PanicHookInfo<'_>) + Send + Sync>;

/// A terminal that shows a live view for as long as the value lives.
pub struct LiveTerminal {
    terminal: Terminal<CrosstermBackend<Stderr>>,
    /// True if a panic has to restore the terminal; false once this is dropped.
    shown: Arc<AtomicBool>,
}

impl std::fmt::Debug for LiveTerminal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("LiveTerminal").finish_non_exhaustive()
    }
}

impl LiveTerminal {
    /// Takes stderr over. To be called only if it is a terminal.
    ///
    /// # Errors
    /// If it is none, or refuses; it is then as it was.
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

    /// Draws `view`, at whatever size the terminal has now. After a panic somewhere the terminal is no longer
    /// ours, and nothing is drawn.
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

    /// Returns true if the load was requested to stop (q or Ctrl-C) since the last call. Waits at most `wait`
    /// for a key; a change of size ends the wait too, so that the view is soon drawn again.
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

/// Returns true if a key asks to stop: q, Escape, Ctrl-C.
pub(super) fn is_stop(key: KeyEvent) -> bool {
    let control = key.modifiers.contains(KeyModifiers::CONTROL);
    let stops = match key.code {
        KeyCode::Char('q' | 'Q') | KeyCode::Esc => !control,
        KeyCode::Char('c' | 'C') => control,
        _ => false,
    };
    stops && key.kind == KeyEventKind::Press
}

/// Makes every later panic restore the terminal first, while it is `shown`, and then say what it would have
/// said.
fn restore_before_panics(shown: Arc<AtomicBool>) {
    let said: Hook = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        if shown.swap(false, Ordering::SeqCst) {
            restore();
        }
        said(panic);
    }));
}

/// Gives the terminal back as it was. If it is gone, there is nobody left to tell.
fn restore() {
    let raw = disable_raw_mode();
    let screen = execute!(io::stderr(), LeaveAlternateScreen, Show);
    drop((raw, screen));
}
