//! Order in which disks are changed: a canary, then waves of increasing criticality.
//!
//! Invariants, for any disks:
//! 1. Wave 0 is a single disk: the canary, the least critical of all.
//! 2. A wave has at most one disk of a port and one of a redundancy group, because error handling of a port
//!    stops everything on it, and an array must never lose two members to one mistake.
//! 3. Less critical disks come in earlier waves: unused disks, data, swap, boot, root.
//! 4. Equal disks give equal waves.

use std::collections::HashMap;

use crate::select::{Role, roles};
use crate::view::DeviceView;

/// Default maximum number of disks in a wave.
pub const WAVE_SIZE: usize = 8;

/// Position of a disk in the order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct WaveSlot {
    /// Wave, from 0.
    pub wave: usize,
    /// Position among all disks.
    pub order: usize,
    /// True if the disk is changed first, alone, to limit the damage of a mistake.
    pub canary: bool,
}

/// Returns a position for each of `disks`, in the same order. `size` is the maximum number of disks in a
/// wave; 0 counts as 1.
pub fn arrange(disks: &[&DeviceView], size: usize) -> Vec<WaveSlot> {
    let mut ordered: Vec<(Role, usize)> = disks.iter().map(|view| most_critical(view)).zip(0..).collect();
    ordered.sort_by_key(|(role, index)| (*role, name_order(&disks[*index].name)));
    let mut places = vec![WaveSlot { wave: 0, order: 0, canary: false }; disks.len()];
    let mut waves =
        Waves { size: size.max(1), filled: Vec::new(), free: HashMap::new(), first: 1, role: None };
    let mut by_wave: Vec<(usize, usize)> =
        ordered.into_iter().map(|(role, index)| (waves.next(role, disks[index]), index)).collect();
    // A stable sort keeps the order within a wave.
    by_wave.sort_by_key(|(wave, _)| *wave);
    for (order, (wave, index)) in by_wave.into_iter().enumerate() {
        places[index] = WaveSlot { wave, order, canary: wave == 0 };
    }
    places
}

fn most_critical(view: &DeviceView) -> Role {
    roles(view).last().copied().unwrap_or(Role::Data)
}

/// Returns a key that sorts `sdb` before `sdaa`, as the kernel names them.
pub(crate) fn name_order(name: &str) -> (usize, &str) {
    (name.len(), name)
}

/// Waves being filled.
struct Waves<'a> {
    size: usize,
    /// Number of disks in each wave.
    filled: Vec<usize>,
    /// First wave in which each port and each group is free.
    free: HashMap<&'a str, usize>,
    /// First wave of the current role.
    first: usize,
    role: Option<Role>,
}

impl<'a> Waves<'a> {
    /// Returns the wave of the next disk. Disks must come in order of their roles.
    fn next(&mut self, role: Role, view: &'a DeviceView) -> usize {
        if self.filled.is_empty() {
            self.filled.push(1);
            return 0;
        }
        if self.role.replace(role).is_some_and(|before| before != role) {
            self.first = self.filled.len();
        }
        let groups = view.redundancy_groups.iter().map(String::as_str);
        let places: Vec<&str> =
            groups.chain([view.port.as_str()]).filter(|place| !place.is_empty()).collect();
        let mut wave =
            places.iter().filter_map(|place| self.free.get(place).copied()).fold(self.first, usize::max);
        while self.filled.get(wave).is_some_and(|disks| *disks >= self.size) {
            wave += 1;
        }
        self.filled.resize(self.filled.len().max(wave + 1), 0);
        self.filled[wave] += 1;
        for place in places {
            self.free.insert(place, wave + 1);
        }
        wave
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;
    use crate::view::Holder;
    use crate::view::tests::sample;

    fn holder(name: &str) -> Vec<Holder> {
        vec![Holder { name: name.into(), kind: "ext4".into(), write_cache: None }]
    }

    #[test]
    fn the_canary_is_unused_and_root_comes_last() {
        let disks: Vec<DeviceView> = [("sda", "/"), ("sdb", "/srv"), ("sdc", ""), ("sdd", "/srv2")]
            .into_iter()
            .map(|(name, mount)| {
                let mut view = sample(name);
                view.holders = if mount.is_empty() { Vec::new() } else { holder(mount) };
                view
            })
            .collect();
        let places = arrange(&disks.iter().collect::<Vec<_>>(), 8);
        assert_eq!(places.iter().map(|place| place.wave).collect::<Vec<_>>(), [2, 1, 0, 1]);
        assert_eq!(places.iter().map(|place| place.canary).collect::<Vec<_>>(), [false, false, true, false]);
        assert_eq!(places.iter().map(|place| place.order).collect::<Vec<_>>(), [3, 1, 0, 2]);
    }

    proptest::proptest! {
        #[test]
        fn no_wave_holds_two_of_a_port_or_of_a_group(
            shape in proptest::collection::vec((0_u8..6, 0_u8..5, 0_u8..4), 1..60),
            size in 1_usize..7,
        ) {
            let disks: Vec<DeviceView> = shape.iter().enumerate().map(|(index, (port, group, role))| {
                let mut view = sample(&format!("sd{index}"));
                view.port = format!("ata{port}");
                view.redundancy_groups = if *group == 0 { Vec::new() } else { vec![format!("md{group}")] };
                view.holders = match role { 0 => Vec::new(), 1 => holder("/"), _ => holder("/srv") };
                view
            }).collect();
            let places = arrange(&disks.iter().collect::<Vec<_>>(), size);
            let mut taken = HashSet::new();
            let mut counts = HashMap::new();
            for (view, place) in disks.iter().zip(&places) {
                proptest::prop_assert!(taken.insert((place.wave, view.port.clone())));
                for group in &view.redundancy_groups {
                    proptest::prop_assert!(taken.insert((place.wave, group.clone())));
                }
                *counts.entry(place.wave).or_insert(0_usize) += 1;
            }
            proptest::prop_assert_eq!(counts[&0], 1);
            proptest::prop_assert!(counts.values().all(|count| *count <= size));
            let mut by_order: Vec<(usize, Role, usize)> = disks.iter().zip(&places)
                .map(|(view, place)| (place.order, roles(view).last().copied().unwrap(), place.wave)).collect();
            by_order.sort_unstable();
            proptest::prop_assert!(by_order.windows(2).all(|pair| pair[0].1 <= pair[1].1 && pair[0].2 <= pair[1].2));
        }
    }
}
