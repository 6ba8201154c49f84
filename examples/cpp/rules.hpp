// Verification rules of speculative decoding on weights that need not add up to one: totals are carried, never
// divided by, so on the conformance vectors every product and comparison is exact in double precision.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <numeric>
#include <string>
#include <vector>

using Row = std::vector<double>;

// Where every random decision comes from: a uniform in [0, 1) by the name of the decision.
struct Chance {
  virtual ~Chance() = default;
  virtual double uniform(const std::string& site) = 0;

  // True with probability min(1, num / den). Strict: with <= a token of probability zero passes at uniform 0.
  bool accept(double num, double den, const std::string& site) { return uniform(site) * den < num; }

  // The first token whose cumulative weight is above u * total.
  int choose(const Row& weights, const std::string& site) {
    double bar = uniform(site) * std::accumulate(weights.begin(), weights.end(), 0.0), below = 0;
    int last = 0;
    for (int x = 0; x < static_cast<int>(weights.size()); ++x) {
      below += weights[x];
      if (weights[x] > 0) last = x;
      if (bar < below) return x;
    }
    return last;  // u * total was rounded up to the total
  }
};

// Candidates: parents before children, -1 the root; q[j] is the row that tokens[j] was drawn from.
struct Block {
  std::vector<int> tokens, parents;
  std::vector<Row> q;
};

// The emitted tokens, the last of which was not drafted, and the accepted candidates.
struct Round {
  std::vector<int> tokens, path;
};

inline double total(const Row& row) { return std::accumulate(row.begin(), row.end(), 0.0); }

// (a p - b q)+.
inline Row excess(const Row& p, double a, const Row& q, double b) {
  Row left(p.size());
  for (size_t x = 0; x < p.size(); ++x) left[x] = std::max(a * p[x] - b * q[x], 0.0);
  return left;
}

// The same, or p where rounding leaves nothing of two rows that are equal.
inline Row residual(const Row& p, double a, const Row& q, double b) {
  Row left = excess(p, a, q, b);
  return total(left) > 0 ? left : p;
}

inline std::string site(const char* kind, size_t depth) { return std::string(kind) + " " + std::to_string(depth); }
inline std::string site(const char* kind, size_t depth, size_t node) {
  return site(kind, depth) + " " + std::to_string(node);
}

// Leviathan et al. 2023, Algorithm 1. Chains.
inline Round leviathan(const std::vector<Row>& p, const Block& block, Chance& chance) {
  Round out;
  size_t gamma = block.tokens.size();
  for (size_t i = 0; i < gamma; ++i) {
    int x = block.tokens[i];
    const Row& q = block.q[i];
    if (!chance.accept(p[i][x], q[x], site("accept", i))) {
      out.tokens.push_back(chance.choose(residual(p[i], 1, q, 1), site("emit", i)));
      return out;
    }
    out.tokens.push_back(x);
    out.path.push_back(static_cast<int>(i));
  }
  out.tokens.push_back(chance.choose(p[gamma], site("emit", gamma)));
  return out;
}

// Candidates that were not drawn: keep x with probability p(x), else take x out of p. Chains and trees.
inline Round point_mass(const std::vector<Row>& p, const Block& block, Chance& chance) {
  Round out;
  int at = -1;
  Row left = p[0];
  for (size_t j = 0; j < block.tokens.size(); ++j) {
    int x = block.tokens[j];
    if (block.parents[j] != at) continue;
    if (chance.accept(left[x], total(left), site("accept", out.path.size(), j))) {
      out.tokens.push_back(x);
      out.path.push_back(at = static_cast<int>(j));
      left = p[j + 1];
    } else {
      left[x] = 0;
    }
  }
  out.tokens.push_back(chance.choose(left, site("emit", out.path.size())));
  return out;
}

// Block verification (Sun et al. 2024, Algorithm 2): the longest prefix whose coin falls. Chains of rows of one total.
// The weight of prefix i is num[i] / den[i] = min(1, weight of i - 1 times p(x) / q(x)).
inline Round block_verification(const std::vector<Row>& p, const Block& block, Chance& chance) {
  size_t gamma = block.tokens.size(), kept = gamma;
  std::vector<double> num(gamma + 1, 1), den(gamma + 1, 1);
  for (size_t i = 0; i < gamma; ++i) {
    double n = num[i] * p[i][block.tokens[i]], d = den[i] * block.q[i][block.tokens[i]];
    num[i + 1] = n < d ? n : n > 0;
    den[i + 1] = n < d ? d : 1;
  }
  Row left = p[gamma];
  bool whole = gamma == 0 || chance.accept(num[gamma], den[gamma], site("accept", gamma - 1));
  while (!whole) {
    --kept;
    left = excess(p[kept], num[kept], block.q[kept], den[kept]);
    double mass = total(left), lost = total(p[kept]) * (den[kept] - num[kept]);
    if (kept == 0 || chance.accept(mass, mass + lost, site("accept", kept - 1))) break;
  }
  Round out;
  out.tokens.assign(block.tokens.begin(), block.tokens.begin() + kept);
  out.tokens.push_back(chance.choose(total(left) > 0 ? left : p[kept], site("emit", kept)));
  out.path.resize(kept);
  std::iota(out.path.begin(), out.path.end(), 0);
  return out;
}

// Siblings that were drawn: r / R is what is left of p. `replaced`: each from q itself (SpecInfer, Miao et al. 2024);
// otherwise (EAGLE-1) from q without those before it, so that q / Q is what was left of q at the draw.
inline Round drawn_siblings(const std::vector<Row>& p, const Block& block, Chance& chance, bool replaced) {
  Round out;
  int at = -1;
  Row r = p[0];
  std::vector<int> refused;
  for (size_t j = 0; j < block.tokens.size(); ++j) {
    int x = block.tokens[j];
    if (block.parents[j] != at) continue;
    Row q = block.q[j];
    if (!replaced) {
      for (int earlier : refused) q[earlier] = 0;
    }
    double Q = total(q), R = total(r);
    if (chance.accept(r[x] * Q, q[x] * R, site("accept", out.path.size(), j))) {
      out.tokens.push_back(x);
      out.path.push_back(at = static_cast<int>(j));
      r = p[j + 1];
      refused.clear();
    } else {
      r = residual(r, Q, q, R);
      refused.push_back(x);
    }
  }
  out.tokens.push_back(chance.choose(r, site("emit", out.path.size())));
  return out;
}

inline Round without_replacement(const std::vector<Row>& p, const Block& block, Chance& chance) {
  return drawn_siblings(p, block, chance, false);
}

inline Round iid_candidates(const std::vector<Row>& p, const Block& block, Chance& chance) {
  return drawn_siblings(p, block, chance, true);
}

// The candidate after `at` that is this token, or -1.
inline int hit(const Block& block, int at, int token) {
  for (size_t j = 0; j < block.tokens.size(); ++j) {
    if (block.parents[j] == at && block.tokens[j] == token) return static_cast<int>(j);
  }
  return -1;
}

// The target's own draw, as long as it was drafted (DFlash). Chains and trees.
inline Round agreement(const std::vector<Row>& p, const Block& block, Chance& chance) {
  Round out;
  int at = -1;
  for (;;) {
    out.tokens.push_back(chance.choose(p[at + 1], site("emit", out.path.size())));
    at = hit(block, at, out.tokens.back());
    if (at < 0) return out;
    out.path.push_back(at);
  }
}

// The target's argmax, ties to the lowest id, as long as it was drafted. Chains and trees; no randomness.
inline Round greedy(const std::vector<Row>& p, const Block& block, Chance&) {
  Round out;
  int at = -1;
  for (;;) {
    const Row& row = p[at + 1];
    int best = static_cast<int>(std::max_element(row.begin(), row.end()) - row.begin());
    out.tokens.push_back(best);
    at = hit(block, at, best);
    if (at < 0) return out;
    out.path.push_back(at);
  }
}

using Rule = Round (*)(const std::vector<Row>&, const Block&, Chance&);
inline const std::map<std::string, Rule> RULES = {{"leviathan", leviathan},
                                                  {"block", block_verification},
                                                  {"iid_candidates", iid_candidates},
                                                  {"agreement", agreement},
                                                  {"point_mass", point_mass},
                                                  {"without_replacement", without_replacement},
                                                  {"greedy", greedy}};
