"use strict";

// Put a table into `place`: a click on a head sorts it, typing filters it, a button shows the rest of a long table.
// Rows are cells {text, value, under, tone, links}; cells without a value are sorted last. `filtered` is called with the
// rows that match the filter.
function showTable(place, table, filtered = () => {}) {
  const state = { column: null, falling: false, filter: "", all: table.rows.length <= table.first };
  const body = element("tbody");
  const numeric = table.columns.map((_, column) => table.rows.some((row) => typeof row[column].value === "number"));
  const heads = table.columns.map((name, column) => sortingHead(name, numeric[column], () => sortBy(column)));
  const grid = element("table", {}, element("thead", {}, element("tr", {}, ...heads)), body);
  place.replaceChildren(controls(), element("div", { className: "scroll", tabIndex: 0 }, grid));
  fill();
  filtered(table.rows);

  function controls() {
    const bar = element("div", { className: "controls" });
    if (table.rows.length > 8) {
      const filter = element("input", { type: "search", placeholder: "Filter", ariaLabel: "Filter the rows" });
      filter.addEventListener("input", () => { state.filter = filter.value.toLowerCase(); fill(); filtered(left()); });
      bar.append(filter);
    }
    if (!state.all) {
      const more = element("button", { type: "button", textContent: `Show all ${table.rows.length}` });
      more.addEventListener("click", () => { state.all = true; more.remove(); fill(); });
      bar.append(more);
    }
    bar.append(chooser());
    const save = element("button", { type: "button", className: "save", textContent: "csv", title: "Save this table as CSV" });
    save.addEventListener("click", () => {
      const rows = [table.columns, ...left().map((row) => row.map(({ text, value }) => value ?? text))];
      saved(`data:text/csv;charset=utf-8,${encodeURIComponent(asCsv(rows))}`, "table.csv");
    });
    bar.append(save);
    return bar;
  }

  // On a phone rows are cards without a head, so what to sort by is chosen from a list.
  function chooser() {
    const choice = element("select", { className: "phone", ariaLabel: "Sort by" }, element("option", { textContent: "Sort by" }),
      ...table.columns.map((name) => element("option", { textContent: name })));
    choice.addEventListener("change", () => { if (choice.selectedIndex) sortBy(choice.selectedIndex - 1); });
    return choice;
  }

  function sortBy(column) {
    state.falling = state.column === column && !state.falling;
    state.column = column;
    heads.forEach((head) => head.setAttribute("aria-sort", "none"));
    heads[column].setAttribute("aria-sort", state.falling ? "descending" : "ascending");
    fill();
  }

  function left() {
    return table.rows.filter((row) => row.some((cell) => cell.text.toLowerCase().includes(state.filter)));
  }

  function fill() {
    let rows = left();
    if (state.column !== null) rows.sort((a, b) => order(a[state.column].value, b[state.column].value, state.falling));
    if (!state.all && !state.filter) rows = rows.slice(0, table.first);
    body.replaceChildren(...rows.map((row) => element("tr", {}, ...row.map((cell, column) => tableCell(cell, table.columns[column])))));
  }
}

function order(a = null, b = null, falling) {
  if (a === null || b === null) return (a === null) - (b === null);
  const numbers = typeof a === "number" && typeof b === "number";
  const rising = numbers ? a - b : String(a).localeCompare(String(b), "en", { numeric: true });
  return falling ? -rising : rising;
}

function sortingHead(name, numeric, sort) {
  const button = element("button", { type: "button", textContent: name });
  button.addEventListener("click", sort);
  const head = element("th", { scope: "col", className: numeric ? "number" : "" }, button);
  head.setAttribute("aria-sort", "none");
  return head;
}

function tableCell(cell, head) {
  const kind = typeof cell.value === "number" ? "number" : "";
  const text = cell.term ? [explained(cell.text, cell.term, "")] : breakable(cell.text);
  const made = element("td", { className: `${kind} ${cell.tone ?? ""}`.trim() }, ...text);
  made.dataset.head = head;
  if (cell.picture) made.append(element("img", { src: cell.picture, alt: "", loading: "lazy" }));
  if (cell.under) made.append(element("span", { className: "under", textContent: cell.under }));
  const { before, names = [], after } = cell.links ?? {};
  names.forEach((name) => made.append(element("a", { href: before + name + after, textContent: name }), " "));
  return made;
}

// A long name may be wrapped only after its parts.
function breakable(text) {
  return text.split(/(?<=[_,])(?=.)/).flatMap((part, i) => (i ? [element("wbr"), part] : [part]));
}

// An element with properties and children; strings become text, never markup.
function element(name, properties = {}, ...children) {
  const made = Object.assign(document.createElement(name), properties);
  made.append(...children);
  return made;
}
