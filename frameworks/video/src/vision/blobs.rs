//! Turns changed pixels into boxes: pixels are counted in square cells, and cells that touch are one blob.
//!
//! Cells have the effect of opening and closing a mask: single pixels of noise do not fill a cell, and small holes do
//! not empty one.

use crate::frame::Rect;

/// Approximate number of cells in a row of the picture.
const CELLS: usize = 160;
/// Least percentage of changed pixels in a filled cell.
const FILLED: usize = 35;
/// Least number of cells of a blob; smaller ones are noise.
const CELLS_MIN: u32 = 9;
/// Maximum number of blobs in a picture; a picture with more is noise.
const BLOBS_MAX: usize = 256;

/// A mask of changed pixels.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mask {
    /// Width in pixels.
    pub width: usize,
    /// Height in pixels.
    pub height: usize,
    /// A 1 for each changed pixel and a 0 for each other, `width * height` values.
    pub bits: Vec<u8>,
}

impl Mask {
    /// Creates a mask without changed pixels.
    pub fn new(width: usize, height: usize) -> Mask {
        Mask { width, height, bits: vec![0; width * height] }
    }

    /// Returns the fraction of changed pixels, 0 to 1.
    pub fn filled(&self) -> f32 {
        let filled: usize = self.bits.iter().map(|bit| usize::from(*bit)).sum();
        filled as f32 / self.bits.len().max(1) as f32
    }
}

/// Returns the boxes around changed pixels, from the upper left on.
pub fn blobs(mask: &Mask) -> Vec<Rect> {
    let side = (mask.width + CELLS / 2) / CELLS;
    let grid = Grid::of(mask, side.max(1));
    let wide = grid.widened();
    let mut labels = Labels::default();
    let mut above: Vec<u32> = vec![0; wide.columns + 2];
    let mut cells = Vec::new();
    for row in 0..wide.rows {
        let mut here = vec![0; wide.columns + 2];
        for column in 0..wide.columns {
            if wide.cells[row * wide.columns + column] == 0 {
                continue;
            }
            let neighbours = [here[column], above[column], above[column + 1], above[column + 2]];
            let label = labels.join(neighbours);
            here[column + 1] = label;
            cells.push((label, row, column));
        }
        above = here;
    }
    boxes(&grid, &mut labels, &cells, mask)
}

/// Returns the extent of each blob over the cells that were filled before widening.
fn boxes(grid: &Grid, labels: &mut Labels, cells: &[(u32, usize, usize)], mask: &Mask) -> Vec<Rect> {
    let mut extents: std::collections::BTreeMap<u32, (usize, usize, usize, usize, u32)> = Default::default();
    for (label, row, column) in cells {
        if grid.cells[row * grid.columns + column] == 0 {
            continue;
        }
        let root = labels.root(*label);
        let e = extents.entry(root).or_insert((*row, *row, *column, *column, 0));
        *e = (e.0.min(*row), e.1.max(*row), e.2.min(*column), e.3.max(*column), e.4 + 1);
    }
    let (w, h, side) = (mask.width as f32, mask.height as f32, grid.side as f32);
    let found = extents.into_values().filter(|e| e.4 >= CELLS_MIN).take(BLOBS_MAX);
    found
        .map(|(top, bottom, left, right, _)| Rect {
            x: left as f32 * side / w,
            y: top as f32 * side / h,
            w: ((right + 1 - left) as f32 * side).min(w - left as f32 * side) / w,
            h: ((bottom + 1 - top) as f32 * side).min(h - top as f32 * side) / h,
        })
        .collect()
}

struct Grid {
    side: usize,
    columns: usize,
    rows: usize,
    cells: Vec<u8>,
}

impl Grid {
    fn of(mask: &Mask, side: usize) -> Grid {
        let (columns, rows) = (mask.width.div_ceil(side), mask.height.div_ceil(side));
        if side == 1 {
            return Grid { side, columns, rows, cells: mask.bits.clone() };
        }
        let mut cells = Vec::with_capacity(columns * rows);
        let mut counts = vec![0_u8; mask.width];
        for band in mask.bits.chunks(side * mask.width) {
            counts.fill(0);
            for row in band.chunks_exact(mask.width) {
                counts.iter_mut().zip(row).for_each(|(count, bit)| *count += bit);
            }
            let least = side * side * FILLED / 100;
            cells.extend(counts.chunks(side).map(|c| {
                let filled: usize = c.iter().map(|n| usize::from(*n)).sum();
                u8::from(filled > least)
            }));
        }
        Grid { side, columns, rows, cells }
    }

    /// Returns the grid with all neighbours of filled cells filled.
    fn widened(&self) -> Grid {
        let mut cells = vec![0; self.cells.len()];
        for row in 0..self.rows {
            for column in 0..self.columns {
                if self.cells[row * self.columns + column] == 0 {
                    continue;
                }
                for r in row.saturating_sub(1)..(row + 2).min(self.rows) {
                    for c in column.saturating_sub(1)..(column + 2).min(self.columns) {
                        cells[r * self.columns + c] = 1;
                    }
                }
            }
        }
        Grid { cells, side: self.side, columns: self.columns, rows: self.rows }
    }
}

/// Union-find of labels: labels of the same blob point to the smallest of them. 0 is not a label.
#[derive(Default)]
struct Labels {
    parents: Vec<u32>,
}

impl Labels {
    fn root(&mut self, mut label: u32) -> u32 {
        while self.parents[label as usize - 1] != label {
            let above = self.parents[label as usize - 1];
            self.parents[label as usize - 1] = self.parents[above as usize - 1];
            label = above;
        }
        label
    }

    /// Returns the label of a cell with these neighbours; a new one if none has a label.
    fn join(&mut self, neighbours: [u32; 4]) -> u32 {
        let mut joined = 0;
        for label in neighbours.into_iter().filter(|l| *l != 0) {
            let root = self.root(label);
            if joined == 0 || joined == root {
                joined = root;
            } else {
                let (low, high) = (joined.min(root), joined.max(root));
                self.parents[high as usize - 1] = low;
                joined = low;
            }
        }
        if joined == 0 {
            joined = self.parents.len() as u32 + 1;
            self.parents.push(joined);
        }
        joined
    }
}
