//! Verification rules of speculative decoding on weights that need not add up to one: totals are carried, never
//! divided by, so on the conformance vectors every product and comparison is exact in double precision.

pub type Row = Vec<f64>;

/// Where every random decision comes from: a uniform in [0, 1) by the name of the decision.
pub trait Chance {
    fn uniform(&mut self, site: &str) -> f64;

    /// True with probability min(1, num / den). Strict: with <= a token of probability zero passes at uniform 0.
    fn accept(&mut self, num: f64, den: f64, site: &str) -> bool {
        self.uniform(site) * den < num
    }

    /// The first token whose cumulative weight is above u * total.
    fn choose(&mut self, weights: &Row, site: &str) -> i64 {
        let bar = self.uniform(site) * weights.iter().sum::<f64>();
        let mut below = 0.0;
        for (x, weight) in weights.iter().enumerate() {
            below += weight;
            if bar < below {
                return x as i64;
            }
        }
        // u * total was rounded up to the total
        weights.iter().rposition(|&weight| weight > 0.0).unwrap_or(0) as i64
    }
}

/// Candidates: parents before children, -1 the root; q[j] is the row that tokens[j] was drawn from.
pub struct Block {
    pub tokens: Vec<i64>,
    pub parents: Vec<i64>,
    pub q: Vec<Row>,
}

/// The emitted tokens, the last of which was not drafted, and the accepted candidates.
#[derive(Default)]
pub struct Round {
    pub tokens: Vec<i64>,
    pub path: Vec<i64>,
}

pub type Rule = fn(&[Row], &Block, &mut dyn Chance) -> Round;

pub fn rule(name: &str) -> Option<Rule> {
    match name {
        "leviathan" => Some(leviathan),
        "block" => Some(block_verification),
        "iid_candidates" => Some(iid_candidates),
        "agreement" => Some(agreement),
        "point_mass" => Some(point_mass),
        "without_replacement" => Some(without_replacement),
        "greedy" => Some(greedy),
        _ => None,
    }
}

fn total(row: &Row) -> f64 {
    row.iter().sum()
}

/// (a p - b q)+.
fn excess(p: &Row, a: f64, q: &Row, b: f64) -> Row {
    p.iter().zip(q).map(|(px, qx)| (a * px - b * qx).max(0.0)).collect()
}

/// The same, or p where rounding leaves nothing of two rows that are equal.
fn residual(p: &Row, a: f64, q: &Row, b: f64) -> Row {
    let left = excess(p, a, q, b);
    if total(&left) > 0.0 { left } else { p.clone() }
}

/// Leviathan et al. 2023, Algorithm 1. Chains.
fn leviathan(p: &[Row], block: &Block, chance: &mut dyn Chance) -> Round {
    let mut out = Round::default();
    for (i, &x) in block.tokens.iter().enumerate() {
        let (target, q) = (&p[i], &block.q[i]);
        if !chance.accept(target[x as usize], q[x as usize], &format!("accept {i}")) {
            out.tokens.push(chance.choose(&residual(target, 1.0, q, 1.0), &format!("emit {i}")));
            return out;
        }
        out.tokens.push(x);
        out.path.push(i as i64);
    }
    let gamma = block.tokens.len();
    out.tokens.push(chance.choose(&p[gamma], &format!("emit {gamma}")));
    out
}

/// Candidates that were not drawn: keep x with probability p(x), else take x out of p. Chains and trees.
fn point_mass(p: &[Row], block: &Block, chance: &mut dyn Chance) -> Round {
    let mut out = Round::default();
    let (mut at, mut left) = (-1, p[0].clone());
    for (j, &x) in block.tokens.iter().enumerate() {
        if block.parents[j] != at {
            continue;
        }
        if chance.accept(left[x as usize], total(&left), &format!("accept {} {j}", out.path.len())) {
            at = j as i64;
            out.tokens.push(x);
            out.path.push(at);
            left = p[j + 1].clone();
        } else {
            left[x as usize] = 0.0;
        }
    }
    out.tokens.push(chance.choose(&left, &format!("emit {}", out.path.len())));
    out
}

/// Block verification (Sun et al. 2024, Algorithm 2): the longest prefix whose coin falls. Chains of rows of one total.
/// The weight of prefix i is num / den of weights[i] = min(1, weight of i - 1 times p(x) / q(x)).
fn block_verification(p: &[Row], block: &Block, chance: &mut dyn Chance) -> Round {
    let gamma = block.tokens.len();
    let mut weights = vec![(1.0, 1.0)];
    for (i, &x) in block.tokens.iter().enumerate() {
        let (num, den) = (weights[i].0 * p[i][x as usize], weights[i].1 * block.q[i][x as usize]);
        weights.push(if num < den { (num, den) } else { (f64::from(num > 0.0), 1.0) });
    }
    let (mut kept, mut left) = (gamma, p[gamma].clone());
    let (num, den) = weights[gamma];
    let mut judged = gamma == 0 || chance.accept(num, den, &format!("accept {}", gamma - 1));
    while !judged {
        kept -= 1;
        let (num, den) = weights[kept];
        left = excess(&p[kept], num, &block.q[kept], den);
        let (mass, lost) = (total(&left), total(&p[kept]) * (den - num));
        judged = kept == 0 || chance.accept(mass, mass + lost, &format!("accept {}", kept - 1));
    }
    let last = if total(&left) > 0.0 { &left } else { &p[kept] };
    let mut tokens = block.tokens[..kept].to_vec();
    tokens.push(chance.choose(last, &format!("emit {kept}")));
    Round { tokens, path: (0..kept as i64).collect() }
}

fn without_replacement(p: &[Row], block: &Block, chance: &mut dyn Chance) -> Round {
    drawn_siblings(p, block, chance, false)
}

fn iid_candidates(p: &[Row], block: &Block, chance: &mut dyn Chance) -> Round {
    drawn_siblings(p, block, chance, true)
}

/// Siblings that were drawn: r / R is what is left of p. `replaced`: each from q itself (SpecInfer, Miao et al. 2024);
/// otherwise (EAGLE-1) from q without those before it, so that q / Q is what was left of q at the draw.
fn drawn_siblings(p: &[Row], block: &Block, chance: &mut dyn Chance, replaced: bool) -> Round {
    let mut out = Round::default();
    let (mut at, mut r) = (-1, p[0].clone());
    let mut refused: Vec<i64> = Vec::new();
    for (j, &x) in block.tokens.iter().enumerate() {
        if block.parents[j] != at {
            continue;
        }
        let mut q = block.q[j].clone();
        if !replaced {
            for &earlier in &refused {
                q[earlier as usize] = 0.0;
            }
        }
        let (q_total, r_total) = (total(&q), total(&r));
        let (num, den) = (r[x as usize] * q_total, q[x as usize] * r_total);
        if chance.accept(num, den, &format!("accept {} {j}", out.path.len())) {
            at = j as i64;
            out.tokens.push(x);
            out.path.push(at);
            r = p[j + 1].clone();
            refused.clear();
        } else {
            r = residual(&r, q_total, &q, r_total);
            refused.push(x);
        }
    }
    out.tokens.push(chance.choose(&r, &format!("emit {}", out.path.len())));
    out
}

/// The candidate after `at` that is this token.
fn hit(block: &Block, at: i64, token: i64) -> Option<i64> {
    (0..block.tokens.len()).find(|&j| block.parents[j] == at && block.tokens[j] == token).map(|j| j as i64)
}

/// The target's own draw, as long as it was drafted (DFlash). Chains and trees.
fn agreement(p: &[Row], block: &Block, chance: &mut dyn Chance) -> Round {
    let mut out = Round::default();
    let mut at = -1;
    loop {
        let drawn = chance.choose(&p[(at + 1) as usize], &format!("emit {}", out.path.len()));
        out.tokens.push(drawn);
        match hit(block, at, drawn) {
            None => return out,
            Some(j) => at = j,
        }
        out.path.push(at);
    }
}

/// The target's argmax, ties to the lowest id, as long as it was drafted. Chains and trees; no randomness.
fn greedy(p: &[Row], block: &Block, _: &mut dyn Chance) -> Round {
    let mut out = Round::default();
    let mut at = -1;
    loop {
        let row = &p[(at + 1) as usize];
        let best = (1..row.len()).fold(0, |best, x| if row[x] > row[best] { x } else { best }) as i64;
        out.tokens.push(best);
        match hit(block, at, best) {
            None => return out,
            Some(j) => at = j,
        }
        out.path.push(at);
    }
}
