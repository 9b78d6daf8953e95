// A Visitor that notes which keys a component shows, for tests of visit().
#pragma once

#include <string>
#include <vector>

#include "core/schema.h"

namespace tutti {

class KeyRecorder : public Visitor {
 public:
  std::vector<std::string> keys;

  void field(const char* key, bool&, const char*) override { keys.emplace_back(key); }
  void field(const char* key, int64_t&, Bounds, const char*) override { keys.emplace_back(key); }
  void field(const char* key, double&, Bounds, const char*) override { keys.emplace_back(key); }
  void field(const char* key, std::string&, const char*) override { keys.emplace_back(key); }
  void field(const char* key, std::vector<int64_t>&, Bounds, const char*) override {
    keys.emplace_back(key);
  }
  void field(const char* key, std::vector<double>&, Bounds, const char*) override {
    keys.emplace_back(key);
  }
  void quantity(const char* key, double&, Unit, const char*) override { keys.emplace_back(key); }
  void division(const char* key, Division&, const char*) override { keys.emplace_back(key); }
  void choice(const char* key, std::string&, const std::vector<std::string_view>&,
              const char*) override {
    keys.emplace_back(key);
  }
  void table(const char* key, const std::function<void(Visitor&)>&, const char*) override {
    keys.emplace_back(key);
  }
  void component(const char* key, std::string&, const std::vector<std::string_view>&,
                 const std::function<void(Visitor&)>&, const char*) override {
    keys.emplace_back(key);
  }
  void tables(const char* key, size_t, const std::function<void(Visitor&, size_t)>&,
              const char*) override {
    keys.emplace_back(key);
  }
};

}  // namespace tutti
