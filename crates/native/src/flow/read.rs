//! Reads the text that [`super::print`] writes. Source positions are not in the text.

use super::*;
use rustc_hash::FxHashMap;

/// What is wrong with a flow text, and on which line (counted from 1).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReadError {
    pub line: usize,
    pub message: String,
}

type Result<T> = std::result::Result<T, ReadError>;

pub fn module(text: &str) -> Result<Module> {
    let lines: Vec<(usize, Vec<&str>)> = text
        .lines()
        .enumerate()
        .map(|(i, line)| (i + 1, tokens(line)))
        .filter(|(_, tokens)| !tokens.is_empty())
        .collect();
    let mut reader =
        Reader { lines, at: 0, vars: FxHashMap::default(), signatures: FxHashMap::default(), shapes: Vec::new() };
    reader.signatures()?;
    let mut module = Module::default();
    while reader.peek() == Some("shape") {
        let shape = reader.shape()?;
        module.shapes.push(shape);
    }
    reader.shapes = module.shapes.clone();
    while reader.at < reader.lines.len() {
        module.functions.push(reader.function()?);
    }
    Ok(module)
}

/// Words; the punctuation marks are words of their own.
fn tokens(line: &str) -> Vec<&str> {
    let line = line.split("--").next().unwrap_or("");
    let mut found = Vec::new();
    for word in line.split_whitespace() {
        let mut rest = word;
        while let Some(at) = rest.find(['(', ')', ',', ':', '{', '}', '=', '+']) {
            // `+=` and `:=` are one word; `1e+5` and `->` are not split.
            let split_here = !rest[at..].starts_with('+') || rest[at..].starts_with("+=");
            if !split_here {
                break;
            }
            if at > 0 {
                found.push(&rest[..at]);
            }
            let width = if rest[at..].starts_with("+=") || rest[at..].starts_with(":=") { 2 } else { 1 };
            found.push(&rest[at..at + width]);
            rest = &rest[at + width..];
        }
        if !rest.is_empty() {
            found.push(rest);
        }
    }
    found
}

struct Reader<'a> {
    lines: Vec<(usize, Vec<&'a str>)>,
    at: usize,
    vars: FxHashMap<&'a str, Var>,
    signatures: FxHashMap<&'a str, (FunctionId, Vec<Type>)>,
    shapes: Vec<Shape>,
}

/// The words of one line, from the left.
struct Words<'a> {
    line: usize,
    words: Vec<&'a str>,
    at: usize,
}

impl<'a> Words<'a> {
    fn error<T>(&self, message: impl Into<String>) -> Result<T> {
        Err(ReadError { line: self.line, message: message.into() })
    }

    fn peek(&self) -> Option<&'a str> {
        self.words.get(self.at).copied()
    }

    fn next(&mut self) -> Result<&'a str> {
        match self.peek() {
            Some(word) => {
                self.at += 1;
                Ok(word)
            }
            None => self.error("the line ends too early"),
        }
    }

    fn accept(&mut self, word: &str) -> bool {
        let found = self.peek() == Some(word);
        self.at += usize::from(found);
        found
    }

    fn expect(&mut self, word: &str) -> Result<()> {
        if self.accept(word) {
            Ok(())
        } else {
            self.error(format!("expected `{word}`, found `{}`", self.peek().unwrap_or("the end of the line")))
        }
    }

    fn number(&mut self) -> Result<usize> {
        let word = self.next()?;
        word.parse().or_else(|_| self.error(format!("expected a number, found `{word}`")))
    }

    fn ty(&mut self) -> Result<Type> {
        let word = self.next()?;
        let (word, accumulator) = match word.strip_suffix('!') {
            Some(word) => (word, true),
            None => (word, false),
        };
        let (scalar, rank) = match word.split_once('[') {
            Some((scalar, rank)) => (scalar, rank.trim_end_matches(']').parse().ok()),
            None => (word, Some(0)),
        };
        let scalar = match scalar {
            "real" => Some(Scalar::Real),
            "int" => Some(Scalar::Int),
            "bool" => Some(Scalar::Bool),
            _ => scalar.strip_prefix("box").and_then(|n| n.parse().ok()).map(|n| Scalar::Box(ShapeId(n))),
        };
        match (scalar, rank) {
            (Some(scalar), Some(rank)) => Ok(Type { scalar, rank, accumulator }),
            _ => self.error(format!("`{word}` is no type")),
        }
    }
}

impl<'a> Reader<'a> {
    fn words(&mut self) -> Result<Words<'a>> {
        let last = self.lines.last().map_or(0, |(line, _)| *line);
        match self.lines.get(self.at) {
            Some((line, words)) => {
                self.at += 1;
                Ok(Words { line: *line, words: words.clone(), at: 0 })
            }
            None => Err(ReadError { line: last, message: "the text ends too early".into() }),
        }
    }

    fn peek(&self) -> Option<&'a str> {
        self.lines.get(self.at).and_then(|(_, words)| words.first().copied())
    }

    /// `shape 1 list_linear linear 0 merge add_lists = () | (real, box1)`; after the name of a trace comes `traced`.
    fn shape(&mut self) -> Result<Shape> {
        let mut words = self.words()?;
        words.expect("shape")?;
        words.number()?;
        let name = Name::new(words.next()?);
        let trace = words.accept("traced");
        let linear_of = if words.accept("linear") { Some(ShapeId(words.number()? as u32)) } else { None };
        let merge = if words.accept("merge") {
            let name = words.next()?;
            match self.signatures.get(name) {
                Some((id, _)) => Some(*id),
                None => return words.error(format!("no function `{name}`")),
            }
        } else {
            None
        };
        words.expect("=")?;
        let mut cells = Vec::new();
        while words.accept("(") {
            let mut fields = Vec::new();
            while !words.accept(")") {
                fields.push(words.ty()?);
                words.accept(",");
            }
            cells.push(fields);
            words.accept("|");
        }
        Ok(Shape { name, cells, trace, linear_of, merge })
    }

    /// Names and result types of all functions, since they may call each other.
    fn signatures(&mut self) -> Result<()> {
        for at in 0..self.lines.len() {
            let (line, words) = &self.lines[at];
            if words.first() == Some(&"fun") {
                let mut words = Words { line: *line, words: words.clone(), at: 1 };
                let name = words.next()?;
                while words.peek().is_some_and(|w| w != "->") {
                    words.at += 1;
                }
                let results = self.results(&mut words)?;
                let id = FunctionId(self.signatures.len());
                self.signatures.insert(name, (id, results));
            }
        }
        Ok(())
    }

    fn results(&mut self, words: &mut Words<'a>) -> Result<Vec<Type>> {
        words.expect("->")?;
        words.expect("(")?;
        let mut results = Vec::new();
        while !words.accept(")") {
            results.push(words.ty()?);
            words.accept(",");
        }
        Ok(results)
    }

    fn bind(&mut self, name: &'a str, ty: Type) -> Var {
        let base = name.split('.').next().unwrap_or(name);
        let var = Var::fresh(base, ty);
        self.vars.insert(name, var);
        var
    }

    fn function(&mut self) -> Result<Function> {
        self.vars.clear();
        let mut words = self.words()?;
        words.expect("fun")?;
        let name = Name::new(words.next()?);
        words.expect("(")?;
        let mut params = Vec::new();
        while !words.accept(")") {
            let param = words.next()?;
            words.expect(":")?;
            let ty = words.ty()?;
            params.push(self.bind(param, ty));
            words.accept(",");
        }
        let results = self.results(&mut words)?;
        words.expect("{")?;
        let (body, _) = self.block()?;
        Ok(Function { name, params, results, body, rule: None })
    }

    /// Up to the closing brace; the words after it are given back, for `else`.
    fn block(&mut self) -> Result<(Block, Words<'a>)> {
        let mut block = Block::default();
        loop {
            let mut words = self.words()?;
            match words.peek() {
                Some("}") => {
                    words.at += 1;
                    return Ok((block, words));
                }
                Some("return" | "yield" | "collect") => {
                    words.at += 1;
                    let results = self.atoms(&mut words)?;
                    block.results.extend(results);
                }
                _ => {
                    let stmt = self.stmt(words)?;
                    block.stmts.push(stmt);
                }
            }
        }
    }

    fn atom(&mut self, words: &mut Words<'a>) -> Result<Atom> {
        let word = words.next()?;
        if let Some(var) = self.vars.get(word) {
            return Ok((*var).into());
        }
        match word {
            "true" => Ok(Atom::Bool(true)),
            "false" => Ok(Atom::Bool(false)),
            _ if word.strip_prefix("nil").is_some_and(|n| n.parse::<u32>().is_ok()) => {
                Ok(Atom::Nil(ShapeId(word[3..].parse().unwrap_or_default())))
            }
            _ => match (word.parse::<i64>(), word.parse::<f64>()) {
                (Ok(i), _) => Ok(Atom::Int(i)),
                (_, Ok(r)) => Ok(Atom::Real(r)),
                _ => words.error(format!("`{word}` is not bound")),
            },
        }
    }

    fn var(&mut self, words: &mut Words<'a>) -> Result<Var> {
        match self.atom(words)? {
            Atom::Var(var) => Ok(var),
            _ => words.error("expected a variable"),
        }
    }

    /// Operands up to the end of the line or a mark.
    fn atoms(&mut self, words: &mut Words<'a>) -> Result<Vec<Atom>> {
        let mut atoms = Vec::new();
        while words.peek().is_some_and(|w| ![":=", "+=", "{", "of"].contains(&w)) {
            atoms.push(self.atom(words)?);
        }
        Ok(atoms)
    }

    fn carried(&mut self, words: &mut Words<'a>) -> Result<Vec<(Var, Atom)>> {
        let mut inits = Vec::new();
        if words.accept("with") {
            loop {
                let name = words.next()?;
                words.expect(":")?;
                let ty = words.ty()?;
                words.expect("=")?;
                inits.push((name, ty, self.atom(words)?));
                if !words.accept(",") {
                    break;
                }
            }
        }
        Ok(inits.into_iter().map(|(name, ty, init)| (self.bind(name, ty), init)).collect())
    }

    fn stmt(&mut self, mut words: Words<'a>) -> Result<Stmt> {
        let mut names = Vec::new();
        if let Some(equals) = words.words.iter().position(|w| *w == "=") {
            let bound = ["for", "while"].iter().any(|k| words.words[..equals].contains(k));
            if !bound {
                while !words.accept("=") {
                    names.push(words.next()?);
                    words.accept(",");
                }
            }
        }
        let (op, types) = self.op(&mut words)?;
        if types.len() != names.len() {
            return words.error(format!("{} names for {} results", names.len(), types.len()));
        }
        let binds = names.into_iter().zip(types).map(|(name, ty)| self.bind(name, ty)).collect();
        Ok(Stmt { binds, op, span: Span::default() })
    }

    /// An operation and the types of its results.
    fn op(&mut self, words: &mut Words<'a>) -> Result<(Op, Vec<Type>)> {
        let word = words.next()?;
        Ok(match word {
            "copy" | "stop" => {
                let value = self.atom(words)?;
                (if word == "copy" { Op::Copy { value } } else { Op::Stop { value } }, vec![value.ty()])
            }
            "select" => {
                let (cond, then, otherwise) = (self.atom(words)?, self.atom(words)?, self.atom(words)?);
                (Op::Select { cond, then, otherwise }, vec![then.ty()])
            }
            "dim" => {
                let array = self.var(words)?;
                let axis = words.next()?.parse().or_else(|_| words.error("expected an axis"))?;
                (Op::Dim { array, axis }, vec![Type::INT])
            }
            "get" => {
                let array = self.var(words)?;
                let index = self.atoms(words)?;
                let ty = array.ty.at(index.len());
                (Op::Get { array, index }, vec![ty])
            }
            "set" => {
                let array = self.var(words)?;
                let index = self.atoms(words)?;
                words.expect(":=")?;
                (Op::Set { array, index, value: self.atom(words)? }, vec![array.ty])
            }
            "extend" => {
                let (array, by) = (self.var(words)?, self.var(words)?);
                (Op::Extend { array, by }, vec![by.ty])
            }
            "fill" => {
                let dims = self.atoms(words)?;
                words.expect(":=")?;
                let value = self.atom(words)?;
                let ty = Type::array(value.ty().scalar, dims.len() as u8);
                (Op::Fill { dims, value }, vec![ty])
            }
            "array" => {
                let ty = words.ty()?;
                words.expect("of")?;
                (Op::Literal { items: self.atoms(words)?, ty }, vec![ty])
            }
            "cell" => {
                let shape = match words.ty()?.scalar {
                    Scalar::Box(shape) => shape,
                    Scalar::Real | Scalar::Int | Scalar::Bool => return words.error("expected the type of a box"),
                };
                let tag = words.number()?;
                (Op::Cell { shape, tag, fields: self.atoms(words)? }, vec![Type::boxed(shape)])
            }
            "tag" => (Op::Tag { cell: self.atom(words)? }, vec![Type::INT]),
            "unpack" => {
                let cell = self.atom(words)?;
                let tag = words.number()?;
                let shape = cell.ty().shape().and_then(|s| self.shapes.get(s.0 as usize));
                match shape.and_then(|s| s.cells.get(tag)) {
                    Some(fields) => (Op::Unpack { cell, tag }, fields.clone()),
                    None => return words.error("this is no box with such a tag"),
                }
            }
            "hole" => {
                let (cell, tag, field) = (self.var(words)?, words.number()?, words.number()?);
                (Op::Hole { cell, tag, field }, vec![Type::INT])
            }
            "plug" => (Op::Plug { hole: self.atom(words)?, value: self.atom(words)? }, Vec::new()),
            "push" => (Op::Push { values: self.atoms(words)? }, Vec::new()),
            "pop" => {
                let mut types = Vec::new();
                while words.at < words.words.len() {
                    types.push(words.ty()?);
                }
                (Op::Pop { types: types.clone() }, types)
            }
            "digits" => (Op::Digits { value: self.atom(words)? }, vec![Type::array(Scalar::Int, 1)]),
            "check" => {
                let cond = self.atom(words)?;
                let key = words.next()?;
                match Failure::ALL.into_iter().find(|f| f.key() == key) {
                    Some(failure) => (Op::Check { cond, failure }, Vec::new()),
                    None => return words.error(format!("`{key}` is no failure")),
                }
            }
            "if" => {
                let cond = self.atom(words)?;
                let replayed = words.accept("replayed");
                words.expect("{")?;
                let (then, mut rest) = self.block()?;
                let otherwise = if rest.accept("else") { self.block()?.0 } else { Block::default() };
                let types = then.results.iter().map(|a| a.ty()).collect();
                (Op::branch(cond, then, otherwise, replayed), types)
            }
            "for" => {
                let index = words.next()?;
                words.expect("<")?;
                let count = self.atom(words)?;
                let carried = self.carried(words)?;
                let index = self.bind(index, Type::INT);
                let replayed = words.accept("replayed");
                words.expect("{")?;
                let (body, _) = self.block()?;
                let types = loop_types(&body.results, carried.len());
                (Op::For(Box::new(For { index, count, carried, body, replayed })), types)
            }
            "while" => {
                let carried = self.carried(words)?;
                words.expect("{")?;
                let (body, _) = self.block()?;
                let types = loop_types(body.results.get(1..).unwrap_or_default(), carried.len());
                (Op::While(Box::new(While { carried, body })), types)
            }
            "call" => {
                let name = words.next()?;
                let Some((function, results)) = self.signatures.get(name).cloned() else {
                    return words.error(format!("no function `{name}`"));
                };
                (Op::Call { function, args: self.atoms(words)? }, results)
            }
            "open" => {
                let init = self.atom(words)?;
                (Op::Open { init }, vec![init.ty().accumulator()])
            }
            "accumulate" => {
                let acc = self.var(words)?;
                let index = self.atoms(words)?;
                words.expect("+=")?;
                (Op::Add { acc, index, value: self.atom(words)? }, Vec::new())
            }
            "product" => {
                let acc = self.var(words)?;
                let (rows, columns, inner) = (self.atom(words)?, self.atom(words)?, self.atom(words)?);
                words.expect("+=")?;
                let mut factor = || {
                    let transposed = words.accept("transposed");
                    self.var(words).map(|matrix| Factor { matrix, transposed })
                };
                let (left, right) = (factor()?, factor()?);
                (Op::Product(Box::new(Product { acc, left, right, rows, columns, inner })), Vec::new())
            }
            "freeze" => {
                let acc = self.var(words)?;
                (Op::Freeze { acc }, vec![acc.ty.frozen()])
            }
            _ => match scalar::prim(word) {
                Some(prim) => {
                    let args = self.atoms(words)?;
                    let types: Vec<Type> = args.iter().map(|a| a.ty()).collect();
                    match scalar::result(prim, &types) {
                        Some(ty) => (Op::Scalar { prim, args }, vec![ty]),
                        None => return words.error(format!("`{word}` does not take these operands")),
                    }
                }
                None => return words.error(format!("`{word}` is no operation")),
            },
        })
    }
}

/// The types that a loop binds: of its state, then arrays of what it collects.
fn loop_types(results: &[Atom], state: usize) -> Vec<Type> {
    results.iter().enumerate().map(|(i, a)| if i < state { a.ty() } else { a.ty().in_array() }).collect()
}
