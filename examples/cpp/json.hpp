// A small reader of JSON: objects, lists, numbers, strings without escapes beyond \" and \\, true, false, null.
#pragma once

#include <cstdlib>
#include <map>
#include <stdexcept>
#include <string>
#include <variant>
#include <vector>

namespace json {

struct Value;
using List = std::vector<Value>;
using Object = std::map<std::string, Value>;

struct Value {
  std::variant<std::nullptr_t, bool, double, std::string, List, Object> held;

  double number() const { return std::get<double>(held); }
  const std::string& text() const { return std::get<std::string>(held); }
  const List& list() const { return std::get<List>(held); }
  const Object& object() const { return std::get<Object>(held); }
  const Value& operator[](const std::string& key) const { return object().at(key); }
  bool has(const std::string& key) const { return object().count(key) > 0; }

  // A list of numbers, as a vector of T.
  template <typename T>
  std::vector<T> numbers() const {
    std::vector<T> out;
    for (const Value& item : list()) out.push_back(static_cast<T>(item.number()));
    return out;
  }
};

class Reader {
 public:
  explicit Reader(const std::string& text) : at_(text.c_str()), end_(at_ + text.size()) {}

  Value whole() {
    Value value = next();
    if (peek() != '\0') fail("the end of the text");
    return value;
  }

 private:
  const char *at_, *end_;

  [[noreturn]] void fail(const std::string& wanted) const {
    throw std::runtime_error("JSON: wanted " + wanted + " at '" + std::string(at_, std::min<long>(20, end_ - at_)) + "'");
  }
  char peek() {
    while (*at_ == ' ' || *at_ == '\n' || *at_ == '\t' || *at_ == '\r') ++at_;
    return *at_;
  }
  bool take(char c) { return peek() == c ? (++at_, true) : false; }
  void want(char c) {
    if (!take(c)) fail(std::string(1, c));
  }
  bool word(const std::string& expected) {
    if (std::string(at_, std::min<long>(expected.size(), end_ - at_)) != expected) return false;
    at_ += expected.size();
    return true;
  }

  Value next() {
    switch (peek()) {
      case '{': return {object()};
      case '[': return {list()};
      case '"': return {string()};
    }
    if (word("true")) return {true};
    if (word("false")) return {false};
    if (word("null")) return {nullptr};
    char* after;
    double number = std::strtod(at_, &after);
    if (after == at_) fail("a value");
    at_ = after;
    return {number};
  }
  List list() {
    List out;
    want('[');
    if (take(']')) return out;
    do out.push_back(next());
    while (take(','));
    want(']');
    return out;
  }
  Object object() {
    Object out;
    want('{');
    if (take('}')) return out;
    do {
      peek();
      std::string key = string();
      want(':');
      out[key] = next();
    } while (take(','));
    want('}');
    return out;
  }
  std::string string() {
    std::string out;
    want('"');
    while (at_ < end_ && *at_ != '"') {
      if (*at_ == '\\') ++at_;
      out += *at_++;
    }
    want('"');
    return out;
  }
};

inline Value parse(const std::string& text) { return Reader(text).whole(); }

}  // namespace json
