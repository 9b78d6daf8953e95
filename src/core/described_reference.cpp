#include "core/described_reference.h"

#include <fmt/format.h>

#include <utility>

namespace tutti {
namespace {

class KeyNoter : public RecordVisitor {
 public:
  KeyNoter(std::string file, DocumentedTypes& documented)
      : file_(std::move(file)), documented_(documented) {}

  std::vector<DescribedKey> keys;

  bool reads() const override { return false; }
  void value(bool&) override { type_ = "true or false"; }
  void value(int64_t&) override { type_ = "whole number"; }
  void value(uint64_t&) override { type_ = "whole number"; }
  void value(double&) override { type_ = "number"; }
  void value(std::string&) override { type_ = "text"; }
  void value(nlohmann::json&) override { type_ = "anything"; }
  void number_or_null(double&) override { type_ = "number or null"; }
  void nullable(bool, const std::function<void(bool)>& set, const Visit& inside) override {
    const bool absent = std::exchange(absent_, false);  // then it is never null
    set(true);
    inside();
    if (!absent) type_ += " or null";
  }
  void object(const std::type_info& type, const Visit& inside) override {
    const auto [found, fresh] = documented_.emplace(type, DocumentedType{file_, path_});
    const auto& [file, path] = found->second;
    if (fresh) inside();
    type_ = fresh           ? "object"
            : file == file_ ? fmt::format("object like `{}`", path)
                            : fmt::format("object like `{}` of {}", path, file);
  }
  void member(const char* key, Presence presence, bool, const char* help,
              const Visit& inside) override {
    const std::string outer = path_;
    path_ += (path_.empty() ? "" : ".") + std::string(key);
    const size_t place = keys.size();
    keys.push_back({path_, "", presence, help});
    absent_ = presence == Presence::kWhenKnown;
    inside();
    absent_ = false;
    keys[place].type = type_;
    path_ = outer;
  }
  void list(size_t, const std::function<void(size_t)>& resize,
            const std::function<void(size_t)>& element) override {
    const std::string outer = path_;
    path_ += "[]";
    resize(1);
    element(0);
    path_ = outer;
    type_ = "list: " + type_;
  }
  void entries(const std::vector<std::string>&,
               const std::function<void(const std::string&)>& entry) override {
    const std::string outer = path_;
    path_ += ".NAME";
    entry("NAME");
    path_ = outer;
    type_ = "object, by name: " + type_;
  }
  void row(const char* shape, size_t, const Visit&) override { type_ = shape; }
  void element(const Visit& inside) override { inside(); }
  void require(bool, const std::string&, const std::string&) override {}

 private:
  std::string file_;
  DocumentedTypes& documented_;
  std::string path_, type_;
  bool absent_ = false;  // the member at hand is left out where it is not known
};

}  // namespace

std::vector<DescribedKey> described_keys(const std::string& file,
                                         const std::function<void(RecordVisitor&)>& visit,
                                         DocumentedTypes& documented) {
  KeyNoter noter(file, documented);
  visit(noter);
  return std::move(noter.keys);
}

std::string key_table(const std::vector<DescribedKey>& keys) {
  std::string text = "| key | type | meaning |\n|---|---|---|\n";
  for (const DescribedKey& key : keys)
    text += fmt::format("| `{}` | {}{} | {} |\n", key.key, key.type,
                        key.presence == Presence::kWhenKnown ? ", or absent" : "", key.meaning);
  return text;
}

}  // namespace tutti
