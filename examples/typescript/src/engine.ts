// A small engine that refengine can examine.
//
//   node engine.js check FILE    run the conformance vectors of `refengine vectors release`; exit 1 on a difference
//   node engine.js answer FILE   print what it emits for each, a list a line (for `refengine challenge`)
//   node engine.js serve RULE    answer JSON lines on standard input (for `refengine audit process`)

import { readFileSync } from "node:fs";
import { createInterface } from "node:readline";
import { type Block, Chance, type Row, type Rule, RULES } from "./rules.js";

interface Vector extends Block {
  id: string;
  rule: string;
  p: Row[];
  uniforms: Record<string, [number, number]>;
  emitted: number[];
  path: number[];
}

/** The uniforms that a vector gives. */
class Given extends Chance {
  constructor(private readonly table: Vector["uniforms"]) {
    super();
  }
  uniform(site: string): number {
    const [n, bits] = this.table[site];
    return n / 2 ** bits;
  }
}

/** Uniforms of 53 bits from a seed (splitmix64); every decision takes the next one. */
class Drawn extends Chance {
  constructor(private state: bigint) {
    super();
  }
  uniform(): number {
    const word = (x: bigint) => BigInt.asUintN(64, x);
    this.state = word(this.state + 0x9e3779b97f4a7c15n);
    let z = this.state;
    z = word((z ^ (z >> 30n)) * 0xbf58476d1ce4e5b9n);
    z = word((z ^ (z >> 27n)) * 0x94d049bb133111ebn);
    return Number((z ^ (z >> 31n)) >> 11n) / 2 ** 53;
  }
}

function runVectors(file: string, answer: boolean): number {
  const { vectors } = JSON.parse(readFileSync(file, "utf8")) as { vectors: Vector[] };
  const unknown = new Set<string>();
  let ran = 0;
  let wrong = 0;
  for (const vector of vectors) {
    const rule = RULES.get(vector.rule);
    if (rule === undefined) {
      if (answer) throw new Error(`no rule is called ${vector.rule}`);
      unknown.add(vector.rule);
      continue;
    }
    const round = rule(vector.p, vector, new Given(vector.uniforms));
    ran += 1;
    if (answer) {
      console.log(JSON.stringify(round.tokens));
    } else if (`${round.tokens}` !== `${vector.emitted}` || `${round.path}` !== `${vector.path}`) {
      wrong += 1;
      console.log(`${vector.id}: expected [${vector.emitted}], got [${round.tokens}]`);
    }
  }
  if (answer) return 0;
  for (const name of unknown) console.log(`not implemented here: ${name}`);
  console.log(`${ran - wrong} of ${ran} vectors agree`);
  return wrong > 0 || ran === 0 ? 1 : 0;
}

async function serve(rule: Rule): Promise<number> {
  for await (const line of createInterface({ input: process.stdin })) {
    const { p, q, draft, seed } = JSON.parse(line) as { p: Row[]; q: Row[]; draft: number[]; seed: number };
    const block = { tokens: draft, parents: draft.map((_, i) => i - 1), q };
    console.log(JSON.stringify({ tokens: rule(p, block, new Drawn(BigInt(seed))).tokens }));
  }
  return 0;
}

async function main(mode: string, name: string): Promise<number> {
  const rule = RULES.get(name);
  if (mode === "check" || mode === "answer") return runVectors(name, mode === "answer");
  if (mode === "serve" && rule !== undefined) return serve(rule);
  throw new Error("usage: engine.js check FILE | answer FILE | serve RULE");
}

try {
  process.exitCode = await main(process.argv[2] ?? "", process.argv[3] ?? "");
} catch (error) {
  console.error(`engine: ${error instanceof Error ? error.message : error}`);
  process.exitCode = 2;
}
