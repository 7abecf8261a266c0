//! Memory of values: shared, counted in bytes, and freed without recursion.

use crate::value::Value;
use std::cell::{Cell, RefCell};
use std::ops::Deref;
use std::rc::Rc;

thread_local! {
    /// Bytes that values of this thread hold, approximately.
    static LIVE: Cell<usize> = const { Cell::new(0) };
    /// Values on the way out: freeing a deep value puts its parts here instead of recursing.
    static LEAVING: RefCell<Vec<Value>> = const { RefCell::new(Vec::new()) };
    static EMPTYING: Cell<bool> = const { Cell::new(false) };
}

/// What the allocator and the reference counts add to each object.
const OVERHEAD: usize = 32;

/// The bytes that values of this thread hold, approximately.
pub fn live() -> usize {
    LIVE.with(Cell::get)
}

fn gain(bytes: usize) {
    LIVE.with(|live| live.set(live.get().wrapping_add(bytes)));
}

fn lose(bytes: usize) {
    // At the end of a thread the counter may be gone before the last value.
    let _ = LIVE.try_with(|live| live.set(live.get().wrapping_sub(bytes)));
}

/// What can be shared.
pub trait Heap {
    fn bytes(&self) -> usize;

    /// Hands over parts whose freeing could recurse.
    fn leave(&mut self) {}
}

/// A counted reference to something on the heap.
pub struct Shared<T: Heap + ?Sized>(Rc<T>);

impl<T: Heap + ?Sized> Shared<T> {
    pub fn new(content: impl Into<Rc<T>>) -> Self {
        let content = content.into();
        gain(content.bytes() + OVERHEAD);
        Shared(content)
    }

    /// The content, if nobody else holds it.
    pub fn unique(&mut self) -> Option<&mut T> {
        Rc::get_mut(&mut self.0)
    }

    /// A number that tells objects apart as long as they live.
    pub fn address(&self) -> usize {
        Rc::as_ptr(&self.0) as *const u8 as usize
    }
}

impl Shared<Vec<f64>> {
    /// The numbers themselves if nobody else holds them, else a copy.
    pub fn into_vec(mut self) -> Vec<f64> {
        match Rc::get_mut(&mut self.0) {
            Some(numbers) => {
                lose(numbers.bytes());
                std::mem::take(numbers)
            }
            None => self.0.to_vec(),
        }
    }
}

impl<T: Heap + ?Sized> Clone for Shared<T> {
    fn clone(&self) -> Self {
        Shared(self.0.clone())
    }
}

impl<T: Heap + ?Sized> Deref for Shared<T> {
    type Target = T;
    fn deref(&self) -> &T {
        &self.0
    }
}

impl<T: Heap + ?Sized> Drop for Shared<T> {
    fn drop(&mut self) {
        if let Some(content) = Rc::get_mut(&mut self.0) {
            lose(content.bytes() + OVERHEAD);
            content.leave();
        }
    }
}

impl Heap for str {
    fn bytes(&self) -> usize {
        self.len()
    }
}

impl Heap for Vec<f64> {
    fn bytes(&self) -> usize {
        self.len() * size_of::<f64>()
    }
}

impl Heap for Vec<i64> {
    fn bytes(&self) -> usize {
        self.len() * size_of::<i64>()
    }
}

impl Heap for [Value] {
    fn bytes(&self) -> usize {
        size_of_val(self)
    }

    fn leave(&mut self) {
        if !self.iter().any(Value::has_parts) {
            return;
        }
        let started = EMPTYING.try_with(|emptying| emptying.replace(true));
        let Ok(already) = started else { return };
        LEAVING.with_borrow_mut(|leaving| {
            leaving.extend(self.iter_mut().filter(|v| v.has_parts()).map(std::mem::take));
        });
        if already {
            return;
        }
        while let Some(value) = LEAVING.with_borrow_mut(Vec::pop) {
            drop(value);
        }
        EMPTYING.with(|emptying| emptying.set(false));
    }
}
