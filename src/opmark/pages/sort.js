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
