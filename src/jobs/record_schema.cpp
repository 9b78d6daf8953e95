#include "jobs/record_schema.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "core/error.h"
#include "core/printable.h"
#include "jobs/versions.h"

namespace tutti {
namespace {

using nlohmann::json;

// " of tutti 0.2.0", where the record says who wrote it.
std::string writer_of(const json& record) {
  const json versions = record.value("versions", json());
  const json writer = versions.is_object() ? versions.value("tutti", json()) : json();
  return writer.is_string() ? fmt::format(" of tutti {}", printable(writer.get<std::string>()))
                            : std::string();
}

}  // namespace

int64_t require_schema(const json& record, SchemaRange known, const std::string& where,
                       const std::string& remedy) {
  const json schema = record.is_object() ? record.value("schema", json()) : json();
  if (schema.is_number_integer() && schema >= known.oldest && schema <= known.newest)
    return schema.get<int64_t>();
  const std::string range = known.oldest == known.newest
                                ? fmt::format("schema {}", known.newest)
                                : fmt::format("schemas {} to {}", known.oldest, known.newest);
  const bool newer = schema.is_number_integer() && schema > known.newest;
  throw DataError(fmt::format("{}: has schema {}{}, this program (tutti {}) reads {}; {}, or {}",
                              where, schema.dump(-1, ' ', false, json::error_handler_t::replace),
                              writer_of(record), library_versions().tutti, range,
                              newer ? "read it with the newer version that wrote it"
                                    : "read it with the version that wrote it",
                              remedy));
}

}  // namespace tutti
