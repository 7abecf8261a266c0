//! Where lines break: text with optional line breaks, laid out within a width. Everything lives in one vector, so that deep
//! documents are neither walked nor freed by recursion.

/// A piece of text, by its place in [`Layout`].
#[derive(Clone, Copy, Debug)]
pub struct Doc(u32);

enum Node {
    Text(Box<str>),
    /// A blank, or a new line.
    Line,
    /// Always a new line.
    Hard,
    Many(Vec<Doc>),
    /// Lines inside are indented by so much more.
    Nest(usize, Doc),
    /// On one line if it fits.
    Group(Doc),
}

#[derive(Default)]
pub struct Layout {
    nodes: Vec<Node>,
}

impl Layout {
    fn add(&mut self, node: Node) -> Doc {
        self.nodes.push(node);
        Doc(self.nodes.len() as u32 - 1)
    }

    pub fn text(&mut self, text: impl Into<Box<str>>) -> Doc {
        self.add(Node::Text(text.into()))
    }

    pub fn line(&mut self) -> Doc {
        self.add(Node::Line)
    }

    pub fn hard(&mut self) -> Doc {
        self.add(Node::Hard)
    }

    pub fn many(&mut self, parts: impl Into<Vec<Doc>>) -> Doc {
        self.add(Node::Many(parts.into()))
    }

    pub fn nest(&mut self, doc: Doc) -> Doc {
        self.nest_by(2, doc)
    }

    pub fn nest_by(&mut self, columns: usize, doc: Doc) -> Doc {
        self.add(Node::Nest(columns, doc))
    }

    pub fn group(&mut self, parts: impl Into<Vec<Doc>>) -> Doc {
        let parts = self.many(parts);
        self.add(Node::Group(parts))
    }

    /// The text with lines of at most `width` columns where that is possible.
    pub fn render(&self, doc: Doc, width: usize) -> String {
        let mut out = String::new();
        let mut column = 0;
        // What is left to write, the next on top: its indentation, and whether it is on one line.
        let mut todo = vec![(0, false, doc)];
        while let Some((indent, flat, doc)) = todo.pop() {
            match &self.nodes[doc.0 as usize] {
                Node::Text(text) => {
                    out.push_str(text);
                    column += text.chars().count();
                }
                Node::Line if flat => {
                    out.push(' ');
                    column += 1;
                }
                Node::Line | Node::Hard => {
                    out.truncate(out.trim_end_matches(' ').len());
                    out.push('\n');
                    // Deeply nested text would otherwise consist of blanks.
                    let indent = indent.min(width / 2);
                    out.extend(std::iter::repeat_n(' ', indent));
                    column = indent;
                }
                Node::Many(parts) => todo.extend(parts.iter().rev().map(|part| (indent, flat, *part))),
                Node::Nest(more, inner) => todo.push((indent + more, flat, *inner)),
                Node::Group(inner) => {
                    let flat = flat || self.fits(*inner, &todo, width.saturating_sub(column));
                    todo.push((indent, flat, *inner));
                }
            }
        }
        out
    }

    /// Whether a document fits on the rest of the line, together with what follows up to the next possible line break.
    fn fits(&self, doc: Doc, rest: &[(usize, bool, Doc)], room: usize) -> bool {
        let mut room = isize::try_from(room).unwrap_or(isize::MAX);
        let mut todo = vec![(true, doc)];
        let mut following = rest.iter().rev();
        loop {
            let (flat, doc) = match todo.pop() {
                Some(next) => next,
                None => match following.next() {
                    Some((_, flat, doc)) => (*flat, *doc),
                    None => return true,
                },
            };
            match &self.nodes[doc.0 as usize] {
                Node::Text(text) => room -= text.chars().count() as isize,
                Node::Line if !flat => return true,
                Node::Line => room -= 1,
                Node::Hard => return !flat,
                Node::Many(parts) => todo.extend(parts.iter().rev().map(|part| (flat, *part))),
                Node::Nest(_, inner) => todo.push((flat, *inner)),
                Node::Group(inner) => todo.push((flat, *inner)),
            }
            if room < 0 {
                return false;
            }
        }
    }
}
