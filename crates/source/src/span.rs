//! Source files and positions in them.

use std::sync::Arc;

/// The number of a file in a [`SourceMap`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct FileId(pub u32);

/// A stretch of bytes of one file, `start..end`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Span {
    pub file: FileId,
    pub start: u32,
    pub end: u32,
}

impl Span {
    pub fn new(file: FileId, start: u32, end: u32) -> Self {
        Span { file, start, end }
    }

    /// The smallest span that covers both. Both must lie in the same file.
    pub fn to(self, other: Span) -> Span {
        Span { file: self.file, start: self.start.min(other.start), end: self.end.max(other.end) }
    }
}

/// A line and a column, both counted from 1; the column counts characters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Position {
    pub line: usize,
    pub column: usize,
}

/// One source text with the name under which messages speak of it.
#[derive(Clone, Debug)]
pub struct SourceFile {
    pub name: Arc<str>,
    pub text: Arc<str>,
    line_starts: Arc<[u32]>,
}

impl SourceFile {
    pub fn new(name: impl Into<Arc<str>>, text: impl Into<Arc<str>>) -> Self {
        let text = text.into();
        let line_starts = std::iter::once(0).chain(text.match_indices('\n').map(|(i, _)| i as u32 + 1)).collect();
        SourceFile { name: name.into(), text, line_starts }
    }

    /// Line and column of a byte offset; an offset past the end means the end.
    pub fn position(&self, offset: u32) -> Position {
        let line = self.line_starts.partition_point(|&start| start <= offset).max(1);
        let start = self.line_starts[line - 1] as usize;
        let end = (offset as usize).min(self.text.len());
        let column = self.text.get(start..end).map_or(end.saturating_sub(start), |s| s.chars().count());
        Position { line, column: column + 1 }
    }

    /// The text of a line (counted from 1), without its line break; nothing for a line that is not there.
    pub fn line(&self, line: usize) -> &str {
        let end = self.line_starts.get(line).map_or(self.text.len(), |&next| next as usize);
        self.text.get(self.line_start(line)..end).unwrap_or("").trim_end_matches(['\n', '\r'])
    }

    /// The offset at which a line (counted from 1) begins; the end of the text for a line that is not there.
    pub fn line_start(&self, line: usize) -> usize {
        line.checked_sub(1).and_then(|i| self.line_starts.get(i)).map_or(self.text.len(), |&start| start as usize)
    }
}

/// All source files of a program.
#[derive(Clone, Debug, Default)]
pub struct SourceMap {
    files: Vec<SourceFile>,
}

impl SourceMap {
    pub fn add(&mut self, file: SourceFile) -> FileId {
        self.files.push(file);
        FileId(self.files.len() as u32 - 1)
    }

    pub fn file(&self, id: FileId) -> Option<&SourceFile> {
        self.files.get(id.0 as usize)
    }

    pub fn files(&self) -> impl Iterator<Item = (FileId, &SourceFile)> {
        self.files.iter().enumerate().map(|(i, f)| (FileId(i as u32), f))
    }

    /// The text that a span covers, if the span is of this map.
    pub fn text(&self, span: Span) -> Option<&str> {
        self.file(span.file)?.text.get(span.start as usize..span.end as usize)
    }
}
