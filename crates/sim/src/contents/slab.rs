//! Numbered places that are used again: no allocation for each of the many small things in flight.

/// Things by number. Numbers start at 1, so that 0 can say "none".
#[derive(Debug)]
pub(super) struct Slab<T> {
    places: Vec<Option<T>>,
    free: Vec<u32>,
}

impl<T> Slab<T> {
    pub(super) const fn new() -> Self {
        Self { places: Vec::new(), free: Vec::new() }
    }

    /// Puts a thing somewhere.
    #[inline]
    pub(super) fn insert(&mut self, thing: T) -> u32 {
        if let Some(number) = self.free.pop() {
            self.places[number as usize - 1] = Some(thing);
            return number;
        }
        self.places.push(Some(thing));
        self.places.len() as u32
    }

    /// Takes it out.
    pub(super) fn remove(&mut self, number: u32) -> Option<T> {
        let thing = self.places.get_mut(number as usize - 1)?.take();
        if thing.is_some() {
            self.free.push(number);
        }
        thing
    }

    /// Takes it out; nobody wants it.
    #[inline]
    pub(super) fn discard(&mut self, number: u32) {
        if let Some(place) = self.places.get_mut(number as usize - 1)
            && place.is_some()
        {
            *place = None;
            self.free.push(number);
        }
    }

    #[inline]
    pub(super) fn get(&self, number: u32) -> Option<&T> {
        self.places.get((number as usize).wrapping_sub(1))?.as_ref()
    }

    #[inline]
    pub(super) fn get_mut(&mut self, number: u32) -> Option<&mut T> {
        self.places.get_mut((number as usize).wrapping_sub(1))?.as_mut()
    }

    /// Everything, in the order of numbers.
    pub(super) fn iter(&self) -> impl Iterator<Item = (u32, &T)> {
        (1..).zip(&self.places).filter_map(|(number, place)| Some((number, place.as_ref()?)))
    }

    /// How many there are.
    pub(super) const fn len(&self) -> usize {
        self.places.len() - self.free.len()
    }

    pub(super) fn clear(&mut self) {
        self.places.clear();
        self.free.clear();
    }
}

/// A number that came from the slab belongs to something.
impl<T> std::ops::Index<u32> for Slab<T> {
    type Output = T;

    #[inline]
    fn index(&self, number: u32) -> &T {
        self.get(number).expect("a number of this slab")
    }
}

impl<T> std::ops::IndexMut<u32> for Slab<T> {
    #[inline]
    fn index_mut(&mut self, number: u32) -> &mut T {
        self.get_mut(number).expect("a number of this slab")
    }
}
