//! Documents with choices of layout, and the algorithm that makes the choices (Wadler's, in Lindig's strict form).
//!
//! Documents live in an arena: a tree ten thousand levels deep is then dropped, and laid out, without recursion.

use std::borrow::Cow;

/// A document in its [`Docs`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Doc(u32);

pub const NIL: Doc = Doc(0);

enum Node {
    Nil,
    Text(Cow<'static, str>),
    /// A line break, or this text where the group is on one line.
    Line(&'static str),
    /// Always a line break.
    Hard,
    /// An empty line; a [`Node::Hard`] follows.
    Blank,
    /// A line break, unless one comes anyway before the next text.
    Fresh,
    /// Nothing, but if more follows in a group, the group is not on one line.
    LineEnd,
    Concat(Vec<Doc>),
    Nest(usize, Doc),
    /// Indents what follows to the present column.
    Align(Doc),
    /// On one line if that fits.
    Group(Doc),
    /// What a definition defines, if it has brackets: on the line of the `=` if that fits, else on the next if that fits,
    /// else on several, of which the first begins beside the `=`.
    Definition(Doc),
    /// The first where the group is broken, the second where it is on one line.
    IfBreak(Doc, Doc),
}

pub struct Docs {
    nodes: Vec<Node>,
    facts: Vec<Facts>,
}

/// What is known of a document before it is laid out.
#[derive(Clone, Copy, Default)]
struct Facts {
    /// It cannot be on one line.
    breaks: bool,
    /// Nothing of it can be seen.
    empty: bool,
    /// It ends with [`Node::LineEnd`].
    ends_line: bool,
}

const BREAKS: Facts = Facts { breaks: true, empty: false, ends_line: false };

impl Docs {
    pub fn new() -> Self {
        Docs { nodes: vec![Node::Nil], facts: vec![Facts { empty: true, ..Facts::default() }] }
    }

    fn push(&mut self, node: Node, facts: Facts) -> Doc {
        self.nodes.push(node);
        self.facts.push(facts);
        Doc(self.nodes.len() as u32 - 1)
    }

    fn facts(&self, doc: Doc) -> Facts {
        self.facts[doc.0 as usize]
    }

    pub fn text(&mut self, text: impl Into<Cow<'static, str>>) -> Doc {
        let text = text.into();
        let facts = Facts { breaks: text.contains('\n'), empty: text.is_empty(), ends_line: false };
        self.push(Node::Text(text), facts)
    }

    /// A space or a line break.
    pub fn line(&mut self) -> Doc {
        self.push(Node::Line(" "), Facts::default())
    }

    /// Nothing or a line break.
    pub fn soft_line(&mut self) -> Doc {
        self.push(Node::Line(""), Facts::default())
    }

    pub fn hard(&mut self) -> Doc {
        self.push(Node::Hard, BREAKS)
    }

    pub fn blank(&mut self) -> Doc {
        self.push(Node::Blank, BREAKS)
    }

    pub fn fresh(&mut self) -> Doc {
        self.push(Node::Fresh, BREAKS)
    }

    pub fn line_end(&mut self) -> Doc {
        self.push(Node::LineEnd, Facts { breaks: false, empty: true, ends_line: true })
    }

    pub fn concat(&mut self, parts: impl Into<Vec<Doc>>) -> Doc {
        let parts: Vec<Doc> = parts.into();
        let mut all = Facts { breaks: false, empty: true, ends_line: false };
        for &part in &parts {
            let facts = self.facts(part);
            all.breaks |= facts.breaks || (all.ends_line && !facts.empty);
            all.ends_line = facts.ends_line || (all.ends_line && facts.empty);
            all.empty &= facts.empty;
        }
        self.push(Node::Concat(parts), all)
    }

    pub fn nest(&mut self, by: usize, doc: Doc) -> Doc {
        self.push(Node::Nest(by, doc), self.facts(doc))
    }

    pub fn align(&mut self, doc: Doc) -> Doc {
        self.push(Node::Align(doc), self.facts(doc))
    }

    pub fn group(&mut self, doc: Doc) -> Doc {
        self.push(Node::Group(doc), self.facts(doc))
    }

    pub fn definition(&mut self, doc: Doc) -> Doc {
        self.push(Node::Definition(doc), self.facts(doc))
    }

    pub fn if_break(&mut self, broken: Doc, flat: Doc) -> Doc {
        self.push(Node::IfBreak(broken, flat), Facts::default())
    }

    /// The text of a document, in lines of at most `width` characters where that is possible.
    pub fn layout(&self, doc: Doc, width: usize) -> String {
        let mut out = Output { text: String::new(), column: 0, indent: None, fresh: None };
        let mut todo = vec![Command { indent: 0, flat: false, doc }];
        while let Some(Command { indent, flat, doc }) = todo.pop() {
            match &self.nodes[doc.0 as usize] {
                Node::Nil | Node::LineEnd => {}
                Node::Text(text) => out.write(text),
                Node::Line(flat_text) if flat => out.write(flat_text),
                Node::Line(_) | Node::Hard => out.newline(indent),
                Node::Blank => out.blank(),
                Node::Fresh => out.fresh = Some(indent + 4),
                Node::Concat(parts) => todo.extend(parts.iter().rev().map(|&doc| Command { indent, flat, doc })),
                Node::Nest(by, doc) => todo.push(Command { indent: indent + by, flat, doc: *doc }),
                Node::Align(doc) => todo.push(Command { indent: out.column(), flat, doc: *doc }),
                Node::Group(inner) => {
                    let room = width.saturating_sub(out.column());
                    let flat = flat || (!self.facts(doc).breaks && self.fits(*inner, room, &todo));
                    todo.push(Command { indent, flat, doc: *inner });
                }
                Node::Definition(inner) => {
                    let fits = |room: usize| !self.facts(doc).breaks && self.fits(*inner, room, &todo);
                    let beside = flat || fits(width.saturating_sub(out.column() + 1));
                    if !beside && fits(width.saturating_sub(indent + 2)) {
                        out.newline(indent + 2);
                        todo.push(Command { indent: indent + 2, flat: true, doc: *inner });
                    } else {
                        out.write(" ");
                        todo.push(Command { indent, flat: beside, doc: *inner });
                    }
                }
                Node::IfBreak(broken, one_line) => {
                    todo.push(Command { indent, flat, doc: if flat { *one_line } else { *broken } });
                }
            }
        }
        out.text
    }

    /// Whether a document on one line, with what follows it up to the next possible line break, fits into the room.
    fn fits(&self, doc: Doc, room: usize, rest: &[Command]) -> bool {
        let mut room = room;
        let mut rest = rest.iter().rev();
        let mut todo = vec![(true, doc)];
        loop {
            let (flat, doc) = match todo.pop() {
                Some(next) => next,
                None => match rest.next() {
                    Some(command) => (command.flat, command.doc),
                    None => return true,
                },
            };
            match &self.nodes[doc.0 as usize] {
                Node::Nil | Node::LineEnd => {}
                Node::Text(text) => {
                    let line = text.split('\n').next().unwrap_or("");
                    match room.checked_sub(line.chars().count()) {
                        Some(left) => room = left,
                        None => return false,
                    }
                    if line.len() < text.len() {
                        return true;
                    }
                }
                Node::Line(text) if flat => match room.checked_sub(text.len()) {
                    Some(left) => room = left,
                    None => return false,
                },
                Node::Line(_) | Node::Hard | Node::Blank | Node::Fresh => return true,
                Node::Concat(parts) => todo.extend(parts.iter().rev().map(|&doc| (flat, doc))),
                Node::Nest(_, doc) | Node::Align(doc) => todo.push((flat, *doc)),
                Node::Group(inner) => todo.push((flat && !self.facts(doc).breaks, *inner)),
                Node::Definition(inner) => {
                    match room.checked_sub(1) {
                        Some(left) => room = left,
                        None => return false,
                    }
                    todo.push((flat && !self.facts(doc).breaks, *inner));
                }
                Node::IfBreak(broken, one_line) => todo.push((flat, if flat { *one_line } else { *broken })),
            }
        }
    }
}

struct Command {
    indent: usize,
    flat: bool,
    doc: Doc,
}

struct Output {
    text: String,
    /// Of the next character, unless a line has just begun.
    column: usize,
    /// The indentation of a line that has nothing on it yet: a line of blanks only is left empty.
    indent: Option<usize>,
    /// A line break to be made before the next text, with its indentation.
    fresh: Option<usize>,
}

/// Further to the right nobody looks; and a tree ten thousand levels deep would be mostly blanks.
const DEEPEST_INDENT: usize = 80;

impl Output {
    fn column(&self) -> usize {
        self.indent.unwrap_or(self.column)
    }

    fn newline(&mut self, indent: usize) {
        // The last line may end in the space before a line break.
        let end = self.text.trim_end_matches(' ').len();
        self.text.truncate(end);
        self.text.push('\n');
        self.indent = Some(indent.min(DEEPEST_INDENT));
        self.fresh = None;
    }

    /// An empty line; a line break follows.
    fn blank(&mut self) {
        let end = self.text.trim_end_matches(' ').len();
        self.text.truncate(end);
        self.text.push('\n');
        self.fresh = None;
    }

    fn write(&mut self, text: &str) {
        if text.is_empty() {
            return;
        }
        if let Some(indent) = self.fresh {
            self.newline(indent);
        }
        if let Some(indent) = self.indent.take() {
            self.text.extend(std::iter::repeat_n(' ', indent));
            self.column = indent;
        }
        self.text.push_str(text);
        match text.rsplit_once('\n') {
            Some((_, last)) => self.column = last.chars().count(),
            None => self.column += text.chars().count(),
        }
    }
}
