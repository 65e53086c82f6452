"use strict";

let model = DATA.models[0];
let step = model.decisions.start;
let axis = model.axis;
const slider = find("#threshold");
const FEW_CLASSES = 6; // of a confusion matrix that fits a phone as it is

function showModel() {
  step = model.decisions.start;
  find(".size").textContent = `${model.name} · ${model.size}`;
  document.querySelectorAll(".verdict").forEach((place, i) => { place.textContent = model.verdict[i]; });
  find(".exactness").textContent = model.exactness;
  find(".exactness").hidden = !model.exactness;
  find("#decide .command").hidden = !model.command;
  document.querySelectorAll("#decide .needs-bound").forEach((part) => { part.hidden = model.decisions.bound === null; });
  showTiles(find("#verdict .tiles"), model.tiles);
  showTable(find("#metrics .table"), model.metrics);
  showTable(find("#decide .promises"), model.promises);
  showTable(find("#mistakes .table"), model.mistakes);
  find("#groups").hidden = model.groups === null;
  if (model.groups) showTable(find("#groups .table"), model.groups);
  find("#groups figure").hidden = model.groupPicture.length < 2;
  document.querySelectorAll("#trust .needs-probability").forEach((part) => { part.hidden = model.reliability === null; });
  find("#trust .of-two").hidden = model.positive === null;
  find("#mistakes").hidden = model.mistakes.rows.length === 0;
  slider.max = model.decisions.kept.length - 1;
  slider.value = step;
  drawModel();
}

function drawModel() {
  if (DATA.models.length > 1) {
    reliabilityLines(find("#overview .reliability"), DATA.models, model);
    riskLines(find("#overview .risk"), DATA.models, model);
  }
  const title = `Reliability diagram of ${model.name}`;
  if (model.reliability) {
    drawReliability(find("#trust .reliability"), title, [model.reliability, model.reliabilityByMass], "confidence", "accuracy");
  }
  if (model.positive) {
    const names = [`probability of ${model.classOne}`, `share of ${model.classOne}`];
    drawReliability(find("#trust .positive"), `${title}, ${model.classOne}`, [model.positive, model.positiveByMass], ...names);
  }
  densitiesChart(find("#trust .densities"), model, axis === "log-odds" && model.reliability !== null);
  rocChart(find("#trust .roc"), model);
  precisionChart(find("#trust .precision"), model);
  if (model.groups && model.groupPicture.length > 1) groupsChart(find("#groups .groups"), model.groupPicture);
  showStep();
}

function drawReliability(place, title, [width, mass], said, came) {
  if (axis === "equal width") reliabilityChart(place, title, width, said, came);
  else reliabilityPoints(place, title, mass, said, came, axis === "log-odds");
}

function offerAxes() {
  ["equal width", "equal mass", "log-odds"].forEach((name) => {
    const input = element("input", { type: "radio", name: "axis", checked: name === axis });
    input.addEventListener("change", () => { axis = name; drawModel(); });
    find("#axis").append(element("label", {}, input, element("span", { textContent: name })));
  });
}

// The accepted answers at the slider's step.
function showStep() {
  const { n, threshold, kept, wrong, bound, confusion } = model.decisions;
  find("#accept-above").value = threshold[step];
  slider.setAttribute("aria-valuetext", `${threshold[step]}, ${percent(kept[step] / n)} of inputs`);
  const figures = {
    "inputs accepted": `${percent(kept[step] / n)} (${count(kept[step])})`,
    "left for review": `${percent(1 - kept[step] / n)} (${count(n - kept[step])})`,
    "errors among the accepted": `${percent(wrong[step] / kept[step], 2)} (${count(wrong[step])})`,
    ...(bound && { "at most, at 95 % confidence": percent(bound[step], 2) }),
  };
  find("#accepted").replaceChildren(...Object.entries(figures).map(([name, text]) => element("div", {},
    element("dt", { textContent: name }), element("dd", { textContent: text }))));
  find(".command code").textContent = `${model.command} --coverage ${(kept[step] / n).toPrecision(4)} --json threshold.json`;
  riskChart(find("#decide .risk"), model, step);
  find("#confusion").hidden = confusion === null;
  if (confusion) showConfusion(confusion);
}

// Each step has the cells it adds; the table is the sum of all steps up to the slider.
function showConfusion({ k, steps, classes: names }) {
  const cells = new Array(k * k).fill(0);
  for (const added of steps.slice(0, step + 1)) {
    for (let i = 0; i < added.length; i += 2) cells[added[i]] += added[i + 1];
  }
  const most = { right: 1, wrong: 1 };
  cells.forEach((value, cell) => {
    const kind = cell % (k + 1) ? "wrong" : "right";
    most[kind] = Math.max(most[kind], value);
  });
  const classes = [...Array(k).keys()];
  const head = (name, scope) => element("th", { scope, textContent: name });
  const body = classes.map((truth) => element("tr", {}, head(names[truth], "row"), ...classes.map((answer) => {
    const value = cells[truth * k + answer], kind = truth === answer ? "right" : "wrong";
    const cell = element("td", { textContent: value || "·", title: `true ${names[truth]}, answer ${names[answer]}: ${value}` });
    cell.style.background = color(kind === "right" ? "blue" : "vermillion", 0.6 * Math.sqrt(value / most[kind]));
    return cell;
  })));
  const table = find("#confusion table");
  const heads = element("tr", {}, element("td"), ...classes.map((answer) => head(names[answer], "col")));
  table.className = k > FEW_CLASSES ? "many" : "";
  table.replaceChildren(table.caption, element("thead", {}, heads), element("tbody", {}, ...body));
}

function offerModels() {
  find("#choice").hidden = find("#overview").hidden = false;
  DATA.models.forEach((each, i) => {
    const input = element("input", { type: "radio", name: "model", checked: i === 0 });
    input.addEventListener("change", () => { model = each; showModel(); });
    find("#choice").append(element("label", {}, input, element("span", { textContent: each.name })));
  });
  find("#overview .pairs").hidden = !DATA.pairs.length;
  find("#overview .pairs").replaceChildren(...DATA.pairs.map((text) => element("li", { textContent: text })));
  showTable(find("#overview .table"), DATA.overview);
}

slider.addEventListener("input", () => { step = Number(slider.value); showStep(); });
if (DATA.models.length > 1) offerModels();
offerAxes();
showModel();
keepDrawn(drawModel);
