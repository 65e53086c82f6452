"use strict";

const DATA = JSON.parse(document.getElementById("data").textContent);
const find = (selector) => document.querySelector(selector);

// Call `draw` whenever the colors change: by the button, the system or the printer.
function keepDrawn(draw) {
  const redraw = () => { COLORS.clear(); draw(); };
  const root = document.documentElement.style, dark = matchMedia("(prefers-color-scheme: dark)");
  const isDark = () => (root.colorScheme || (dark.matches ? "dark" : "light")) === "dark";
  const turn = (scheme) => { root.colorScheme = scheme; redraw(); };
  let before;
  find("#theme").addEventListener("click", () => turn(isDark() ? "light" : "dark"));
  dark.addEventListener("change", redraw);
  addEventListener("beforeprint", () => { before = root.colorScheme; printing = true; turn("light"); });
  addEventListener("afterprint", () => { printing = false; turn(before); fitCharts(); });
}

function showTiles(place, tiles) {
  place.replaceChildren(...tiles.map(({ title, text, under, tone = "", term }) => element("div", { className: "tile" },
    term ? explained(title, term) : element("span", { className: "title", textContent: title }),
    element("strong", { className: tone }, ...breakable(text)),
    element("span", { className: "under", textContent: under }))));
}

const tip = document.body.appendChild(element("div", { id: "tip", role: "tooltip", hidden: true }));

// A metric's name, which explains itself when it is pointed at, focused or tapped.
function explained(text, term, className = "title") {
  const name = element("button", { type: "button", className: `term ${className}` }, ...breakable(text));
  const show = () => explain(name, DATA.glossary[term]);
  name.addEventListener("pointerenter", show);
  name.addEventListener("focus", show);
  name.addEventListener("click", show);
  name.addEventListener("pointerleave", hideTip);
  name.addEventListener("blur", hideTip);
  return name;
}

function explain(name, text) {
  if (!text) return;
  tip.textContent = text;
  tip.hidden = false;
  const { left, bottom } = name.getBoundingClientRect();
  tip.style.left = `${Math.max(8, Math.min(left, document.documentElement.clientWidth - tip.offsetWidth - 8)) + scrollX}px`;
  tip.style.top = `${bottom + 6 + scrollY}px`;
}

function hideTip() { tip.hidden = true; }
addEventListener("keydown", ({ key }) => { if (key === "Escape") hideTip(); });

// Every section can be linked to, and every figure saved.
document.querySelectorAll("main section[id] > h2").forEach((head) => {
  head.append(" ", element("a", { className: "link", href: `#${head.parentElement.id}`, textContent: "#", ariaLabel: "Link to this section" }));
});
document.querySelectorAll("figure > .chart").forEach((chart) => {
  const save = element("button", { type: "button", className: "save", textContent: "svg", title: "Save this figure as SVG" });
  save.addEventListener("click", () => saveFigure(chart));
  chart.after(save);
});

async function saveFigure(chart) {
  const image = await Plotly.toImage(chart, { format: "svg", width: chart.clientWidth || 700, height: chart.clientHeight || 400 });
  saved(image, `${chart.className.replace(/js-plotly-plot|chart/g, "").trim() || "figure"}.svg`);
}

function saved(href, download) {
  const link = element("a", { href, download });
  document.body.append(link);
  link.click();
  link.remove();
}

// What a spreadsheet would take for a formula gets an apostrophe.
function asCsv(rows) {
  const cell = (value) => {
    const text = typeof value === "string" && /^[=+@\t\r-]/.test(value) ? `'${value}` : String(value ?? "");
    return /[",\n]/.test(text) ? `"${text.replace(/"/g, '""')}"` : text;
  };
  return rows.map((row) => row.map(cell).join(",")).join("\n") + "\n";
}

// A heading of its own, and commands to take to a shell.
if (DATA.heading) find("h1").textContent = DATA.heading;
document.querySelectorAll(".command").forEach((place) => {
  const button = place.querySelector("button");
  button.addEventListener("click", () => copied(place.querySelector("code").textContent, button));
});

function copied(text, button) {
  const area = document.body.appendChild(element("textarea", { value: text }));
  area.select();
  document.execCommand("copy");
  area.remove();
  button.textContent = "Copied";
  setTimeout(() => { button.textContent = "Copy"; }, 1500);
}
