#include "testbed/report.h"

#include <nlohmann/json.hpp>

#include "core/error.h"
#include "testbed/report_data.h"

namespace tutti {

using nlohmann::json;

std::string json_for_script(const json& value) {
  const std::string text = value.dump(-1, ' ', false, json::error_handler_t::replace);
  std::string safe;
  safe.reserve(text.size() + text.size() / 64);
  for (size_t i = 0; i < text.size(); ++i) {
    const std::string_view rest(text.data() + i, std::min<size_t>(3, text.size() - i));
    if (text[i] == '<') {
      safe += "\\u003c";
    } else if (rest == "\xe2\x80\xa8" || rest == "\xe2\x80\xa9") {
      safe += rest == "\xe2\x80\xa8" ? "\\u2028" : "\\u2029";
      i += 2;
    } else {
      safe += text[i];
    }
  }
  return safe;
}

std::string page_with(std::string_view page, std::string_view mark, const json& data) {
  const size_t place = page.find(mark);
  TUTTI_CHECK(place != std::string_view::npos);
  std::string whole(page.substr(0, place));
  whole += json_for_script(data);
  whole += page.substr(place + mark.size());
  return whole;
}

std::string report_html(const Comparison& comparison) {
  return page_with(kReportTemplate, kReportDataMark, report_data(comparison));
}

}  // namespace tutti
