//! The model as a rig that can stage everything.

use std::sync::Arc;

use super::device::{ModelDevice, ModelOptions};
use crate::buffer::{Pool, PoolShape};
use crate::clock::{Clock, VirtualClock};
use crate::conformance::rig::{CannotStage, Rig};
use crate::device::{Device, QueueOptions};
use crate::error::Result;
use crate::units::{Bytes, Nanos};

/// Time that passes if no event is due.
const IDLE: Nanos = Nanos::millis(1);
const DEPTH: u32 = 16;

/// The model with its clock and a pool.
pub struct ModelRig {
    options: ModelOptions,
    clock: Arc<VirtualClock>,
    device: ModelDevice,
    pool: Pool,
    renewals: u64,
}

impl ModelRig {
    /// Creates a rig around a model with `options`.
    ///
    /// # Errors
    /// If there is no memory for the pool.
    pub fn new(options: ModelOptions) -> Result<Self> {
        let clock = Arc::new(VirtualClock::new());
        let device = ModelDevice::new(options, Arc::clone(&clock));
        let shape = PoolShape { buffer: options.logical_block * 16, count: DEPTH * 4, alignment: Bytes(512) };
        Ok(Self { options, clock, device, pool: Pool::new(shape)?, renewals: 0 })
    }
}

impl Rig for ModelRig {
    fn describe(&self) -> String {
        format!("the model, {:?}", self.options)
    }

    fn renew(&mut self) -> Result<Arc<dyn Device>> {
        self.renewals += 1;
        let options = ModelOptions { seed: self.options.seed.wrapping_add(self.renewals), ..self.options };
        self.device = ModelDevice::new(options, Arc::clone(&self.clock));
        Ok(Arc::new(self.device.clone()))
    }

    fn queue_options(&self) -> QueueOptions {
        QueueOptions { depth: DEPTH, pool: self.pool.clone() }
    }

    fn clock(&self) -> Arc<dyn Clock> {
        Arc::clone(&self.clock) as Arc<dyn Clock>
    }

    fn let_time_pass(&mut self) {
        let now = self.clock.now();
        let next = self.device.next_answer().filter(|answer| *answer > now);
        self.clock.advance_to(next.unwrap_or_else(|| now.saturating_add(IDLE)));
    }

    fn cut_power(&mut self) -> std::result::Result<Arc<dyn Device>, CannotStage> {
        self.device.cut_power();
        Ok(Arc::new(self.device.clone()))
    }

    fn fail_next_flush(&mut self) -> std::result::Result<(), CannotStage> {
        self.device.fail_next_flush();
        Ok(())
    }

    fn hold_next_request(&mut self) -> std::result::Result<(), CannotStage> {
        self.device.hold_next_request();
        Ok(())
    }

    fn release_held(&mut self) {
        self.device.release_held();
    }
}
