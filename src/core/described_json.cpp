#include "core/described_json.h"

#include <fmt/format.h>

#include <cmath>
#include <limits>

namespace tutti {
namespace {

using nlohmann::json;

class JsonWriter : public RecordVisitor {
 public:
  explicit JsonWriter(json& result) : at_(&result) {}

  bool reads() const override { return false; }
  void value(bool& value) override { *at_ = value; }
  void value(int64_t& value) override { *at_ = value; }
  void value(uint64_t& value) override { *at_ = value; }
  void value(double& value) override { number_or_null(value); }
  void value(std::string& value) override { *at_ = value; }
  void value(json& value) override { *at_ = value; }
  // JSON has no NaN: a number that is not finite is null, never a made-up value.
  void number_or_null(double& value) override {
    *at_ = std::isfinite(value) ? json(value) : json();
  }
  void nullable(bool known, const std::function<void(bool)>&, const Visit& inside) override {
    *at_ = nullptr;
    if (known) inside();
  }
  void object(const std::type_info&, const Visit& inside) override {
    *at_ = json::object();
    inside();
  }
  void member(const char* key, Presence presence, bool empty, const char*,
              const Visit& inside) override {
    if (presence != Presence::kWhenKnown || !empty) within((*at_)[key], inside);
  }
  void list(size_t size, const std::function<void(size_t)>&,
            const std::function<void(size_t)>& element) override {
    *at_ = json(json::array_t(size));
    json* const whole = at_;
    for (size_t i = 0; i < size; ++i) {
      at_ = &(*whole)[i];
      element(i);
    }
    at_ = whole;
  }
  void entries(const std::vector<std::string>& keys,
               const std::function<void(const std::string&)>& entry) override {
    *at_ = json::object();
    for (const std::string& key : keys) within((*at_)[key], [&] { entry(key); });
  }
  void row(const char*, size_t, const Visit& inside) override {
    *at_ = json::array();
    inside();
  }
  void element(const Visit& inside) override {
    at_->push_back(nullptr);
    within(at_->back(), inside);
  }
  void require(bool, const std::string&, const std::string&) override {}

 private:
  void within(json& value, const Visit& inside) {
    json* const outer = std::exchange(at_, &value);
    inside();
    at_ = outer;
  }

  json* at_;  // what is being written
};

class JsonReader : public RecordVisitor {
 public:
  explicit JsonReader(const json& whole) : at_(&whole) {}

  bool reads() const override { return true; }
  void value(bool& value) override {
    if (!at_->is_boolean()) wrong("true or false");
    value = at_->get<bool>();
  }
  void value(int64_t& value) override { value = whole_number<int64_t>(); }
  void value(uint64_t& value) override { value = whole_number<uint64_t>(); }
  void value(double& value) override {
    if (!at_->is_number()) wrong("a number");
    value = at_->get<double>();
  }
  void value(std::string& value) override {
    if (!at_->is_string()) wrong("a text");
    value = at_->get<std::string>();
  }
  void value(json& value) override { value = *at_; }
  void number_or_null(double& value) override {
    if (!at_->is_number() && !at_->is_null()) wrong("a number or null");
    value = at_->is_null() ? NAN : at_->get<double>();
  }
  void nullable(bool, const std::function<void(bool)>& set, const Visit& inside) override {
    set(!at_->is_null());
    if (at_->is_null()) return;
    or_null_ = true;
    inside();
    or_null_ = false;
  }
  void object(const std::type_info&, const Visit& inside) override {
    if (!at_->is_object()) wrong("an object");
    or_null_ = false;
    inside();
  }
  void member(const char* key, Presence presence, bool, const char*, const Visit& inside) override {
    const auto found = at_->find(key);
    const bool there = found != at_->end();
    if (!there && presence == Presence::kNeeded) throw Mismatch{place_of(key), "is missing"};
    if (there && !(found->is_null() && presence != Presence::kNeeded))
      within(*found, {key, 0}, inside);
  }
  void list(size_t, const std::function<void(size_t)>& resize,
            const std::function<void(size_t)>& element) override {
    if (!at_->is_array()) wrong("a list");
    or_null_ = false;
    const json* const whole = at_;
    resize(whole->size());
    path_.emplace_back();
    for (size_t i = 0; i < whole->size(); ++i) {
      at_ = &(*whole)[i];
      path_.back().index = i;
      element(i);
    }
    path_.pop_back();
    at_ = whole;
  }
  void entries(const std::vector<std::string>&,
               const std::function<void(const std::string&)>& entry) override {
    if (!at_->is_object()) wrong("an object");
    or_null_ = false;
    const json& whole = *at_;
    for (auto each = whole.begin(); each != whole.end(); ++each)
      within(*each, {each.key().c_str(), 0}, [&] { entry(each.key()); });
  }
  void row(const char* shape, size_t length, const Visit& inside) override {
    if (!at_->is_array() || at_->size() != length) wrong(shape);
    or_null_ = false;
    row_ = at_;
    shape_ = shape;
    column_ = 0;
    inside();
    row_ = nullptr;
  }
  void element(const Visit& inside) override {
    const json* const whole = std::exchange(at_, &(*row_)[column_++]);
    inside();
    at_ = whole;
  }
  void require(bool holds, const std::string& place, const std::string& problem) override {
    if (holds) return;
    if (row_) wrong(shape_);
    throw Mismatch{place_of(place), problem};
  }

 private:
  struct Step {
    const char* key = nullptr;  // of an object; null: an element of a list
    size_t index = 0;
  };

  // An error in a row names the row: its values have no names.
  [[noreturn]] void wrong(const char* wanted) const {
    if (row_) throw Mismatch{place_of(""), fmt::format("is {}, not {}", row_->type_name(), shape_)};
    throw Mismatch{place_of(""), fmt::format("is {}, not {}{}", at_->type_name(), wanted,
                                             or_null_ ? " or null" : "")};
  }
  // A number that is written with a point counts as whole if it is.
  template <class T>
  T whole_number() const {
    if (at_->is_number_unsigned() &&
        at_->get<uint64_t>() <= static_cast<uint64_t>(std::numeric_limits<T>::max()))
      return static_cast<T>(at_->get<uint64_t>());
    if (at_->is_number_integer() && !at_->is_number_unsigned() &&
        (std::is_signed_v<T> || at_->get<int64_t>() >= 0))
      return static_cast<T>(at_->get<int64_t>());
    constexpr double kMost = 9007199254740992;  // 2^53: above, a double is not exact
    const double number = at_->is_number_float() ? at_->get<double>() : NAN;
    if (!(std::trunc(number) == number && std::fabs(number) <= kMost &&
          (std::is_signed_v<T> || number >= 0)))
      wrong("a whole number");
    return static_cast<T>(number);
  }
  void within(const json& value, Step step, const Visit& inside) {
    const json* const outer = std::exchange(at_, &value);
    path_.push_back(step);
    inside();
    path_.pop_back();
    at_ = outer;
  }
  // Only written when something is at fault: there may be a million values.
  std::string place_of(const std::string& below) const {
    std::string place;
    for (const Step& step : path_) {
      if (!step.key)
        place += fmt::format("[{}]", step.index);
      else
        place += (place.empty() ? "" : ".") + std::string(step.key);
    }
    return place + (place.empty() || below.empty() ? "" : ".") + below;
  }

  const json* at_;             // what is being read
  std::vector<Step> path_;     // the way to it
  const json* row_ = nullptr;  // the row around it
  const char* shape_ = "";
  size_t column_ = 0;
  bool or_null_ = false;  // it could be null, too
};

}  // namespace

json write_described(const std::function<void(RecordVisitor&)>& write) {
  json result;
  JsonWriter writer(result);
  write(writer);
  return result;
}

void read_described(const json& whole, const std::function<void(RecordVisitor&)>& read) {
  JsonReader reader(whole);
  read(reader);
}

}  // namespace tutti
