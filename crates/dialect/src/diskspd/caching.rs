//! `-S`, `-h` and `-N`: flags accumulate over the command line, and contradictory ones are refused. Imported
//! results are interpreted in the same way.

use plumb_report::document::{FlushMethod, RunJob};
use plumb_workload::Caching as Use;

use super::profile::{CacheMode, MappedFlush, Target};

/// Caching and durability as reported in a result.
#[derive(Debug, Clone, Copy)]
pub(super) struct ReportedCaching {
    pub(super) past_cache: bool,
    pub(super) write_through: bool,
    pub(super) mapped: bool,
    /// True if stores to the mapping are flushed.
    pub(super) flushed: bool,
    /// True if the target is written.
    pub(super) writes: bool,
}

impl ReportedCaching {
    /// Returns a job with this caching and durability.
    pub(super) fn job(self) -> RunJob {
        let Self { past_cache, write_through, mapped, flushed, writes } = self;
        let caching = match (mapped, past_cache) {
            (true, _) => Use::Mapped,
            (false, true) => Use::Direct,
            (false, false) => Use::Cached,
        };
        RunJob {
            caching,
            // Write-through of a mapping is implemented as a flush after each store.
            flush: Some(FlushMethod::Msync).filter(|_| mapped && writes && (flushed || write_through)),
            durable_write_every: (write_through && !mapped).then_some(1),
            ..RunJob::default()
        }
    }
}

/// Caching switches so far.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Caching {
    cache: Option<CacheMode>,
    write_through: bool,
    mapped: bool,
    flush: Option<MappedFlush>,
}

impl Caching {
    /// Adds the flags after `-S`; without flags it means `u`.
    ///
    /// # Errors
    /// An unknown flag, or one in conflict with an earlier flag.
    pub(super) fn add_flags(&mut self, flags: &str) -> Result<(), String> {
        if flags.is_empty() {
            return self.add_flag('u');
        }
        flags.chars().try_for_each(|flag| self.add_flag(flag))
    }

    fn add_flag(&mut self, flag: char) -> Result<(), String> {
        match flag {
            'b' => self.set_cache(CacheMode::Cached, flag),
            'r' => self.set_cache(CacheMode::LocalOff, flag),
            'u' => self.set_cache(CacheMode::Off, flag),
            'w' if self.write_through => Err("'w' conflicts with an earlier write-through".to_owned()),
            'w' => {
                self.write_through = true;
                Ok(())
            }
            'h' if self.write_through => Err("'h' conflicts with an earlier write-through".to_owned()),
            'h' => {
                self.set_cache(CacheMode::Off, flag)?;
                self.write_through = true;
                Ok(())
            }
            'm' if self.mapped => Err("'m' was given before".to_owned()),
            'm' if self.cache == Some(CacheMode::Off) => {
                Err("'m' (memory mapped) conflicts with an earlier u or h (no system cache)".to_owned())
            }
            'm' => {
                self.mapped = true;
                Ok(())
            }
            _ => Err(format!("'{flag}' is not a cache flag: expected b, h, m, r, u or w")),
        }
    }

    fn set_cache(&mut self, mode: CacheMode, flag: char) -> Result<(), String> {
        if self.cache.is_some() {
            return Err(format!("'{flag}' conflicts with an earlier cache mode"));
        }
        if self.mapped && mode == CacheMode::Off {
            return Err(format!("'{flag}' (no system cache) conflicts with an earlier m (memory mapped)"));
        }
        self.cache = Some(mode);
        Ok(())
    }

    /// Adds the value of `-N`.
    ///
    /// # Errors
    /// Fails if the value is not a method of flushing.
    pub(super) fn set_flush(&mut self, value: &str) -> Result<(), String> {
        self.flush = Some(match value {
            "v" | "V" => MappedFlush::ViewOfFile,
            "n" | "N" => MappedFlush::NonVolatileMemory,
            "i" | "I" => MappedFlush::NonVolatileMemoryNoDrain,
            _ => return Err(format!("'{value}' is not a way to flush a mapping: expected v, n or i")),
        });
        Ok(())
    }

    /// Sets the caching of a target.
    pub(super) fn apply_to(self, target: &mut Target) {
        target.cache = self.cache.unwrap_or_default();
        target.write_through = self.write_through;
        target.mapped = self.mapped;
        target.flush = self.flush;
    }
}
