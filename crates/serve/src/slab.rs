//! [`Slab`]: a map with small integer keys that it assigns and reuses.

/// Values by assigned number.
pub(crate) struct Slab<T> {
    slots: Vec<Option<T>>,
    free: Vec<u32>,
}

impl<T> Default for Slab<T> {
    fn default() -> Self {
        Self { slots: Vec::new(), free: Vec::new() }
    }
}

impl<T> Slab<T> {
    /// Inserts `value`. Returns its number.
    pub(crate) fn insert(&mut self, value: T) -> u32 {
        let number = self.free.pop().unwrap_or_else(|| {
            self.slots.push(None);
            self.slots.len() as u32 - 1
        });
        self.slots[number as usize] = Some(value);
        number
    }

    /// Returns the value `number`.
    #[inline]
    pub(crate) fn get(&mut self, number: u32) -> Option<&mut T> {
        self.slots.get_mut(number as usize)?.as_mut()
    }

    /// Removes and returns the value `number`.
    pub(crate) fn remove(&mut self, number: u32) -> Option<T> {
        let value = self.slots.get_mut(number as usize)?.take()?;
        self.free.push(number);
        Some(value)
    }

    /// Returns the numbers of the values that satisfy `which`.
    pub(crate) fn numbers(&self, which: impl Fn(&T) -> bool) -> Vec<u32> {
        let fits = |(number, slot): (u32, &Option<T>)| slot.as_ref().is_some_and(&which).then_some(number);
        (0..).zip(&self.slots).filter_map(fits).collect()
    }

    /// Removes and returns all values.
    pub(crate) fn take_all(&mut self) -> impl Iterator<Item = T> + use<T> {
        std::mem::take(self).slots.into_iter().flatten()
    }
}
