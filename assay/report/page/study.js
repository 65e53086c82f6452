"use strict";

let view = DATA.views[0], shown = []; // lines of the chosen calibrator that match the filter
const named = (name) => ({ text: name, value: name });
const calibrators = (lines) => [...new Set(lines.map(({ calibrator }) => calibrator))];

// Fill a select with [value, text]; `change` is called with the chosen value.
function offer(select, options, change) {
  select.replaceChildren(...options.map(([value, text]) => element("option", { value, textContent: text })));
  select.closest("label").hidden = options.length < 2;
  select.addEventListener("change", () => change(select.value));
}

function say(place, sentences) {
  place.replaceChildren(...sentences.map((textContent, i) =>
    element("p", { className: i ? "verdict second" : "verdict", textContent })));
}

function showStudy() {
  find("h1").textContent = DATA.question || DATA.name;
  find(".size").textContent = [DATA.name, DATA.progress].filter((part) => part !== find("h1").textContent).join(" · ");
  say(find("#verdict .words"), DATA.verdict.length ? DATA.verdict : ["There is nothing to compare."]);
  find("#assumed").hidden = DATA.assumed.length === 0;
  find("#assumed").open = DATA.assumed.length <= 5;
  find("#assumed ul").append(...DATA.assumed.map((textContent) => element("li", { textContent })));
  if (DATA.overview) {
    find("#overview").hidden = false;
    showTable(find("#overview .table"), DATA.overview);
  }
  showTable(find("#runs .table"), DATA.runs);
  find("#runs .failures").append(...DATA.failures.map(failure));
}

function failure({ text, href, why, log }) {
  const head = element("summary", {}, element("a", { href, textContent: text }), ` ${why}`);
  const tail = element("pre", { textContent: log || "The folder has the log." });
  return element("details", { className: "failure" }, head, tail);
}

function showView() {
  find("#view h2").textContent = view.title;
  say(find("#view .words"), DATA.views.length > 1 ? view.verdict : []);
  showTiles(find("#view .tiles"), view.tiles);
  find("#view .note").textContent = view.legend;
  const names = calibrators(view.lines);
  find("#calibrator").replaceChildren(...["all", ...names].map((name, i) =>
    element("option", { value: i - 1, textContent: name })));
  find("#calibrator").value = view.lines.length > view.first ? 0 : -1;
  find("#calibrator").closest("label").hidden = names.length < 2;
  find(".bar").hidden = DATA.views.length < 2 && names.length < 2;
  showLines();
}

function showLines() {
  const chosen = Number(find("#calibrator").value), name = calibrators(view.lines)[chosen];
  const lines = view.lines.filter(({ calibrator }) => chosen < 0 || calibrator === name);
  const heads = calibrators(lines).length > 1 ? ["method", "calibrator"] : ["method"];
  const rows = new Map(lines.map((line) => [[...heads.map((head) => named(line[head])), ...line.cells], line]));
  const columns = ["method", view.confidences].slice(0, heads.length).concat(DATA.metrics.map(({ title }) => title));
  showTable(find("#view .table"), { columns, rows: [...rows.keys()], first: view.first }, (left) => {
    shown = left.map((row) => rows.get(row));
    drawView();
  });
}

function drawView() {
  const lines = DATA.curves[view.curves] ?? [];
  const axes = [find("#across").value, find("#up").value];
  const onMap = ({ cells }) => axes.every((axis) => cells[axis]?.seeds);
  find("#map").hidden = !view.lines.some(onMap);
  if (view.lines.some(onMap)) mapChart(find("#map .chart"), shown.filter(onMap), ...axes);
  find("#curves").hidden = lines.length === 0;
  const methods = new Set(shown.map(({ method }) => method));
  const wanted = lines.filter(({ name }) => methods.has(name));
  if (lines.length) epochsChart(find("#curves .chart"), wanted, find("#figure").value);
}

const indexed = (axis) => DATA.metrics.map((metric, i) => [i, metric]).filter(([, metric]) => metric.axis === axis)
  .map(([i, { title }]) => [i, title]);

showStudy();
if (view) {
  find("#view").hidden = false;
  offer(find("#setting"), DATA.views.map(({ title }, i) => [i, title]), (i) => { view = DATA.views[i]; showView(); });
  find("#calibrator").addEventListener("change", showLines);
  offer(find("#across"), indexed("calibration"), drawView);
  offer(find("#up"), indexed("refinement"), drawView);
  offer(find("#figure"), DATA.figures.map(({ key, title }) => [key, title]), drawView);
  const more = `There was no room for ${DATA.left_out} more figures: the runs’ folders have them.`;
  find("#curves .left-out").textContent = DATA.left_out ? more : "";
  showView();
  keepDrawn(drawView);
} else {
  keepDrawn(() => {});
}
