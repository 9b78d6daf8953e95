// Writes a job with every setting resolved, by visiting the fields that the reader reads.
#include <fmt/format.h>

#include "jobs/job.h"

namespace tutti {
namespace {

std::string in_quotes(const std::string& text) {
  std::string result = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') result += '\\';
    const auto code = static_cast<unsigned char>(c);
    if (code < 0x20 || code == 0x7f)
      result += fmt::format("\\u{:04x}", code);
    else
      result += c;
  }
  return result + "\"";
}

// The shortest text that reads back as the same double, always recognisable as one.
std::string decimal(double value) {
  std::string text = fmt::format("{}", value);
  if (text.find_first_of(".en") == std::string::npos) text += ".0";
  return text;
}

template <class T, class Format>
std::string list(const std::vector<T>& values, const Format& format) {
  std::string text = "[";
  for (const T& value : values) text += (text.size() > 1 ? ", " : "") + format(value);
  return text + "]";
}

class TomlWriter : public Visitor {
 public:
  explicit TomlWriter(std::string path = "") : path_(std::move(path)) {}
  std::string text() const { return own_ + tables_; }

  void field(const char* key, bool& value, const char*) override {
    put(key, value ? "true" : "false");
  }
  void field(const char* key, int64_t& value, Bounds, const char*) override {
    put(key, std::to_string(value));
  }
  void field(const char* key, double& value, Bounds, const char*) override {
    put(key, decimal(value));
  }
  void field(const char* key, std::string& value, const char*) override {
    put(key, in_quotes(value));
  }
  void field(const char* key, std::vector<int64_t>& value, Bounds, const char*) override {
    put(key, list(value, [](int64_t v) { return std::to_string(v); }));
  }
  void field(const char* key, std::vector<double>& value, Bounds, const char*) override {
    put(key, list(value, decimal));
  }
  void division(const char* key, Division& value, const char*) override {
    put(key, value.automatic ? "\"auto\""
             : value.places.empty()
                 ? std::to_string(value.parts)
                 : list(value.places, [](int64_t v) { return std::to_string(v); }));
  }
  // In the base unit, exactly: a rounded text would not replay to the same virtual time.
  void quantity(const char* key, double& value, Unit, const char*) override {
    put(key, decimal(value));
  }
  void choice(const char* key, std::string& value, const std::vector<std::string_view>&,
              const char*) override {
    put(key, in_quotes(value));
  }
  void table(const char* key, const std::function<void(Visitor&)>& inside, const char*) override {
    section(key, "[", "]", inside);
  }
  void component(const char* key, std::string& kind, const std::vector<std::string_view>&,
                 const std::function<void(Visitor&)>& inside, const char*) override {
    section(key, "[", "]", [&](Visitor& visitor) {
      visitor.choice("kind", kind, {}, "");
      inside(visitor);
    });
  }
  void tables(const char* key, size_t size, const std::function<void(Visitor&, size_t)>& inside,
              const char*) override {
    if (size == 0) put(key, "[]");  // where it is laid over another job, none is not the same
    for (size_t i = 0; i < size; ++i)
      section(key, "[[", "]]", [&](Visitor& visitor) { inside(visitor, i); });
  }

 private:
  void put(const char* key, const std::string& value) {
    own_ += fmt::format("{} = {}\n", key, value);
  }
  void section(const char* key, const char* open, const char* close,
               const std::function<void(Visitor&)>& inside) {
    const std::string path = path_.empty() ? key : path_ + "." + key;
    TomlWriter writer(path);
    inside(writer);
    tables_ += fmt::format("\n{}{}{}\n{}", open, path, close, writer.text());
  }

  std::string path_;
  std::string own_;  // plain values come before tables in TOML
  std::string tables_;
};

}  // namespace

std::string resolved_toml(const Job& given) {
  Job job = given;  // visitors need mutable objects
  TomlWriter writer;
  visit(writer, job);
  if (!job.compare.empty())
    writer.tables(
        "compare", job.compare.size(),
        [&](Visitor& visitor, size_t i) { visit(visitor, job.compare[i]); }, "");
  return writer.text();
}

}  // namespace tutti
