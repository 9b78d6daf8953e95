// Elements without innerHTML: every text that came from outside stays text.

export function element(tag, attributes = {}, ...children) {
  return filled(document.createElement(tag), attributes, children);
}
export function drawn(tag, attributes = {}, ...children) {
  return filled(document.createElementNS("http://www.w3.org/2000/svg", tag), attributes, children);
}

function filled(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on"))
      node.addEventListener(name.slice(2), value);
    else if (name === "style")
      Object.entries(value).forEach(([k, v]) => node.style.setProperty(k, v));
    else
      node.setAttribute(name, value === true ? "" : value);
  }
  node.append(...children.flat().filter((child) => child !== null && child !== undefined));
  return node;
}

export function byId(id) {
  return document.getElementById(id);
}
export function replace(parent, ...children) {
  parent.replaceChildren(...children.flat().filter(Boolean));
}

// A badge that says how a figure came to be.
export function badge(kind) {
  return element("span", {class: `badge ${kind.split(" ")[0]}`}, kind);
}

// One box for all pictures: lines of text, the first one strong.
export function showTip(event, lines) {
  const tip = byId("tip");
  replace(tip, lines.map((line, i) => element(i ? "span" : "strong", {}, line)));
  tip.hidden = false;
  const room = 12, box = tip.getBoundingClientRect();
  const x = Math.min(event.clientX + room, window.innerWidth - box.width - room);
  const below = event.clientY + room;
  const y = below + box.height > window.innerHeight ? event.clientY - box.height - room : below;
  tip.style.left = `${Math.max(room, x)}px`;
  tip.style.top = `${Math.max(room, y)}px`;
}
export function hideTip() {
  byId("tip").hidden = true;
}
export function withTip(node, lines) {
  node.addEventListener("pointermove", (event) => showTip(event, lines()));
  node.addEventListener("pointerleave", hideTip);
  return node;
}

// A choice between few words, as one row of buttons.
export function segmented(label, options, chosen, onChoose) {
  const buttons = options.map(
      ([value, text]) => element(
          "button", {
            type: "button",
            "aria-pressed": String(value === chosen),
            onclick: () => {
              buttons.forEach(
                  (b, i) => b.setAttribute("aria-pressed", String(options[i][0] === value)));
              onChoose(value);
            },
          },
          text));
  return element(
      "div", {class: "segmented", role: "group", "aria-label": label}, element("span", {}, label),
      buttons);
}

export function chooser(label, options, chosen, onChoose) {
  const select = element(
      "select", {onchange: () => onChoose(select.value)},
      options.map(([value, text]) => element("option", {value, selected: value === chosen}, text)));
  return element("label", {class: "chooser"}, element("span", {}, label), select);
}

// A table of plain values; the way to read a picture without seeing it. On a narrow screen each row
// becomes a card, whose lines name their columns.
export function valueTable(header, rows) {
  const cell = (value, i) => element(
      i ? "td" : "th", i ? {"data-label": header[i] || null} : {scope: "row"}, String(value));
  return element(
      "div", {class: "scroll", tabindex: "0", role: "region", "aria-label": "Values"},
      element(
          "table", {class: "values"},
          element(
              "thead", {}, element("tr", {}, header.map((h) => element("th", {scope: "col"}, h)))),
          element("tbody", {}, rows.map((row) => element("tr", {}, row.map(cell))))));
}

// A figure: title, how it was obtained, the plot, what it shows, and its values as a table that is
// made when it is opened. `describe` says anew how it was obtained and what it shows.
export function figure({id, title, plot, controls, values}) {
  const details =
      element("details", {class: "as-table"}, element("summary", {}, "Values as a table"));
  const note = element("p", {class: "note"}), missing = element("p", {class: "note missing"});
  const legend = element("ul", {class: "legend lines"});
  const head = element("figcaption", {}, element("h3", {}, title));
  const fill = () => {
    while (details.children.length > 1) details.lastChild.remove();
    if (details.open) details.append(valueTable(...values()));
  };
  details.addEventListener("toggle", fill);
  const node = element(
      "figure", {class: "card", id}, head, controls || null, plot, legend, note, missing,
      values ? details : null);
  const describe = ({obtained, text = "", without = ""}) => {
    replace(head, head.firstChild, badge(obtained));
    note.textContent = text;
    missing.textContent = without;
    fill();
  };
  return {node, legend, describe};
}
