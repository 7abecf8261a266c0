//! Boxes in the calling convention: cells written out as a buffer of words, and read in again.
//!
//! A box is a reference: -2 - tag for an immediate value, otherwise the place in the buffer of its cell, which is its tag and then its fields;
//! an array is its shape and then its elements. What a cell refers to comes before it. The slot has the buffer, in `dims[0]` the number
//! of words and in `dims[1]` the reference, or the place of the array. Of an input, `dims[2]` is the number of cells, whose places
//! stand in order behind the words.

use crate::cells::{self, Cell, Header};
use crate::memory::{self, Block, Thread};
use crate::slot::Slot;

/// What a field holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Word,
    Bool,
    /// Of a shape.
    Box(usize),
}

/// A field of a cell: where it stands, in words. An array has its owner at `at` and its data and dimensions from `rest` on.
#[derive(Clone, Copy, Debug)]
pub struct Field {
    pub kind: Kind,
    pub rank: usize,
    pub at: usize,
    pub rest: usize,
}

/// For each shape and tag the fields.
#[derive(Clone, Debug, Default)]
pub struct Shapes(pub Vec<Vec<Vec<Field>>>);

impl Shapes {
    fn fields(&self, shape: usize, tag: i64) -> &[Field] {
        self.0.get(shape).and_then(|tags| tags.get(usize::try_from(tag).ok()?)).map_or(&[], |fields| fields)
    }
}

fn width(kind: Kind) -> usize {
    match kind {
        Kind::Bool => 1,
        Kind::Word | Kind::Box(_) => 8,
    }
}

/// Writes cells out.
struct Writer<'a> {
    shapes: &'a Shapes,
    words: Vec<i64>,
    /// The places of cells that have been written.
    places: std::collections::HashMap<*mut Cell, i64>,
}

impl Writer<'_> {
    unsafe fn reference(&self, cell: *mut Cell) -> Option<i64> {
        if cells::is_cell(cell) {
            self.places.get(&cell).copied()
        } else {
            Some(-2 - unsafe { cells::tag(cell) })
        }
    }

    unsafe fn array(&mut self, kind: Kind, dims: &[i64], data: *const u8) {
        self.words.extend(dims);
        let count: i64 = dims.iter().product();
        for i in 0..count.max(0) as usize {
            let word = unsafe {
                match kind {
                    Kind::Bool => i64::from(*data.add(i)),
                    Kind::Word => *data.cast::<i64>().add(i),
                    Kind::Box(_) => self.reference(*data.cast::<*mut Cell>().add(i)).unwrap_or(-1),
                }
            };
            self.words.push(word);
        }
    }

    /// The boxes of a field.
    unsafe fn children(cell: *mut Cell, field: &Field) -> Vec<*mut Cell> {
        unsafe {
            if field.rank == 0 {
                return vec![*cells::word(cell, field.at) as *mut Cell];
            }
            let dims = std::slice::from_raw_parts(cells::word(cell, field.rest + 1), field.rank);
            let data = *cells::word(cell, field.rest) as *const *mut Cell;
            (0..dims.iter().product::<i64>().max(0) as usize).map(|i| *data.add(i)).collect()
        }
    }

    /// Writes all cells that can be reached, each after those it refers to.
    unsafe fn reachable(&mut self, root: *mut Cell, shape: usize) {
        let mut todo = vec![(root, shape, false)];
        while let Some((cell, shape, ready)) = todo.pop() {
            unsafe {
                if self.reference(cell).is_some() {
                    continue;
                }
                let shapes = self.shapes;
                let fields = shapes.fields(shape, cells::tag(cell));
                if ready {
                    self.cell(cell, fields);
                    continue;
                }
                todo.push((cell, shape, true));
                for field in fields {
                    if let Kind::Box(shape) = field.kind {
                        todo.extend(Self::children(cell, field).into_iter().map(|c| (c, shape, false)));
                    }
                }
            }
        }
    }

    unsafe fn cell(&mut self, cell: *mut Cell, fields: &[Field]) {
        unsafe {
            let place = self.words.len() as i64;
            self.words.push(cells::tag(cell));
            for field in fields {
                let word = *cells::word(cell, field.at);
                if field.rank > 0 {
                    let dims = std::slice::from_raw_parts(cells::word(cell, field.rest + 1), field.rank).to_vec();
                    self.array(field.kind, &dims, *cells::word(cell, field.rest) as *const u8);
                } else if let Kind::Box(_) = field.kind {
                    let word = self.reference(word as *mut Cell).unwrap_or(-1);
                    self.words.push(word);
                } else {
                    self.words.push(word);
                }
            }
            self.places.insert(cell, place);
        }
    }
}

/// Writes a result: a box at `from`, or the data and dimensions of an array of boxes. 0, or 1 if there is no memory.
///
/// # Safety
/// `from` must hold a value of the rank and shape; the shapes must be those of the program, here and below.
pub unsafe extern "C" fn output(
    thread: *mut Thread,
    slot: *mut Slot,
    shapes: *const Shapes,
    rank: i64,
    shape: i64,
    from: *const i64,
) -> i32 {
    unsafe {
        let mut writer = Writer { shapes: &*shapes, words: Vec::new(), places: Default::default() };
        let kind = Kind::Box(shape as usize);
        let root = if rank == 0 {
            writer.reachable(*from as *mut Cell, shape as usize);
            writer.reference(*from as *mut Cell).unwrap_or(-1)
        } else {
            let (data, dims) = (*from as *const *mut Cell, std::slice::from_raw_parts(from.add(1), rank as usize));
            for i in 0..dims.iter().product::<i64>().max(0) as usize {
                writer.reachable(*data.add(i), shape as usize);
            }
            let place = writer.words.len() as i64;
            writer.array(kind, dims, data.cast());
            place
        };
        let words = &writer.words;
        let block = memory::allocate(thread, 8 * words.len() as i64 + 8);
        if block.is_null() {
            return 1;
        }
        memory::hand_over(thread, block, slot);
        std::ptr::copy_nonoverlapping(words.as_ptr(), (*slot).value.data.cast(), words.len());
        (*slot).dims[0] = words.len() as i64;
        (*slot).dims[1] = root;
        0
    }
}

/// Reads cells in.
struct Reader<'a> {
    thread: *mut Thread,
    shapes: &'a Shapes,
    words: &'a [i64],
    /// For each place the shape of the cell there, and the cell.
    shape: Vec<usize>,
    made: Vec<*mut Cell>,
}

impl Reader<'_> {
    fn word(&self, at: usize) -> i64 {
        self.words.get(at).copied().unwrap_or(0)
    }

    /// Notes the shapes of the boxes of a field that stands at `at`; gives the place after it.
    fn note(&mut self, mut at: usize, kind: Kind, rank: usize) -> usize {
        let count: i64 = (0..rank).map(|k| self.word(at + k)).product();
        at += rank;
        let end = at + count.max(0) as usize;
        if let Kind::Box(shape) = kind {
            for place in at..end {
                self.note_reference(self.word(place), shape);
            }
        }
        end
    }

    fn note_reference(&mut self, reference: i64, shape: usize) {
        if let Some(known) = usize::try_from(reference).ok().and_then(|r| self.shape.get_mut(r)) {
            *known = shape;
        }
    }

    unsafe fn cell_of(&self, reference: i64) -> *mut Cell {
        match usize::try_from(reference).ok().and_then(|r| self.made.get(r)) {
            Some(cell) => unsafe { cells::hold(*cell) },
            None => cells::immediate(-2 - reference) as *mut Cell,
        }
    }

    /// Reads an array at `at` into its data, block and dimensions; gives the place after it.
    unsafe fn array(&self, mut at: usize, kind: Kind, rank: usize) -> Option<(*mut Block, Vec<i64>, usize)> {
        let dims: Vec<i64> = (0..rank).map(|k| self.word(at + k)).collect();
        at += rank;
        let count = dims.iter().product::<i64>().max(0) as usize;
        let bytes = (count * width(kind)) as i64;
        unsafe {
            let block = match kind {
                Kind::Box(_) => cells::allocate(self.thread, bytes),
                Kind::Word | Kind::Bool => memory::allocate(self.thread, bytes),
            };
            if block.is_null() {
                return None;
            }
            let data: *mut u8 = block.add(1).cast();
            for i in 0..count {
                let word = self.word(at + i);
                match kind {
                    Kind::Bool => *data.add(i) = word as u8,
                    Kind::Word => *data.cast::<i64>().add(i) = word,
                    Kind::Box(_) => *data.cast::<*mut Cell>().add(i) = self.cell_of(word),
                }
            }
            Some((block, dims, at + count))
        }
    }

    unsafe fn cell(&mut self, place: usize) -> Option<()> {
        unsafe {
            let tag = self.word(place);
            let shapes = self.shapes;
            let fields = shapes.fields(self.shape.get(place).copied()?, tag);
            let boxes = fields.iter().filter(|f| f.rank == 0 && matches!(f.kind, Kind::Box(_))).count();
            let blocks = fields.iter().filter(|f| f.rank > 0).count();
            let words: usize = fields.iter().map(|f| if f.rank > 0 { 2 + f.rank } else { 1 }).sum();
            let header = Header { tag: tag as u16, boxes: boxes as u16, blocks: blocks as u16, words: words as u16 };
            let cell = cells::new(self.thread, header);
            if cell.is_null() {
                return None;
            }
            let mut at = place + 1;
            for field in fields {
                if field.rank > 0 {
                    let (block, dims, end) = self.array(at, field.kind, field.rank)?;
                    *cells::word(cell, field.at) = block as i64;
                    *cells::word(cell, field.rest) = block.add(1) as i64;
                    for (k, dim) in dims.iter().enumerate() {
                        *cells::word(cell, field.rest + 1 + k) = *dim;
                    }
                    at = end;
                } else {
                    let word = self.word(at);
                    let value = if let Kind::Box(_) = field.kind { self.cell_of(word) as i64 } else { word };
                    *cells::word(cell, field.at) = value;
                    at += 1;
                }
            }
            *self.made.get_mut(place)? = cell;
            Some(())
        }
    }
}

/// Makes the cells of an input, and puts the box, or the data, block and dimensions of the array of boxes, to `to`. 0, or 1 if there is no
/// memory.
///
/// # Safety
/// The slot must hold a value of the rank and shape.
pub unsafe extern "C" fn input(
    thread: *mut Thread,
    slot: *const Slot,
    shapes: *const Shapes,
    rank: i64,
    shape: i64,
    to: *mut i64,
) -> i32 {
    unsafe {
        let [used, root, count, ..] = (*slot).dims;
        let (used, count) = (used.max(0) as usize, count.max(0) as usize);
        let all: &[i64] =
            if used + count == 0 { &[] } else { std::slice::from_raw_parts((*slot).value.data.cast(), used + count) };
        let (words, order) = all.split_at(used);
        let nobody = cells::immediate(-1) as *mut Cell;
        let mut reader = Reader { thread, shapes: &*shapes, words, shape: vec![0; used], made: vec![nobody; used] };
        let kind = Kind::Box(shape as usize);
        if rank == 0 {
            reader.note_reference(root, shape as usize);
        } else {
            reader.note(root as usize, kind, rank as usize);
        }
        for place in order.iter().rev() {
            let fields = reader.shapes.fields(reader.shape[*place as usize], reader.word(*place as usize));
            fields.iter().fold(*place as usize + 1, |at, field| reader.note(at, field.kind, field.rank));
        }
        for place in order {
            if reader.cell(*place as usize).is_none() {
                return 1;
            }
        }
        if rank == 0 {
            *to = reader.cell_of(root) as i64;
        } else {
            let Some((block, dims, _)) = reader.array(root as usize, kind, rank as usize) else { return 1 };
            *to = block.add(1) as i64;
            *to.add(1) = block as i64;
            for (k, dim) in dims.iter().enumerate() {
                *to.add(2 + k) = *dim;
            }
        }
        for place in order {
            cells::release(thread, reader.made[*place as usize]);
        }
        0
    }
}
