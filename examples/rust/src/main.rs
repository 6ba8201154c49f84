//! A small engine that refengine can examine.
//!
//!   engine check FILE    run the conformance vectors of `refengine vectors release`; exit 1 on a difference
//!   engine answer FILE   print what it emits for each, a list a line (for `refengine challenge`)
//!   engine serve RULE    answer JSON lines on standard input (for `refengine audit process`)

mod json;
mod rules;

use json::{parse, Json};
use rules::{rule, Block, Chance, Rule};
use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufRead, Write};

/// The uniforms that a vector gives.
struct Given(BTreeMap<String, f64>);

impl Given {
    fn of(uniforms: &Json) -> Result<Given, String> {
        let mut table = BTreeMap::new();
        for (name, u) in uniforms.object()? {
            let parts = u.numbers()?;
            table.insert(name.clone(), parts[0] / 2f64.powf(parts[1]));
        }
        Ok(Given(table))
    }
}

impl Chance for Given {
    fn uniform(&mut self, site: &str) -> f64 {
        self.0[site]
    }
}

/// Uniforms of 53 bits from a seed (splitmix64); every decision takes the next one.
struct Drawn(u64);

impl Chance for Drawn {
    fn uniform(&mut self, _: &str) -> f64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) >> 11) as f64 / (1u64 << 53) as f64
    }
}

fn run_vectors(file: &str, answer: bool) -> Result<i32, String> {
    let text = std::fs::read_to_string(file).map_err(|error| format!("cannot read {file}: {error}"))?;
    let (mut ran, mut wrong, mut unknown) = (0, 0, BTreeSet::new());
    for vector in parse(&text)?.field("vectors")?.list()? {
        let name = vector.field("rule")?.text()?;
        let Some(judge) = rule(name) else {
            if answer {
                return Err(format!("no rule is called {name}"));
            }
            unknown.insert(name.to_string());
            continue;
        };
        let block = Block {
            tokens: vector.field("tokens")?.integers()?,
            parents: vector.field("parents")?.integers()?,
            q: vector.field("q")?.rows()?,
        };
        let round = judge(&vector.field("p")?.rows()?, &block, &mut Given::of(vector.field("uniforms")?)?);
        ran += 1;
        if answer {
            println!("{:?}", round.tokens);
            continue;
        }
        let expected = vector.field("emitted")?.integers()?;
        if round.tokens != expected || round.path != vector.field("path")?.integers()? {
            wrong += 1;
            println!("{}: expected {expected:?}, got {:?}", vector.field("id")?.text()?, round.tokens);
        }
    }
    if answer {
        return Ok(0);
    }
    for name in unknown {
        println!("not implemented here: {name}");
    }
    println!("{} of {ran} vectors agree", ran - wrong);
    Ok(i32::from(wrong > 0 || ran == 0))
}

fn serve(judge: Rule) -> Result<i32, String> {
    for line in std::io::stdin().lock().lines() {
        let asked = parse(&line.map_err(|error| error.to_string())?)?;
        let tokens = asked.field("draft")?.integers()?;
        let parents = (0..tokens.len() as i64).map(|i| i - 1).collect();
        let block = Block { tokens, parents, q: asked.field("q")?.rows()? };
        let mut chance = Drawn(asked.field("seed")?.number()? as u64);
        println!("{{\"tokens\": {:?}}}", judge(&asked.field("p")?.rows()?, &block, &mut chance).tokens);
        std::io::stdout().flush().map_err(|error| error.to_string())?;
    }
    Ok(0)
}

fn main() {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let ended = match words.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["check", file] => run_vectors(file, false),
        ["answer", file] => run_vectors(file, true),
        ["serve", name] if rule(name).is_some() => serve(rule(name).unwrap()),
        _ => Err("usage: engine check FILE | answer FILE | serve RULE".into()),
    };
    std::process::exit(ended.unwrap_or_else(|why| {
        eprintln!("engine: {why}");
        2
    }));
}
