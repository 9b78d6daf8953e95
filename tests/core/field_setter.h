// Sets fields of a component by their keys, as a job does, but without looking at bounds.
#pragma once

#include <initializer_list>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "core/schema.h"

namespace tutti {

struct FieldValue : std::variant<bool, int64_t, double, std::string, std::vector<int64_t>> {
  using variant::variant;
  FieldValue(std::initializer_list<int64_t> list) : variant(std::vector<int64_t>(list)) {}
};
using FieldValues = std::vector<std::pair<std::string, FieldValue>>;

class FieldSetter : public Visitor {
 public:
  FieldSetter(std::string_view key, FieldValue value) : key_(key), value_(std::move(value)) {}
  bool found = false;

  void field(const char* key, bool& value, const char*) override { put(key, value); }
  void field(const char* key, int64_t& value, Bounds, const char*) override { put(key, value); }
  void field(const char* key, double& value, Bounds, const char*) override {
    const auto* const whole = std::get_if<int64_t>(&value_);
    if (key == key_ && whole) value_ = static_cast<double>(*whole);
    put(key, value);
  }
  void field(const char* key, std::string& value, const char*) override { put(key, value); }
  void field(const char* key, std::vector<int64_t>& value, Bounds, const char*) override {
    put(key, value);
  }
  void field(const char*, std::vector<double>&, Bounds, const char*) override {}
  void quantity(const char*, double&, Unit, const char*) override {}
  void division(const char*, Division&, const char*) override {}
  void choice(const char* key, std::string& value, const std::vector<std::string_view>&,
              const char*) override {
    put(key, value);
  }
  void table(const char*, const std::function<void(Visitor&)>&, const char*) override {}
  void component(const char*, std::string&, const std::vector<std::string_view>&,
                 const std::function<void(Visitor&)>&, const char*) override {}
  void tables(const char*, size_t, const std::function<void(Visitor&, size_t)>&,
              const char*) override {}

 private:
  template <class T>
  void put(std::string_view key, T& value) {
    if (key != key_) return;
    value = std::get<T>(value_);
    found = true;
  }

  std::string_view key_;
  FieldValue value_;
};

// Returns false when there is no such field.
template <class Config>
bool try_set(Config& config, std::string_view key, FieldValue value) {
  FieldSetter setter(key, std::move(value));
  visit(setter, config);
  return setter.found;
}

template <class Config>
void set(Config& config, std::string_view key, FieldValue value) {
  if (!try_set(config, key, std::move(value)))
    throw std::logic_error("there is no field " + std::string(key));
}

// configured<ModelConfig>("mlp", {{"hidden", {4}}, {"dropout", 0.5}})
template <class Config>
Config configured(std::string_view kind, const FieldValues& fields = {}) {
  Config config(kind);
  for (const auto& [key, value] : fields) set(config, key, value);
  return config;
}

}  // namespace tutti
