"""Makes one page of the report's parts, as a C++ source file that holds it as text.

usage: inline.py PAGE.html chart.min.js OUT.cpp CONSTANT

The text becomes tutti::CONSTANT. In the page a line <!-- inline NAME --> stands for the content of NAME beside it (CSS, or an ES
module), and <!-- inline chart.js --> for Chart.js. Modules are joined into one script in the
order of their lines, without their import and export words: each name is used once in them all.
"""
import pathlib
import re
import sys

RAW_STRING_LIMIT = 16000  # below what every compiler takes as one literal


def module_text(path):
    text = path.read_text(encoding="utf-8")
    text = re.sub(r"^import [^;]*;\n", "", text, flags=re.MULTILINE)
    return re.sub(r"^export (?=const|let|function|class|async)", "", text, flags=re.MULTILINE)


def inlined(index, chart_js):
    modules = []

    def part(match):
        name = match.group(1)
        if name == "chart.js":
            # Its licence asks for the notice to stay; a source map would be a request.
            text = re.sub(r"//# sourceMappingURL=.*", "", chart_js.read_text(encoding="utf-8"))
            return script("", text)
        path = index.parent / name
        if name.endswith(".css"):
            return "<style>\n" + path.read_text(encoding="utf-8") + "</style>"
        modules.append(path)
        return ""

    page = re.sub(r"<!-- inline (\S+) -->", part, index.read_text(encoding="utf-8"))
    whole = "".join(module_text(path) for path in modules)
    names = re.findall(r"^(?:async )?(?:function|class) (\w+)", whole, re.MULTILINE)
    for declared in re.findall(r"^(?:const|let) ([^\n]*)", whole, re.MULTILINE):
        names += re.findall(r"(?:^|, )(\w+)(?= =)", declared)
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        sys.exit(f"inline.py: defined in two modules: {', '.join(twice)}")
    return page.replace("<!-- modules -->", script(' type="module"', whole))


def script(attributes, text):
    if re.search(r"</script|<!--", text, re.IGNORECASE):
        sys.exit("inline.py: a script holds text that would end or hide it inside a page")
    return f"<script{attributes}>\n{text}</script>"


def cpp_text(page, constant):
    pieces = [page[i:i + RAW_STRING_LIMIT] for i in range(0, len(page), RAW_STRING_LIMIT)]
    literals = "\n".join(f'R"page({piece})page"' for piece in pieces)
    return ('#include "testbed/report.h"\n\nnamespace tutti {\n'
            f"const std::string_view {constant} =\n{literals};\n}}  // namespace tutti\n")


def main():
    index, chart_js, out = map(pathlib.Path, sys.argv[1:4])
    page = inlined(index, chart_js)
    if ')page"' in page or len(re.findall("@@[a-z]+@@", page)) != 1:
        sys.exit("inline.py: the page cannot be written as C++ text, or has no place for the data")
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_text(cpp_text(page, sys.argv[4]), encoding="utf-8")


if __name__ == "__main__":
    main()
