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
  place.replaceChildren(...tiles.map(({ title, text, under, tone = "" }) => element("div", { className: "tile" },
    element("span", { className: "title", textContent: title }),
    element("strong", { className: tone }, ...breakable(text)),
    element("span", { className: "under", textContent: under }))));
}
