// Figures as people read them: three significant digits, a unit that fits, an en dash where nothing
// is known.

export const UNKNOWN = "–";

export function isNumber(value) {
  return typeof value === "number" && Number.isFinite(value);
}

// 1234.5 -> "1,230", 0.01234 -> "0.0123".
export function digits(value, significant = 3) {
  if (!isNumber(value)) return UNKNOWN;
  if (value === 0) return "0";
  const size = Math.floor(Math.log10(Math.abs(value)));
  const unit = 10 ** Math.max(0, size - significant + 1);
  return (unit > 1 ? Math.round(value / unit) * unit : value).toLocaleString("en", {
    maximumFractionDigits: Math.max(0, Math.min(12, significant - 1 - size))
  });
}

function scaled(value, steps, suffix) {
  if (!isNumber(value)) return UNKNOWN;
  if (value === 0) return `0 ${suffix}`;
  const step = steps.find(([limit]) => Math.abs(value) >= limit) || steps[steps.length - 1];
  return `${digits(value / step[0])} ${step[1]}${suffix}`;
}

const DECIMAL = [[1e15, "P"], [1e12, "T"], [1e9, "G"], [1e6, "M"], [1e3, "k"], [1, ""]];
const DECIMAL_SMALL = [...DECIMAL, [1e-3, "m"], [1e-6, "µ"]];

export function bytes(value) {
  return scaled(value, DECIMAL, "B");
}
export function joules(value) {
  return scaled(value, DECIMAL_SMALL, "J");
}
export function kilowattHours(value) {
  return scaled(isNumber(value) ? value * 1000 : value, DECIMAL_SMALL, "Wh");
}
export function grams(value) {
  return scaled(value, DECIMAL_SMALL, "g");
}
export function count(value) {
  return isNumber(value) && Math.abs(value) < 1e4 ? digits(value, 4) :
                                                    scaled(value, DECIMAL, "").trim();
}
export function seconds(value) {
  if (!isNumber(value)) return UNKNOWN;
  const size = Math.abs(value);
  if (size === 0) return "0 s";
  if (size < 1e-3) return `${digits(value * 1e6)} µs`;
  if (size < 1) return `${digits(value * 1e3)} ms`;
  if (size < 1000) return `${digits(value)} s`;
  if (size < 3 * 3600) return `${digits(value / 60)} min`;
  return `${digits(value / 3600)} h`;
}
// From one to the other, with a common unit said once: "38.9 – 39.7 s".
export function range(from, to) {
  const [number, ...unit] = from.split(" ");
  const shared = unit.length && to.endsWith(` ${unit.join(" ")}`);
  return `${shared ? number : from} – ${to}`;
}
// Ticks of one axis in one unit: seconds, unless all are far from them.
export function secondsUpTo(most) {
  if (most < 1) return (value) => seconds(value);
  const [unit, name] = most < 20000 ? [1, "s"] : [3600, "h"];
  return (value) => `${digits(value / unit, 4)} ${name}`;
}
export function percent(value) {
  return isNumber(value) ? `${digits(value * 100)} %` : UNKNOWN;
}
export function times(ratio) {
  return `${digits(ratio, ratio < 10 ? 2 : 3)} times`;
}

// "a", "a and b", "a, b and c"; of many the first few and how many more there are.
const MOST_LISTED = 8;
export function listed(words) {
  if (words.length < 2) return words.join("");
  if (words.length > MOST_LISTED)
    return `${words.slice(0, MOST_LISTED - 2).join(", ")} and ${
        words.length - MOST_LISTED + 2} more`;
  return `${words.slice(0, -1).join(", ")} and ${words[words.length - 1]}`;
}
