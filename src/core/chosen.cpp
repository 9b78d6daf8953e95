#include "core/chosen.h"

#include <algorithm>
#include <map>
#include <variant>

namespace tutti {
namespace {

using SettingValue = std::variant<bool, int64_t, double, std::string, std::vector<int64_t>,
                                  std::vector<double>, Division>;

// Takes the values of all fields by their names, or gives them to others. Lists of tables are left
// out: their elements have no names.
class SettingCarrier : public Visitor {
 public:
  std::map<std::string, SettingValue> values;
  bool giving = false;

  void field(const char* key, bool& value, const char*) override { carry(key, value); }
  void field(const char* key, int64_t& value, Bounds, const char*) override { carry(key, value); }
  void field(const char* key, double& value, Bounds, const char*) override { carry(key, value); }
  void field(const char* key, std::string& value, const char*) override { carry(key, value); }
  void field(const char* key, std::vector<int64_t>& value, Bounds, const char*) override {
    carry(key, value);
  }
  void field(const char* key, std::vector<double>& value, Bounds, const char*) override {
    carry(key, value);
  }
  void quantity(const char* key, double& value, Unit, const char*) override { carry(key, value); }
  void division(const char* key, Division& value, const char*) override { carry(key, value); }
  void choice(const char* key, std::string& value, const std::vector<std::string_view>& allowed,
              const char*) override {
    std::string carried = value;
    carry(key, carried);
    if (std::find(allowed.begin(), allowed.end(), carried) != allowed.end()) value = carried;
  }
  void table(const char* key, const std::function<void(Visitor&)>& inside, const char*) override {
    const std::string outer = std::exchange(prefix_, prefix_ + key + ".");
    inside(*this);
    prefix_ = outer;
  }
  void component(const char* key, std::string& kind, const std::vector<std::string_view>& allowed,
                 const std::function<void(Visitor&)>& inside, const char* help) override {
    choice(key, kind, allowed, help);
    table(key, inside, help);
  }
  void tables(const char*, size_t, const std::function<void(Visitor&, size_t)>&,
              const char*) override {}

 private:
  template <class T>
  void carry(const char* key, T& value) {
    if (!giving) {
      values[prefix_ + key] = value;
      return;
    }
    const auto found = values.find(prefix_ + key);
    if (found == values.end()) return;
    if (const T* const carried = std::get_if<T>(&found->second)) value = *carried;
  }

  std::string prefix_;
};

}  // namespace

void carry_settings(const VisitAll& from, const VisitAll& preset, const VisitAll& to) {
  SettingCarrier set, unset;
  from(set);
  preset(unset);
  std::erase_if(set.values, [&](const auto& value) {
    const auto other = unset.values.find(value.first);
    return other != unset.values.end() && other->second == value.second;
  });
  set.giving = true;
  to(set);
}

}  // namespace tutti
