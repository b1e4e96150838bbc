//! A cache that moves to another log: the mark on the backing device states which of the two counts.

use plumb_block::Nanos;
use plumb_cache::{Cache, Layout, NewLog, State};
use rand_xoshiro::Xoshiro256PlusPlus;

use super::{PATIENCE, World};
use crate::medium::Medium;
use crate::setup::{Faults, Legs};

impl World {
    /// Continues until the cache has moved to new devices, for at most `steps` steps. Returns true if it has
    /// moved.
    pub(crate) fn move_log(&mut self, steps: u64, chance: &mut Xoshiro256PlusPlus) -> Result<bool, String> {
        let mut is_begun = false;
        for _ in 0..steps.min(PATIENCE.into()) {
            self.pump()?;
            if self.state() != State::Serving {
                return Ok(false);
            }
            let is_over = is_begun && self.status().is_some_and(|status| status.log_error.is_none());
            if is_over {
                self.old_legs = None;
                return Ok(true);
            }
            if !is_begun && self.cache().is_log_spent() {
                self.begin_move()?;
                is_begun = true;
            } else if !self.advance(Nanos(u64::MAX), chance)? {
                return Err(format!("the log is not moved: {:?}", self.status()));
            }
        }
        match steps {
            u64::MAX => Err(format!("the log is never moved: {:?}", self.status())),
            _ => Ok(false),
        }
    }

    /// Begins to empty the log.
    pub(crate) fn retire_log(&mut self) -> Result<(), String> {
        let now = self.now;
        self.cache().retire_log(now).map_err(|why| why.to_string())
    }

    /// Lets requests fail from now on.
    pub(crate) fn setup_any(&mut self) {
        self.setup.faults = Faults::Any;
    }

    fn begin_move(&mut self) -> Result<(), String> {
        let legs = self.setup.legs();
        let old = self.members[..legs].to_vec();
        for medium in &mut self.members[..legs] {
            let info = medium.info.clone();
            *medium = Medium::new(info.clone(), &vec![0xa5; info.size.0 as usize]);
            for range in Cache::superblocks_of(&medium.info) {
                medium.overwrite(range, &[0; plumb_cache::LOG_BLOCK as usize]);
            }
        }
        self.read_only.clear();
        self.faults.retain(|(member, ..)| *member >= legs);
        self.old_legs = Some(old);
        let layout = if self.setup.layout == Legs::Stripe { Layout::Stripe } else { Layout::Mirror };
        let new = NewLog { size: self.setup.grown(0), layout };
        let (infos, now) =
            (self.members[..legs].iter().map(|medium| medium.info.clone()).collect(), self.now);
        self.cache().move_log(new, infos, now).map_err(|why| why.to_string())
    }

    /// Uses the old log again if the cache has not moved: the mark is still that of a sealed log.
    pub(super) fn choose_log(&mut self) {
        let is_sealed = self.marking.as_ref().is_some_and(|marking| marking.mark().is_sealed);
        if let Some(old) = self.old_legs.take().filter(|_| is_sealed) {
            self.members[..old.len()].clone_from_slice(&old);
            self.read_only.extend(0..old.len());
        }
    }
}
