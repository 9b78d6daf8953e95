// A kind of component that a job chooses by name, with the settings of that kind and no others.
//
// A kind is a struct: its members are its settings, and it implements the interface of its folder
// (UpdateRule, DataKind, ModelKind). A catalog has an entry for each, which makes one with its
// defaults. Chosen is a value: a copy has settings of its own.
#pragma once

#include <concepts>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/error.h"
#include "core/schema.h"

namespace tutti {

// Owns an object of a class derived from Base. A copy of it owns a copy of the whole object.
template <class Base>
class Cloned {
 public:
  template <std::derived_from<Base> T>
  Cloned(T object)  // NOLINT: an object is what it owns
      : object_(std::make_unique<T>(std::move(object))), copy_(copy_of<T>) {}
  Cloned(const Cloned& other) : object_(other.copy_(*other.object_)), copy_(other.copy_) {}
  Cloned& operator=(const Cloned& other) {
    object_ = other.copy_(*other.object_);
    copy_ = other.copy_;
    return *this;
  }
  ~Cloned() = default;  // and no move, which would leave one without an object

  Base* operator->() { return object_.get(); }
  const Base* operator->() const { return object_.get(); }
  Base& operator*() { return *object_; }
  const Base& operator*() const { return *object_; }

 private:
  template <class T>
  static std::unique_ptr<Base> copy_of(const Base& object) {
    return std::make_unique<T>(static_cast<const T&>(object));
  }

  std::unique_ptr<Base> object_;
  std::unique_ptr<Base> (*copy_)(const Base&);
};

// Gives the fields that `to` visits the values that fields of the same name and type have in
// `from`, unless they are as in `preset`: those were never set.
using VisitAll = std::function<void(Visitor&)>;
void carry_settings(const VisitAll& from, const VisitAll& preset, const VisitAll& to);

// An entry has a name, a summary, and `Cloned<Kind> (*make)()`.
template <class Entry>
class Chosen {
 public:
  using Kind = typename Entry::Kind;

  // The entry must outlive it: catalogs live as long as the program.
  explicit Chosen(const Entry& entry) : entry_(&entry), kind_(entry.make()) {}

  std::string_view name() const { return entry_->name; }
  const Entry& entry() const { return *entry_; }
  Kind* operator->() { return kind_.operator->(); }
  const Kind* operator->() const { return kind_.operator->(); }

  // The settings when they are those of T; null when another kind is chosen.
  template <std::derived_from<Kind> T>
  const T* find() const {
    return dynamic_cast<const T*>(kind_.operator->());
  }
  template <std::derived_from<Kind> T>
  T& get() {
    T* const settings = dynamic_cast<T*>(kind_.operator->());
    TUTTI_CHECK(settings != nullptr);
    return *settings;
  }
  template <std::derived_from<Kind> T>
  const T& get() const {
    const T* const settings = find<T>();
    TUTTI_CHECK(settings != nullptr);
    return *settings;
  }

  // Chooses another kind. Settings that both have keep their values where they were set.
  void become(const Entry& entry) {
    if (&entry == entry_) return;
    Cloned<Kind> next = entry.make(), preset = entry_->make();
    carry_settings([&](Visitor& v) { kind_->visit(v); }, [&](Visitor& v) { preset->visit(v); },
                   [&](Visitor& v) { next->visit(v); });
    kind_ = next;
    entry_ = &entry;
  }

 private:
  const Entry* entry_;
  Cloned<Kind> kind_;
};

// What an entry of a catalog makes.
template <class Kind, std::derived_from<Kind> T>
Cloned<Kind> with_defaults() {
  return T{};
}

template <class Entry>
std::vector<std::string_view> names_of(const std::vector<Entry>& catalog) {
  std::vector<std::string_view> names;
  names.reserve(catalog.size());
  for (const Entry& entry : catalog) names.push_back(entry.name);
  return names;
}

// Null when there is no such entry.
template <class Entry>
const Entry* find_entry(const std::vector<Entry>& catalog, std::string_view name) {
  for (const Entry& entry : catalog)
    if (entry.name == name) return &entry;
  return nullptr;
}

}  // namespace tutti
