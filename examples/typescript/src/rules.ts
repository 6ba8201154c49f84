// Verification rules of speculative decoding on weights that need not add up to one: totals are carried, never
// divided by, so on the conformance vectors every product and comparison is exact in double precision.

export type Row = number[];

/** Where every random decision comes from: a uniform in [0, 1) by the name of the decision. */
export abstract class Chance {
  abstract uniform(site: string): number;

  /** True with probability min(1, num / den). Strict: with <= a token of probability zero passes at uniform 0. */
  accept(num: number, den: number, site: string): boolean {
    return this.uniform(site) * den < num;
  }

  /** The first token whose cumulative weight is above u * total. */
  choose(weights: Row, site: string): number {
    const bar = this.uniform(site) * total(weights);
    let below = 0;
    for (let x = 0; x < weights.length; x++) {
      below += weights[x];
      if (bar < below) return x;
    }
    return weights.findLastIndex((weight) => weight > 0); // u * total was rounded up to the total
  }
}

/** Candidates: parents before children, -1 the root; q[j] is the row that tokens[j] was drawn from. */
export interface Block {
  tokens: number[];
  parents: number[];
  q: Row[];
}

/** The emitted tokens, the last of which was not drafted, and the accepted candidates. */
export interface Round {
  tokens: number[];
  path: number[];
}

export type Rule = (p: Row[], block: Block, chance: Chance) => Round;

function total(row: Row): number {
  let sum = 0;
  for (const weight of row) sum += weight;
  return sum;
}

/** (a p - b q)+. */
function excess(p: Row, a: number, q: Row, b: number): Row {
  return p.map((px, x) => Math.max(a * px - b * q[x], 0));
}

/** The same, or p where rounding leaves nothing of two rows that are equal. */
function residual(p: Row, a: number, q: Row, b: number): Row {
  const left = excess(p, a, q, b);
  return total(left) > 0 ? left : p;
}

/** Leviathan et al. 2023, Algorithm 1. Chains. */
const leviathan: Rule = (p, { tokens, q }, chance) => {
  for (const [i, x] of tokens.entries()) {
    if (!chance.accept(p[i][x], q[i][x], `accept ${i}`)) {
      const correction = chance.choose(residual(p[i], 1, q[i], 1), `emit ${i}`);
      return { tokens: [...tokens.slice(0, i), correction], path: [...Array(i).keys()] };
    }
  }
  const gamma = tokens.length;
  return { tokens: [...tokens, chance.choose(p[gamma], `emit ${gamma}`)], path: [...Array(gamma).keys()] };
};

/** Candidates that were not drawn: keep x with probability p(x), else take x out of p. Chains and trees. */
const pointMass: Rule = (p, block, chance) => {
  const out: Round = { tokens: [], path: [] };
  let at = -1;
  let left = [...p[0]];
  for (const [j, x] of block.tokens.entries()) {
    if (block.parents[j] !== at) continue;
    if (chance.accept(left[x], total(left), `accept ${out.path.length} ${j}`)) {
      out.tokens.push(x);
      out.path.push((at = j));
      left = [...p[j + 1]];
    } else {
      left[x] = 0;
    }
  }
  out.tokens.push(chance.choose(left, `emit ${out.path.length}`));
  return out;
};

/**
 * Block verification (Sun et al. 2024, Algorithm 2): the longest prefix whose coin falls. Chains of rows of one total.
 * The weight of prefix i is num / den of weights[i] = min(1, weight of i - 1 times p(x) / q(x)).
 */
const blockVerification: Rule = (p, { tokens, q }, chance) => {
  const gamma = tokens.length;
  const weights = [[1, 1]];
  for (const [i, x] of tokens.entries()) {
    const [num, den] = [weights[i][0] * p[i][x], weights[i][1] * q[i][x]];
    weights.push(num < den ? [num, den] : [num > 0 ? 1 : 0, 1]);
  }
  let kept = gamma;
  let left = p[gamma];
  let judged = gamma === 0 || chance.accept(weights[gamma][0], weights[gamma][1], `accept ${gamma - 1}`);
  while (!judged) {
    kept -= 1;
    const [num, den] = weights[kept];
    left = excess(p[kept], num, q[kept], den);
    const [mass, lost] = [total(left), total(p[kept]) * (den - num)];
    judged = kept === 0 || chance.accept(mass, mass + lost, `accept ${kept - 1}`);
  }
  const last = chance.choose(total(left) > 0 ? left : p[kept], `emit ${kept}`);
  return { tokens: [...tokens.slice(0, kept), last], path: [...Array(kept).keys()] };
};

const withoutReplacement: Rule = (p, block, chance) => drawnSiblings(p, block, chance, false);

const iidCandidates: Rule = (p, block, chance) => drawnSiblings(p, block, chance, true);

/**
 * Siblings that were drawn: r / R is what is left of p. `replaced`: each from q itself (SpecInfer, Miao et al. 2024);
 * otherwise (EAGLE-1) from q without those before it, so that q / Q is what was left of q at the draw.
 */
function drawnSiblings(p: Row[], block: Block, chance: Chance, replaced: boolean): Round {
  const out: Round = { tokens: [], path: [] };
  let at = -1;
  let r = p[0];
  let refused: number[] = [];
  for (const [j, x] of block.tokens.entries()) {
    if (block.parents[j] !== at) continue;
    const q = block.q[j].map((weight, y) => (!replaced && refused.includes(y) ? 0 : weight));
    const [Q, R] = [total(q), total(r)];
    if (chance.accept(r[x] * Q, q[x] * R, `accept ${out.path.length} ${j}`)) {
      out.tokens.push(x);
      out.path.push((at = j));
      r = p[j + 1];
      refused = [];
    } else {
      r = residual(r, Q, q, R);
      refused.push(x);
    }
  }
  out.tokens.push(chance.choose(r, `emit ${out.path.length}`));
  return out;
}

/** The candidate after `at` that is this token, or -1. */
function hit(block: Block, at: number, token: number): number {
  return block.tokens.findIndex((x, j) => block.parents[j] === at && x === token);
}

/** The target's own draw, as long as it was drafted (DFlash). Chains and trees. */
const agreement: Rule = (p, block, chance) => {
  const out: Round = { tokens: [], path: [] };
  let at = -1;
  for (;;) {
    const drawn = chance.choose(p[at + 1], `emit ${out.path.length}`);
    out.tokens.push(drawn);
    at = hit(block, at, drawn);
    if (at < 0) return out;
    out.path.push(at);
  }
};

/** The target's argmax, ties to the lowest id, as long as it was drafted. Chains and trees; no randomness. */
const greedy: Rule = (p, block) => {
  const out: Round = { tokens: [], path: [] };
  let at = -1;
  for (;;) {
    const row = p[at + 1];
    const best = row.reduce((most, weight, x) => (weight > row[most] ? x : most), 0);
    out.tokens.push(best);
    at = hit(block, at, best);
    if (at < 0) return out;
    out.path.push(at);
  }
};

export const RULES = new Map<string, Rule>([
  ["leviathan", leviathan],
  ["block", blockVerification],
  ["iid_candidates", iidCandidates],
  ["agreement", agreement],
  ["point_mass", pointMass],
  ["without_replacement", withoutReplacement],
  ["greedy", greedy],
]);
