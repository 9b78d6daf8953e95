// One description of what a record holds, visited by whoever writes, reads or documents it.
//
// Settings have core/schema.h: bounds, units and choices that a person writes. Records are written
// by this program and read back years later: they have values that are not known (null), lists of
// lists and names that only the run knows. A component owns a plain struct and one function
// `visit(RecordVisitor&, T&)` that names its members; a struct that is not written as an object has
// `visit_value` instead. Writing JSON, reading it with checks (core/described_json.h) and
// docs/record_reference.md come from that function.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <typeinfo>
#include <utility>
#include <vector>

namespace tutti {

// When a member of an object is there.
enum class Presence {
  kNeeded,     // always; a file without it is damaged
  kMayMiss,    // always written; a file of an older version may lack it or have null
  kWhenKnown,  // only when there is something to say
};

class RecordVisitor {
 public:
  using Visit = std::function<void()>;

  virtual ~RecordVisitor() = default;

  // Whether values are assigned. A description that converts a value stores it only then.
  virtual bool reads() const = 0;

  virtual void value(bool& value) = 0;
  virtual void value(int64_t& value) = 0;
  virtual void value(uint64_t& value) = 0;
  virtual void value(double& value) = 0;
  virtual void value(std::string& value) = 0;
  virtual void value(nlohmann::json& value) = 0;  // of whatever type
  // A number that is null where it is not finite.
  virtual void number_or_null(double& value) = 0;
  // Null, or what `inside` visits after set(true).
  virtual void nullable(bool known, const std::function<void(bool)>& set, const Visit& inside) = 0;
  // The members that `inside` visits. `type` tells the documentation what it has described already.
  virtual void object(const std::type_info& type, const Visit& inside) = 0;
  virtual void member(const char* key, Presence presence, bool empty, const char* help,
                      const Visit& inside) = 0;
  // A list of any length. A reader calls `resize` before it visits the elements.
  virtual void list(size_t size, const std::function<void(size_t)>& resize,
                    const std::function<void(size_t)>& element) = 0;
  // An object whose keys are not known in advance. `entry` makes the value of a key that is new.
  virtual void entries(const std::vector<std::string>& keys,
                       const std::function<void(const std::string&)>& entry) = 0;
  // A list of `length` values, whose meaning `shape` tells: "[from rank, to rank, bytes]".
  virtual void row(const char* shape, size_t length, const Visit& inside) = 0;
  virtual void element(const Visit& inside) = 0;
  // States what holds between values. A reader refuses a file where it does not; `place` is below
  // the value at hand, or empty, and `problem` is what is said of it.
  virtual void require(bool holds, const std::string& place, const std::string& problem) = 0;

  // Names a member of the object at hand.
  template <class T>
  void field(const char* key, T& value, const char* help);
  template <class T>
  void field(const char* key, T& value, const char* help, Presence presence);
  // Names the next value of the row at hand.
  template <class T>
  void item(T& value);
};

template <class T>
struct IsOptional : std::false_type {};
template <class T>
struct IsOptional<std::optional<T>> : std::true_type {};
template <class T>
struct IsVector : std::false_type {};
template <class T>
struct IsVector<std::vector<T>> : std::true_type {};
template <class T>
struct IsMap : std::false_type {};
template <class T>
struct IsMap<std::map<std::string, T>> : std::true_type {};
template <class T>
struct IsPair : std::false_type {};
template <class A, class B>
struct IsPair<std::pair<A, B>> : std::true_type {};

// Visits an element of a list or of a map: numbers in them may be unknown.
template <class T>
void describe_element(RecordVisitor& visitor, T& value);

// Visits a value of any type that a description can be made of.
template <class T>
void describe(RecordVisitor& visitor, T& value) {
  if constexpr (requires { visitor.value(value); }) {
    visitor.value(value);
  } else if constexpr (std::is_integral_v<T>) {
    auto wide = static_cast<int64_t>(value);
    visitor.value(wide);
    if (visitor.reads()) {
      value = static_cast<T>(wide);
      visitor.require(static_cast<int64_t>(value) == wide, "", "is a number that is too large");
    }
  } else if constexpr (IsOptional<T>::value) {
    visitor.nullable(
        value.has_value(),
        [&](bool known) {
          value.reset();
          if (known) value.emplace();
        },
        [&] { describe(visitor, *value); });
  } else if constexpr (IsVector<T>::value) {
    visitor.list(
        value.size(), [&](size_t size) { value.resize(size); },
        [&](size_t i) { describe_element(visitor, value[i]); });
  } else if constexpr (IsMap<T>::value) {
    std::vector<std::string> keys;
    for (const auto& entry : value) keys.push_back(entry.first);
    visitor.entries(keys, [&](const std::string& key) { describe_element(visitor, value[key]); });
  } else if constexpr (IsPair<T>::value) {
    visitor.row("[number, number]", 2, [&] {
      visitor.element([&] { describe_element(visitor, value.first); });
      visitor.element([&] { describe_element(visitor, value.second); });
    });
  } else if constexpr (requires { visit_value(visitor, value); }) {
    visit_value(visitor, value);
  } else {
    visitor.object(typeid(T), [&] { visit(visitor, value); });
  }
}

template <class T>
void describe_element(RecordVisitor& visitor, T& value) {
  if constexpr (std::is_same_v<T, double>)
    visitor.number_or_null(value);
  else
    describe(visitor, value);
}

template <class T>
bool says_nothing(const T& value) {
  if constexpr (IsOptional<T>::value)
    return !value.has_value();
  else if constexpr (requires { value.empty(); })
    return value.empty();
  else
    return false;
}

template <class T>
void RecordVisitor::field(const char* key, T& value, const char* help) {
  field(key, value, help, IsOptional<T>::value ? Presence::kMayMiss : Presence::kNeeded);
}

template <class T>
void RecordVisitor::field(const char* key, T& value, const char* help, Presence presence) {
  member(key, presence, says_nothing(value), help, [&] { describe(*this, value); });
}

template <class T>
void RecordVisitor::item(T& value) {
  element([&] { describe(*this, value); });
}

}  // namespace tutti
