//! Boxes in the calling convention: cells written out as a buffer of words, and read in again.
//!
//! A box is a reference: -2 - tag for an immediate value, otherwise the place in the buffer of its cell, which is its tag and then its fields;
//! an array is its shape and then its elements. What a cell refers to comes before it. The slot has the buffer, in `dims[0]` the number
//! of words and in `dims[1]` the reference, or the place of the array. Of an input, `dims[2]` is the number of cells, whose places
//! stand in order behind the words.

use crate::cells::{self, Cell, Header};
use crate::memory::{self, Block, Thread};
use crate::slot::Slot;
use std::collections::HashMap;

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

/// The cells of a shape with one tag.
#[derive(Clone, Debug)]
pub struct Fields {
    fields: Vec<Field>,
    header: Header,
}

impl Fields {
    pub fn new(tag: usize, fields: Vec<Field>) -> Fields {
        let count = |of: &dyn Fn(&Field) -> bool| fields.iter().filter(|f| of(f)).count() as u16;
        let header = Header {
            tag: tag as u16,
            boxes: count(&|f| f.rank == 0 && matches!(f.kind, Kind::Box(_))),
            blocks: count(&|f| f.rank > 0),
            words: fields.iter().map(|f| if f.rank > 0 { 2 + f.rank } else { 1 }).sum::<usize>() as u16,
        };
        Fields { fields, header }
    }
}

/// For each shape and tag the fields.
#[derive(Clone, Debug, Default)]
pub struct Shapes(pub Vec<Vec<Fields>>);

impl Shapes {
    fn get(&self, shape: usize, tag: i64) -> Option<&Fields> {
        self.0.get(shape)?.get(usize::try_from(tag).ok()?)
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
    /// The places of cells that have been written and have several holders: only those are met again.
    shared: HashMap<*mut Cell, i64>,
    /// What is to be written: a box of a shape, or the cell itself, whose boxes have been written.
    todo: Vec<(*mut Cell, usize, bool)>,
    /// The references of boxes that have been written and belong to cells that have not.
    done: Vec<i64>,
}

impl Writer<'_> {
    /// Writes what can be reached from boxes, each cell after those it refers to, and leaves their references in `done`, the first box on top.
    unsafe fn write(&mut self, boxes: &[*mut Cell], shape: usize) {
        self.todo.extend(boxes.iter().map(|cell| (*cell, shape, false)));
        while let Some((cell, shape, ready)) = self.todo.pop() {
            unsafe {
                let tag = cells::tag(cell);
                if !cells::is_cell(cell) {
                    self.done.push(-2 - tag);
                    continue;
                }
                let shared = cells::holders(cell) > 1;
                if let Some(place) = self.shared.get(&cell).filter(|_| shared && !ready) {
                    self.done.push(*place);
                    continue;
                }
                let fields = self.shapes.get(shape, tag).map_or(&[][..], |f| &f.fields);
                if ready {
                    let place = self.cell(cell, tag, fields);
                    if shared {
                        self.shared.insert(cell, place);
                    }
                    self.done.push(place);
                    continue;
                }
                self.todo.push((cell, shape, true));
                for field in fields {
                    if let Kind::Box(shape) = field.kind {
                        self.todo.extend(boxes_of(cell, field).iter().map(|inside| (*inside, shape, false)));
                    }
                }
            }
        }
    }

    unsafe fn cell(&mut self, cell: *mut Cell, tag: i64, fields: &[Field]) -> i64 {
        unsafe {
            let place = self.words.len() as i64;
            self.words.push(tag);
            for field in fields {
                if field.rank > 0 {
                    self.array(field.kind, dims_of(cell, field), *cells::word(cell, field.rest) as *const u8);
                } else if let Kind::Box(_) = field.kind {
                    self.reference();
                } else {
                    self.words.push(*cells::word(cell, field.at));
                }
            }
            place
        }
    }

    fn reference(&mut self) {
        let reference = self.done.pop().unwrap_or(-1);
        self.words.push(reference);
    }

    unsafe fn array(&mut self, kind: Kind, dims: &[i64], data: *const u8) {
        self.words.extend(dims);
        let count = elements(dims);
        unsafe {
            match kind {
                Kind::Bool => self.words.extend(slice(data, count).iter().map(|b| i64::from(*b))),
                Kind::Word => self.words.extend(slice(data.cast::<i64>(), count)),
                Kind::Box(_) => (0..count).for_each(|_| self.reference()),
            }
        }
    }
}

fn elements(dims: &[i64]) -> usize {
    dims.iter().product::<i64>().max(0) as usize
}

/// The elements of an array, which has no data if it has none.
unsafe fn slice<'a, T>(data: *const T, count: usize) -> &'a [T] {
    if count == 0 {
        &[]
    } else {
        unsafe { std::slice::from_raw_parts(data, count) }
    }
}

/// The dimensions of an array in a cell.
unsafe fn dims_of<'a>(cell: *mut Cell, field: &Field) -> &'a [i64] {
    unsafe { slice(cells::word(cell, field.rest + 1), field.rank) }
}

/// The boxes of a field.
unsafe fn boxes_of<'a>(cell: *mut Cell, field: &Field) -> &'a [*mut Cell] {
    unsafe {
        if field.rank == 0 {
            slice(cells::word(cell, field.at).cast(), 1)
        } else {
            slice(*cells::word(cell, field.rest) as *const *mut Cell, elements(dims_of(cell, field)))
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
        let mut writer =
            Writer { shapes: &*shapes, words: Vec::new(), shared: HashMap::new(), todo: Vec::new(), done: Vec::new() };
        let root = if rank == 0 {
            writer.write(slice(from.cast(), 1), shape as usize);
            writer.done.pop().unwrap_or(-1)
        } else {
            let (data, dims) = (*from as *const *mut Cell, slice(from.add(1), rank as usize));
            writer.write(slice(data, elements(dims)), shape as usize);
            let place = writer.words.len() as i64;
            writer.array(Kind::Box(shape as usize), dims, data.cast());
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

/// What is known of a place in the buffer.
#[derive(Clone, Copy)]
enum At {
    /// No box that is read refers to it.
    Nothing,
    /// The shape of the cell there.
    Shape(usize),
    Made(*mut Cell),
}

/// Reads cells in.
struct Reader<'a> {
    thread: *mut Thread,
    shapes: &'a Shapes,
    words: &'a [i64],
    at: Vec<At>,
}

impl<'a> Reader<'a> {
    fn word(&self, at: usize) -> i64 {
        self.words.get(at).copied().unwrap_or(0)
    }

    /// What stands at a place: the shape of an array, its elements, and where they end.
    fn array_at(&self, at: usize, rank: usize) -> (&'a [i64], &'a [i64], usize) {
        let part = |from: usize, count: usize| self.words.get(from..from.saturating_add(count)).unwrap_or(&[]);
        let dims = part(at, rank);
        let count = elements(dims);
        (dims, part(at + rank, count), at + rank + count)
    }

    /// The fields of the cell at a place, if something refers to it.
    fn fields(&self, place: usize) -> Option<&'a Fields> {
        let At::Shape(shape) = *self.at.get(place)? else { return None };
        self.shapes.get(shape, self.word(place))
    }

    /// Notes the shapes of what a cell refers to.
    fn note_cell(&mut self, place: usize) {
        let Some(Fields { fields, .. }) = self.fields(place) else { return };
        let mut at = place + 1;
        for field in fields {
            if field.rank > 0 {
                at = self.note_array(at, field.kind, field.rank);
            } else {
                if let Kind::Box(shape) = field.kind {
                    self.note(self.word(at), shape);
                }
                at += 1;
            }
        }
    }

    fn note_array(&mut self, at: usize, kind: Kind, rank: usize) -> usize {
        let (_, items, end) = self.array_at(at, rank);
        if let Kind::Box(shape) = kind {
            items.iter().for_each(|reference| self.note(*reference, shape));
        }
        end
    }

    fn note(&mut self, reference: i64, shape: usize) {
        if let Some(at) = usize::try_from(reference).ok().and_then(|r| self.at.get_mut(r)) {
            *at = At::Shape(shape);
        }
    }

    /// The box of a reference, held once more.
    unsafe fn cell_of(&self, reference: i64) -> *mut Cell {
        match usize::try_from(reference).ok().and_then(|r| self.at.get(r)) {
            Some(At::Made(cell)) => unsafe { cells::hold(*cell) },
            Some(_) => cells::immediate(-1) as *mut Cell,
            None => cells::immediate(-2 - reference) as *mut Cell,
        }
    }

    /// Reads an array at `at`; gives its block and dimensions, and the place after it.
    unsafe fn array(&self, at: usize, kind: Kind, rank: usize) -> Option<(*mut Block, &'a [i64], usize)> {
        let (dims, items, end) = self.array_at(at, rank);
        let bytes = (items.len() * width(kind)) as i64;
        unsafe {
            let block = match kind {
                Kind::Box(_) => cells::allocate(self.thread, bytes),
                Kind::Word | Kind::Bool => memory::allocate(self.thread, bytes),
            };
            if block.is_null() {
                return None;
            }
            let data: *mut u8 = block.add(1).cast();
            match kind {
                Kind::Word => std::ptr::copy_nonoverlapping(items.as_ptr(), data.cast(), items.len()),
                Kind::Bool => items.iter().enumerate().for_each(|(i, word)| *data.add(i) = *word as u8),
                Kind::Box(_) => {
                    let boxes = data.cast::<*mut Cell>();
                    items.iter().enumerate().for_each(|(i, word)| *boxes.add(i) = self.cell_of(*word));
                }
            }
            Some((block, dims, end))
        }
    }

    /// Makes the cell at a place, which nobody holds yet.
    unsafe fn cell(&mut self, place: usize) -> Option<()> {
        let Some(Fields { fields, header }) = self.fields(place) else { return Some(()) };
        unsafe {
            let cell = cells::new(self.thread, *header);
            if cell.is_null() {
                return None;
            }
            let mut at = place + 1;
            for field in fields {
                if field.rank > 0 {
                    let (block, dims, end) = self.array(at, field.kind, field.rank)?;
                    *cells::word(cell, field.at) = block as i64;
                    *cells::word(cell, field.rest) = block.add(1) as i64;
                    std::ptr::copy_nonoverlapping(dims.as_ptr(), cells::word(cell, field.rest + 1), dims.len());
                    at = end;
                } else {
                    let word = self.word(at);
                    let value = if let Kind::Box(_) = field.kind { self.cell_of(word) as i64 } else { word };
                    *cells::word(cell, field.at) = value;
                    at += 1;
                }
            }
            cells::unheld(cell);
            self.at[place] = At::Made(cell);
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
        let (words, order) = slice((*slot).value.data.cast::<i64>(), used + count).split_at(used);
        let mut reader = Reader { thread, shapes: &*shapes, words, at: vec![At::Nothing; used] };
        let kind = Kind::Box(shape as usize);
        if rank == 0 {
            reader.note(root, shape as usize);
        } else {
            reader.note_array(root as usize, kind, rank as usize);
        }
        // What refers to a cell comes after it, and says what shape it has.
        for place in order.iter().rev() {
            reader.note_cell(*place as usize);
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
            std::ptr::copy_nonoverlapping(dims.as_ptr(), to.add(2), dims.len());
        }
        0
    }
}
