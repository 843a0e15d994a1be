//! A set of small numbers as bits: a thousand clients fit into two cache lines.

/// A set of client numbers.
#[derive(Clone, Debug, Default)]
pub(crate) struct Bits(Vec<u64>);

impl Bits {
    /// Adds a number.
    pub(crate) fn set(&mut self, number: u32) {
        let word = number as usize / 64;
        if self.0.len() <= word {
            self.0.resize(word + 1, 0);
        }
        self.0[word] |= 1 << (number % 64);
    }

    /// Removes a number; returns whether it was in the set.
    pub(crate) fn clear(&mut self, number: u32) -> bool {
        let Some(word) = self.0.get_mut(number as usize / 64) else { return false };
        let bit = 1 << (number % 64);
        let was = *word & bit != 0;
        *word &= !bit;
        was
    }

    /// Returns whether the set contains a number.
    pub(crate) fn contains(&self, number: u32) -> bool {
        self.0.get(number as usize / 64).is_some_and(|word| word & (1 << (number % 64)) != 0)
    }

    /// Returns the numbers in ascending order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = u32> + '_ {
        let numbers = |(at, word): (usize, &u64)| {
            let rest = |word: &u64| Some(word & (word - 1)).filter(|word| *word != 0);
            let words = std::iter::successors(Some(*word).filter(|word| *word != 0), rest);
            words.map(move |word| at as u32 * 64 + word.trailing_zeros())
        };
        self.0.iter().enumerate().flat_map(numbers)
    }

    /// Returns how many numbers the set contains.
    pub(crate) fn count(&self) -> usize {
        self.0.iter().map(|word| word.count_ones() as usize).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_set_is_there_until_cleared() {
        let mut bits = Bits::default();
        for number in [0, 63, 64, 1000] {
            bits.set(number);
        }
        assert_eq!(bits.count(), 4);
        assert!(bits.clear(64) && !bits.clear(64) && !bits.clear(65) && !bits.clear(5000));
        assert_eq!(bits.count(), 3);
    }
}
