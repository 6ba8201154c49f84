// A small engine that refengine can examine.
//
//   engine check FILE    run the conformance vectors of `refengine vectors release`; exit 1 on a difference
//   engine answer FILE   print what it emits for each, a list a line (for `refengine challenge`)
//   engine serve RULE    answer JSON lines on standard input (for `refengine audit process`)

#include <cmath>
#include <fstream>
#include <iostream>
#include <set>
#include <sstream>

#include "json.hpp"
#include "rules.hpp"

// The uniforms that a vector gives.
struct Given : Chance {
  std::map<std::string, double> table;
  explicit Given(const json::Value& uniforms) {
    for (const auto& [name, u] : uniforms.object()) {
      table[name] = std::ldexp(u.list()[0].number(), -static_cast<int>(u.list()[1].number()));
    }
  }
  double uniform(const std::string& site) override { return table.at(site); }
};

// Uniforms of 53 bits from a seed (splitmix64); every decision takes the next one.
struct Drawn : Chance {
  uint64_t state;
  explicit Drawn(uint64_t seed) : state(seed) {}
  double uniform(const std::string&) override {
    uint64_t z = (state += 0x9e3779b97f4a7c15);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return std::ldexp(double((z ^ (z >> 31)) >> 11), -53);
  }
};

std::vector<Row> rows(const json::Value& table) {
  std::vector<Row> out;
  for (const json::Value& row : table.list()) out.push_back(row.numbers<double>());
  return out;
}

std::string shown(const std::vector<int>& tokens) {
  std::string out = "[";
  for (size_t i = 0; i < tokens.size(); ++i) out += (i ? ", " : "") + std::to_string(tokens[i]);
  return out + "]";
}

int run_vectors(const std::string& file, bool answer) {
  std::ifstream stream(file);
  if (!stream) throw std::runtime_error("cannot read " + file);
  std::stringstream text;
  text << stream.rdbuf();
  const json::Value release = json::parse(text.str());
  int ran = 0, wrong = 0;
  std::set<std::string> unknown;
  for (const json::Value& vector : release["vectors"].list()) {
    auto rule = RULES.find(vector["rule"].text());
    if (rule == RULES.end()) {
      if (answer) throw std::runtime_error("no rule is called " + vector["rule"].text());
      unknown.insert(vector["rule"].text());
      continue;
    }
    Block block{vector["tokens"].numbers<int>(), vector["parents"].numbers<int>(), rows(vector["q"])};
    Given chance(vector["uniforms"]);
    Round round = rule->second(rows(vector["p"]), block, chance);
    ++ran;
    if (answer) {
      std::cout << shown(round.tokens) << "\n";
    } else if (round.tokens != vector["emitted"].numbers<int>() || round.path != vector["path"].numbers<int>()) {
      ++wrong;
      std::cout << vector["id"].text() << ": expected " << shown(vector["emitted"].numbers<int>()) << ", got "
                << shown(round.tokens) << "\n";
    }
  }
  if (answer) return 0;
  for (const std::string& name : unknown) std::cout << "not implemented here: " << name << "\n";
  std::cout << ran - wrong << " of " << ran << " vectors agree\n";
  return wrong || !ran ? 1 : 0;
}

int serve(const std::string& name) {
  Rule rule = RULES.at(name);
  std::string line;
  while (std::getline(std::cin, line)) {
    json::Value asked = json::parse(line);
    Block block{asked["draft"].numbers<int>(), {}, rows(asked["q"])};
    for (int i = 0; i < static_cast<int>(block.tokens.size()); ++i) block.parents.push_back(i - 1);
    Drawn chance(static_cast<uint64_t>(asked["seed"].number()));
    std::cout << "{\"tokens\": " << shown(rule(rows(asked["p"]), block, chance).tokens) << "}" << std::endl;
  }
  return 0;
}

int main(int count, char** words) {
  std::string mode = count == 3 ? words[1] : "";
  try {
    if (mode == "check" || mode == "answer") return run_vectors(words[2], mode == "answer");
    if (mode == "serve" && RULES.count(words[2])) return serve(words[2]);
  } catch (const std::exception& error) {
    std::cerr << "engine: " << error.what() << "\n";
    return 2;
  }
  std::cerr << "usage: engine check FILE | answer FILE | serve RULE\n";
  return 2;
}
