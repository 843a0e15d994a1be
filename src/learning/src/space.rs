//! Spaces of observations and actions: arrays with names, kinds, shapes and bounds. They hold no values.

use serde::Serialize;

/// The kind of a number in an observation, little-endian on the wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub enum Kind {
    /// A float of 32 bits.
    #[serde(rename = "<f4")]
    Float,
    /// An integer of 16 bits.
    #[serde(rename = "<i2")]
    Short,
    /// An integer of 8 bits, for masks.
    #[serde(rename = "|i1")]
    Byte,
}

impl Kind {
    /// Returns the number of bytes of a number.
    pub fn size(self) -> usize {
        match self {
            Kind::Float => 4,
            Kind::Short => 2,
            Kind::Byte => 1,
        }
    }
}

/// An array of an observation.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Field {
    /// Name of the array.
    pub name: &'static str,
    /// Kind of its numbers.
    pub kind: Kind,
    /// Dimensions of the array.
    pub shape: Vec<usize>,
    /// Lower bound of its numbers; `None` if there is no bound.
    pub low: Option<f32>,
    /// Upper bound of its numbers; `None` if there is no bound.
    pub high: Option<f32>,
}

impl Field {
    /// Creates an array of floats without bounds.
    pub fn floats(name: &'static str, shape: &[usize]) -> Field {
        Field { name, kind: Kind::Float, shape: shape.into(), low: None, high: None }
    }

    /// Creates an array of whole numbers within bounds.
    pub fn shorts(name: &'static str, shape: &[usize], low: i16, high: i16) -> Field {
        let (low, high) = (Some(f32::from(low)), Some(f32::from(high)));
        Field { name, kind: Kind::Short, shape: shape.into(), low, high }
    }

    /// Creates an array of values 0 or 1.
    pub fn mask(name: &'static str, shape: &[usize]) -> Field {
        Field { name, kind: Kind::Byte, shape: shape.into(), low: Some(0.0), high: Some(1.0) }
    }

    /// Returns the number of bytes of the array.
    pub fn bytes(&self) -> usize {
        self.shape.iter().product::<usize>() * self.kind.size()
    }
}

/// The form of an action.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Actions {
    /// Whole numbers, each in `0..count` for its count; `i32` on the wire.
    Choices(Vec<u32>),
    /// Numbers, each from its first to its second bound; `f32` on the wire.
    Amounts(Vec<(f32, f32)>),
}

impl Actions {
    /// Returns how many numbers an action has. Each has four bytes on the wire.
    pub fn numbers(&self) -> usize {
        match self {
            Actions::Choices(counts) => counts.len(),
            Actions::Amounts(bounds) => bounds.len(),
        }
    }
}

/// The form of an environment's observations, actions and measurements.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Spaces {
    /// Arrays of an observation.
    pub observation: Vec<Field>,
    /// Form of an action.
    pub action: Actions,
    /// Names of the measurements of an episode.
    pub info: Vec<&'static str>,
    /// Lower and upper bound of the reward of a step.
    pub reward: (f64, f64),
}

impl Spaces {
    /// Returns the number of bytes of an observation.
    pub fn bytes(&self) -> usize {
        self.observation.iter().map(Field::bytes).sum()
    }
}

/// The arrays of many observations: a buffer for each field, with one observation after the other.
#[derive(Clone, Debug, Default)]
pub struct Buffers(pub Vec<Vec<u8>>);

impl Buffers {
    /// Creates buffers for this many observations, all 0.
    pub fn new(spaces: &Spaces, count: usize) -> Buffers {
        Buffers(spaces.observation.iter().map(|field| vec![0; field.bytes() * count]).collect())
    }

    /// Sets one observation to 0 and returns it for writing.
    pub fn row<'a>(&'a mut self, spaces: &'a Spaces, at: usize) -> Row<'a> {
        let mut row = Row { buffers: self, fields: &spaces.observation, at };
        (0..spaces.observation.len()).for_each(|field| row.bytes(field).fill(0));
        row
    }
}

/// One observation in its buffers.
pub struct Row<'a> {
    buffers: &'a mut Buffers,
    fields: &'a [Field],
    at: usize,
}

impl Row<'_> {
    /// Returns the bytes of a field.
    fn bytes(&mut self, field: usize) -> &mut [u8] {
        let size = self.fields[field].bytes();
        &mut self.buffers.0[field][size * self.at..][..size]
    }

    /// Writes floats into a field, from index `from` on. Values past the end of the field are dropped; those that are
    /// not finite become 0.
    pub fn floats(&mut self, field: usize, from: usize, values: impl IntoIterator<Item = f32>) {
        let cells = self.bytes(field).chunks_exact_mut(4).skip(from);
        for (cell, value) in cells.zip(values) {
            cell.copy_from_slice(&if value.is_finite() { value } else { 0.0 }.to_le_bytes());
        }
    }

    /// Writes whole numbers into a field, from index `from` on. Values past the end of the field are dropped.
    pub fn shorts(&mut self, field: usize, from: usize, values: impl IntoIterator<Item = i16>) {
        let cells = self.bytes(field).chunks_exact_mut(2).skip(from);
        for (cell, value) in cells.zip(values) {
            cell.copy_from_slice(&value.to_le_bytes());
        }
    }

    /// Sets the number of a mask at index `at` to 1.
    pub fn mark(&mut self, field: usize, at: usize) {
        if let Some(cell) = self.bytes(field).get_mut(at) {
            *cell = 1;
        }
    }
}
