// Click a heading of a table.sortable to sort by it. The page reads the same without this script.
"use strict";
for (const table of document.querySelectorAll("table.sortable")) {
  const body = table.tBodies[0];
  const heads = [...table.tHead.rows[0].cells];

  // data-value is the sort key where the text is for people ("41.2 µs"); what is empty always comes last.
  const keyOf = (row, column) => {
    const cell = row.cells[column];
    const text = (cell.dataset.value ?? cell.textContent).trim();
    const number = Number(text);
    return text === "" || text === "–" ? null : Number.isNaN(number) ? text.toLowerCase() : number;
  };

  const compare = (a, b) => {
    if (a === null || b === null) return (a === null) - (b === null);
    if (typeof a === "number" && typeof b === "number") return a - b;
    return String(a).localeCompare(String(b), undefined, { numeric: true });
  };

  const sortBy = (column) => {
    const direction = heads[column].getAttribute("aria-sort") === "ascending" ? -1 : 1;
    const rows = [...body.rows].map((row, index) => ({ row, index, key: keyOf(row, column) }));
    rows.sort((a, b) => {
      const order = compare(a.key, b.key);
      return (a.key === null || b.key === null ? order : order * direction) || a.index - b.index;
    });
    body.append(...rows.map((item) => item.row));
    for (const head of heads) head.removeAttribute("aria-sort");
    heads[column].setAttribute("aria-sort", direction === 1 ? "ascending" : "descending");
  };

  heads.forEach((head, column) => {
    if (head.hasAttribute("data-unsorted")) return;
    const button = document.createElement("button");
    button.type = "button";
    button.append(...head.childNodes);
    button.addEventListener("click", () => sortBy(column));
    head.append(button);
  });
}

// A table with data-tools (the name of its CSV file) gets a search field, a choice of columns, and a download.
// A heading with data-choose gets a list of its values, of which one can be chosen.
for (const table of document.querySelectorAll("table[data-tools]")) {
  const rows = [...table.tBodies[0].rows];
  const heads = [...table.tHead.rows[0].cells];
  const tools = document.createElement("div");
  tools.className = "tabletools";

  const search = document.createElement("input");
  search.type = "search";
  search.placeholder = `Search ${rows.length} rows`;
  search.setAttribute("aria-label", "Search the rows of this table");
  const choices = heads.flatMap((head, column) => {
    const texts = rows.map((row) => row.cells[column].textContent.trim());
    const values = [...new Set(texts)].filter(Boolean).sort();
    if (!head.hasAttribute("data-choose") || values.length < 2) return [];
    const select = document.createElement("select");
    select.setAttribute("aria-label", `Show only rows with one value of: ${head.textContent.trim()}`);
    select.append(new Option(`${head.textContent.trim()}: all`, ""), ...values.map((value) => new Option(value, value)));
    return [{ select, texts }];
  });

  const show = () => {
    const words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
    rows.forEach((row, index) => {
      const text = row.textContent.toLowerCase();
      const found = words.every((word) => text.includes(word));
      row.hidden = !found || !choices.every(({ select, texts }) => !select.value || texts[index] === select.value);
    });
  };
  search.addEventListener("input", show);
  for (const { select } of choices) select.addEventListener("change", show);

  const columns = document.createElement("details");
  const summary = document.createElement("summary");
  summary.textContent = "Columns";
  columns.append(summary);
  heads.forEach((head, column) => {
    if (column === 0) return;
    const label = document.createElement("label");
    const box = document.createElement("input");
    box.type = "checkbox";
    box.checked = true;
    box.addEventListener("change", () => {
      for (const row of [table.tHead.rows[0], ...rows]) row.cells[column].hidden = !box.checked;
    });
    label.append(box, ` ${head.textContent.trim()}`);
    columns.append(label);
  });

  // A spreadsheet runs a text that begins like a formula: a quote before it keeps it a text. Numbers stay numbers.
  const harmless = (text) => (/^[=+\-@\t\r]/.test(text) && Number.isNaN(Number(text)) ? `'${text}` : text);
  const quoted = (raw) => {
    const text = harmless(raw);
    return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
  };
  const download = document.createElement("button");
  download.type = "button";
  download.textContent = "CSV";
  download.setAttribute("aria-label", "Download the rows shown as CSV");
  download.addEventListener("click", () => {
    const shown = [...table.tBodies[0].rows].filter((row) => !row.hidden);
    const wanted = heads.map((_, column) => column).filter((column) => !heads[column].hidden && !heads[column].hasAttribute("data-unsorted"));
    const cell = (one) => quoted((one.dataset.value ?? one.textContent).trim());
    const lines = [wanted.map((column) => quoted(heads[column].textContent.trim()))];
    for (const row of shown) lines.push(wanted.map((column) => cell(row.cells[column])));
    const link = document.createElement("a");
    link.href = URL.createObjectURL(new Blob([lines.map((line) => line.join(",")).join("\n") + "\n"], { type: "text/csv" }));
    link.download = `${table.dataset.tools}.csv`;
    link.click();
    URL.revokeObjectURL(link.href);
  });

  tools.append(search, ...choices.map(({ select }) => select), columns, download);
  (table.closest(".wide") ?? table).before(tools);
}
