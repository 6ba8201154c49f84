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

/** (a p - b q)+, or p where rounding leaves nothing of two rows that are equal. */
function residual(p: Row, a: number, q: Row, b: number): Row {
  const left = p.map((px, x) => Math.max(a * px - b * q[x], 0));
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

/** Siblings drawn without replacement (EAGLE-1): r / R is what is left of p, q / Q what was left of q at the draw. */
const withoutReplacement: Rule = (p, block, chance) => {
  const out: Round = { tokens: [], path: [] };
  let at = -1;
  let r = p[0];
  let refused: number[] = [];
  for (const [j, x] of block.tokens.entries()) {
    if (block.parents[j] !== at) continue;
    const q = block.q[j].map((weight, y) => (refused.includes(y) ? 0 : weight));
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
};

/** The target's argmax, ties to the lowest id, as long as it was drafted. Chains and trees; no randomness. */
const greedy: Rule = (p, block) => {
  const out: Round = { tokens: [], path: [] };
  let at = -1;
  for (;;) {
    const row = p[at + 1];
    const best = row.reduce((most, weight, x) => (weight > row[most] ? x : most), 0);
    out.tokens.push(best);
    at = block.tokens.findIndex((x, j) => block.parents[j] === at && x === best);
    if (at < 0) return out;
    out.path.push(at);
  }
};

export const RULES = new Map<string, Rule>([
  ["leviathan", leviathan],
  ["point_mass", pointMass],
  ["without_replacement", withoutReplacement],
  ["greedy", greedy],
]);
