//! The platter: its angle at a given time.

use plumb_block::Nanos;

/// A fraction of a revolution in units of 2^-32; it wraps as the platter does.
pub(super) type Angle = u32;

/// A platter with constant speed, at angle 0 at time 0.
#[derive(Debug, Clone)]
pub(super) struct Spindle {
    /// Speed in units of 2^-64 revolutions per nanosecond.
    rate: u64,
    /// Duration of a revolution.
    pub(super) revolution: u64,
}

impl Spindle {
    /// Creates a platter with `rpm`, which must not be zero.
    pub(super) fn new(rpm: u32) -> Self {
        let minute = 60_000_000_000_u64;
        let rate = (u128::from(rpm) << 64) / u128::from(minute);
        Self { rate: rate as u64, revolution: minute.div_ceil(u64::from(rpm)) }
    }

    /// Returns the angle at time `ns`.
    pub(super) const fn angle_at(&self, ns: u64) -> Angle {
        (ns.wrapping_mul(self.rate) >> 32) as Angle
    }

    /// Returns the time to rotate by `angle`, in nanoseconds.
    pub(super) const fn time_for(&self, angle: Angle) -> u64 {
        (angle as u64 * self.revolution) >> 32
    }

    /// Returns the rotation during `time`, which must be less than a revolution, rounded up.
    pub(super) const fn turned_in(&self, time: Nanos) -> Angle {
        ((time.0 << 32).div_ceil(self.revolution)) as Angle
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn after_whole_revolutions_the_platter_stands_where_it_stood() {
        let spindle = Spindle::new(7200);
        // 120 revolutions a second: a thousand seconds later the angle is the same but for the rounding.
        let start = spindle.angle_at(1_234_567);
        let later = spindle.angle_at(1_000_001_234_567_u64);
        let apart = start.wrapping_sub(later) as i32;
        assert!(apart.abs() < 1 << 14, "{apart} units of 2^-32 apart");
    }

    #[test]
    fn half_a_turn_takes_half_a_revolution() {
        let spindle = Spindle::new(15_000);
        assert_eq!(spindle.time_for(1 << 31), 2_000_000);
        assert_eq!(spindle.turned_in(Nanos(1_000_000)), 1 << 30);
    }
}
