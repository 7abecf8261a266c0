//! Comments while printing: each is put out once, in order, where its place in the source says.
//!
//! The printer goes through the tree in the order of the source. Before and behind each node it asks for the
//! comments that stand there. What nobody asked for in time comes out before the next node.

use super::doc::{Doc, NIL};
use super::Printer;
use crate::lexer::Comment;
use crate::token::has_open_quote;

impl Printer<'_> {
    /// The next comment not yet put out, if it starts before this offset.
    fn pending(&self, offset: u32) -> Option<Comment> {
        self.comments.get(self.next_comment).copied().filter(|comment| comment.span.start < offset)
    }

    fn take_comment(&mut self, comment: Comment) -> Doc {
        self.next_comment += 1;
        let text = comment.text(self.source).to_string();
        let open_quote = has_open_quote(&text);
        let doc = self.docs.text(text);
        if !open_quote {
            return doc;
        }
        // On one line with a later quote, what is between them would be taken for a string.
        let fresh = self.docs.fresh();
        self.docs.concat([doc, fresh])
    }

    /// Whether nothing but blanks stands between the comment and the end of its line.
    fn ends_line(&self, comment: Comment) -> bool {
        let rest = self.source.get(comment.span.end as usize..).unwrap_or("");
        let rest = rest.trim_start_matches([' ', '\t', '\r']);
        rest.is_empty() || rest.starts_with('\n')
    }

    /// Whether something else stands before the comment on its line.
    fn shares_line(&self, comment: Comment) -> bool {
        let before = self.source.get(..comment.span.start as usize).unwrap_or("");
        let before = before.trim_end_matches([' ', '\t', '\r']);
        !(before.is_empty() || before.ends_with('\n'))
    }

    /// Whether an empty line stands before this offset.
    pub fn blank_before(&self, offset: u32) -> bool {
        let before = self.source.get(..offset as usize).unwrap_or("");
        let blanks = &before[before.trim_end().len()..];
        blanks.bytes().filter(|&byte| byte == b'\n').count() > 1
    }

    /// The comments that stand before a node, each followed by a space or by the line break it had.
    pub fn before(&mut self, offset: u32) -> Doc {
        let mut doc = NIL;
        while let Some(comment) = self.pending(offset) {
            let text = self.take_comment(comment);
            let space = if self.ends_line(comment) { self.docs.hard() } else { self.docs.text(" ") };
            doc = self.docs.concat([doc, text, space]);
        }
        doc
    }

    /// The comments that stand before a part of a head, such as `let f (x : t) =`, which stays on its line: a name at
    /// the start of a line could be read as the word of an item.
    pub fn before_inline(&mut self, offset: u32) -> Doc {
        let mut doc = NIL;
        while let Some(comment) = self.pending(offset) {
            let (text, space) = (self.take_comment(comment), self.docs.text(" "));
            doc = self.docs.concat([doc, text, space]);
        }
        doc
    }

    /// The comments that directly follow a node on its line.
    pub fn behind(&mut self, mut end: u32) -> Doc {
        let mut doc = NIL;
        while let Some(comment) = self.pending(u32::MAX) {
            let between = self.source.get(end as usize..comment.span.start as usize);
            if !between.is_some_and(|text| text.chars().all(|c| matches!(c, ' ' | '\t'))) {
                break;
            }
            doc = self.append_comment(doc, comment);
            end = comment.span.end;
        }
        doc
    }

    /// The comments at the end of a line that has more on it than they, such as those behind `;` or `in`.
    pub fn at_line_end(&mut self, offset: u32) -> Doc {
        let mut doc = NIL;
        while let Some(comment) = self.pending(offset).filter(|&c| self.shares_line(c) && self.ends_line(c)) {
            doc = self.append_comment(doc, comment);
        }
        doc
    }

    /// The comments that are left before the end of a bracket.
    pub fn before_end(&mut self, offset: u32) -> Doc {
        let mut doc = NIL;
        while let Some(comment) = self.pending(offset) {
            if self.shares_line(comment) {
                doc = self.append_comment(doc, comment);
            } else {
                let (hard, text) = (self.docs.hard(), self.take_comment(comment));
                doc = self.docs.concat([doc, hard, text]);
            }
        }
        doc
    }

    fn append_comment(&mut self, doc: Doc, comment: Comment) -> Doc {
        let (space, text) = (self.docs.text(" "), self.take_comment(comment));
        let after = if self.ends_line(comment) { self.docs.line_end() } else { NIL };
        self.docs.concat([doc, space, text, after])
    }

    /// A line break before something that starts at this offset, with the comments that stand before it on lines of
    /// their own, and one empty line wherever there were any.
    pub fn line_before(&mut self, offset: u32) -> Doc {
        let mut parts = vec![self.at_line_end(offset)];
        let mut joined = false;
        while let Some(comment) = self.pending(offset) {
            if !joined {
                self.break_line(comment.span.start, &mut parts);
            }
            parts.push(self.take_comment(comment));
            joined = !self.ends_line(comment);
            if joined {
                parts.push(self.docs.text(" "));
            }
        }
        if !joined {
            self.break_line(offset, &mut parts);
        }
        self.docs.concat(parts)
    }

    fn break_line(&mut self, offset: u32, parts: &mut Vec<Doc>) {
        if self.blank_before(offset) {
            parts.push(self.docs.blank());
        }
        parts.push(self.docs.hard());
    }

    pub fn has_comment_before(&self, offset: u32) -> bool {
        self.pending(offset).is_some()
    }

    /// The line breaks and comments before an item; every comment has lines of its own, since what begins an item
    /// should stand in the first column.
    pub fn own_lines_before(&mut self, offset: u32, mut first: bool) -> Doc {
        let mut parts = vec![self.at_line_end(offset)];
        let mut starts = Vec::new();
        while let Some(comment) = self.pending(offset) {
            let text = self.take_comment(comment);
            starts.push((comment.span.start, text));
        }
        starts.push((offset, NIL));
        for (start, text) in starts {
            if !std::mem::take(&mut first) {
                self.break_line(start, &mut parts);
            }
            parts.push(text);
        }
        self.docs.concat(parts)
    }

    /// The comments that no item follows, and the end of the last line.
    pub fn comments_at_end(&mut self, mut first: bool) -> Doc {
        let mut parts = Vec::new();
        while let Some(comment) = self.pending(u32::MAX) {
            if !std::mem::take(&mut first) {
                self.break_line(comment.span.start, &mut parts);
            }
            parts.push(self.take_comment(comment));
        }
        if !first {
            parts.push(self.docs.hard());
        }
        self.docs.concat(parts)
    }
}
