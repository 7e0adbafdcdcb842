"use strict";
(() => {
  document.documentElement.classList.add("js");
  const known = JSON.parse(document.getElementById("provenance-data").textContent);
  const dialog = document.getElementById("provenance");
  const body = document.getElementById("provenance-body");

  // Text only ever enters the page as text.
  const make = (tag, content, attributes = {}) => {
    const element = document.createElement(tag);
    for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
    for (const part of [content].flat(2)) {
      if (part !== null && part !== undefined && part !== "") element.append(part);
    }
    return element;
  };
  const given = (value) => value !== null && value !== undefined && value !== "";
  const list = (pairs) => {
    const shown = pairs.filter(([, value]) => given(value));
    return make("dl", shown.map(([name, value]) => [make("dt", name), make("dd", value instanceof Node ? value : String(value))]));
  };
  const fixed = (value, digits) => (given(value) ? value.toFixed(digits).replace("-", "−") : "–");
  const signed = (value, digits) => (value < 0 ? "" : "+") + fixed(value, digits);
  const section = (title, ...content) => make("section", [make("h4", title), ...content]);
  const flat = (value) => Object.entries(value || {}).filter(([, v]) => given(v)).map(([k, v]) => k + " " + (typeof v === "object" ? JSON.stringify(v) : v)).join(", ");

  const headline = (cell) => {
    const spread = given(cell.sd) ? " ± " + fixed(cell.sd, cell.digits) : "";
    const seeds = cell.n_seeds > 1 ? ", mean of " + cell.n_seeds + " seeds" : cell.n_seeds === 1 ? ", one run" : "";
    return list([
      ["Ours", given(cell.value) ? fixed(cell.value, cell.digits) + spread + seeds : cell.status],
      ["Why", cell.reason],
      ["Paper", given(cell.paper_value) ? fixed(cell.paper_value, cell.digits) + " (" + cell.paper + (cell.note ? "; " + cell.note : "") + ")" : "no printed value" + (cell.note ? "; " + cell.note : "")],
      ["Difference", given(cell.delta) ? signed(cell.delta, cell.digits) + ", " + cell.verdict : ""],
      ["Read-out", cell.readout],
      ["Metric", cell.metric],
      ["Items", cell.n || ""],
      ["Sample hash", cell.sample_hash],
    ]);
  };

  const scores = (cell) => {
    if (!(cell.records || []).length) return null;
    const { columns, rows } = known.records;
    const text = (name, value) => (name === "value" ? value.toFixed(6) : name === "sample_hash" ? value.slice(0, 12) : String(value));
    const head = make("thead", make("tr", columns.map((name) => make("th", name.replace("_", " "), { scope: "col" }))));
    const body = cell.records.map((label) => make("tr", rows[label].map((value, i) => make("td", text(columns[i], value)))));
    return section("Scores behind it", make("div", make("table", [head, make("tbody", body)]), { class: "scroll", tabindex: "0" }));
  };

  const origin = (entry) => list([["Title", entry.title], ["Licence", entry.licence], ["Cite", entry.cite], ["Source", entry.source], ["Fetched", entry.fetched]]);

  const run = (id) => {
    const entry = known.runs[id];
    if (!entry) return null;
    const about = entry.run || {};
    const encoder = known.backbones[entry.backbone] || { encoder: entry.backbone };
    const data = entry.data ? known.data[entry.data] || { title: entry.data } : null;
    const segments = (about.segments || []).map(flat).join("; ");
    return section(
      "Run " + id,
      list([
        ["Variant", entry.summary || entry.variant],
        ["Seed", entry.trained ? entry.seed : "none: the encoder is untouched"],
        ["Versions", flat(about.versions)],
        ["Hardware", flat(about.hardware)],
        ["Precision", about.precision],
        ["Steps", about.steps],
        ["Kept step", flat(about.best)],
        ["Training rows", about.train_rows],
        ["Segments", segments],
        ["Starts from", entry.start],
        ["Run record", entry.trained && !entry.run ? "no run.json here" : ""],
      ]),
      make("details", [make("summary", "Encoder: " + encoder.encoder), origin(encoder)]),
      data ? make("details", [make("summary", "Training data: " + data.title), origin(data)]) : null,
      entry.recipe ? make("details", [make("summary", "Recipe"), make("pre", JSON.stringify(entry.recipe, null, 2))]) : null,
    );
  };

  document.addEventListener("click", (event) => {
    const button = event.target.closest("button[data-cell]");
    if (event.target === dialog) dialog.close();
    if (!button) return;
    const key = button.closest("[data-table]").dataset.table + "/" + button.dataset.cell;
    const cell = known.cells[key];
    body.replaceChildren(
      make("h3", [cell.row, make("span", cell.column)], { id: "provenance-title" }),
      headline(cell),
      ...[scores(cell), ...(cell.runs || []).map(run)].filter(Boolean),
    );
    dialog.showModal();
    dialog.scrollTop = 0;
  });
})();
