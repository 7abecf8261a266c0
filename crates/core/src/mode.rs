//! The names of the differentiation modes. One key per mode, used everywhere: file name in `derive`,
//! `--ad` value, test column, proof file, row in `docs/papers.md`.

use std::fmt;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Mode {
    Forward,
    Vector,
    Continuation,
    Delta,
    Monadic,
    Combinator,
    Trace,
    Tower,
}

impl Mode {
    pub const ALL: [Mode; 8] = [
        Mode::Forward,
        Mode::Vector,
        Mode::Continuation,
        Mode::Delta,
        Mode::Monadic,
        Mode::Combinator,
        Mode::Trace,
        Mode::Tower,
    ];

    pub fn key(self) -> &'static str {
        match self {
            Mode::Forward => "forward",
            Mode::Vector => "vector",
            Mode::Continuation => "continuation",
            Mode::Delta => "delta",
            Mode::Monadic => "monadic",
            Mode::Combinator => "combinator",
            Mode::Trace => "trace",
            Mode::Tower => "tower",
        }
    }

    pub fn from_key(key: &str) -> Option<Mode> {
        Mode::ALL.into_iter().find(|mode| mode.key() == key)
    }
}

impl fmt::Display for Mode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.key())
    }
}
